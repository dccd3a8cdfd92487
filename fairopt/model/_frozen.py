"""Read-only arrays, by NumPy's flag, and frozen dataclasses that keep theirs so: in copies and pickles too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

V = TypeVar("V")
A = TypeVar("A", bound=np.generic)


def read_only(array: NDArray[A]) -> NDArray[A]:
    """The same array, which nobody else has, with its flag set."""
    array.flags.writeable = False
    return array


def frozen(array: NDArray[A]) -> NDArray[A]:
    """A read-only copy; the same array if neither it nor what it is a view of can be written to."""
    base = array.base
    if array.flags.writeable or (isinstance(base, np.ndarray) and base.flags.writeable):
        return read_only(array.copy(order="K"))
    return array


class _Deferred:
    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def deferred(make: Callable[[], V]) -> V:
    """Placeholder for a field of a `Frozen`, computed by `make()` on first access and typed as its result.

    The field must not have a default value, which a class attribute would answer with.
    """
    return cast("V", _Deferred(make))


class Frozen:
    """A frozen dataclass whose arrays are read-only copies of those given; fields may be `deferred`."""

    def __post_init__(self) -> None:
        known = self.__dict__
        for name, value in list(known.items()):
            if isinstance(value, np.ndarray):
                known[name] = frozen(value)
            elif isinstance(value, _Deferred):
                known.setdefault("_makers", {})[name] = value.make
                del known[name]

    def _maker(self, name: str) -> Callable[[], Any] | None:
        """The function that a deferred field was given as, if it was: it may tell more cheaply what is asked."""
        return cast("Callable[[], Any] | None", self.__dict__.get("_makers", {}).get(name))

    if not TYPE_CHECKING:  # which would take it for an answer to any name

        def __getattr__(self, name: str) -> Any:
            if name == "_makers" or (make := self._maker(name)) is None:
                known = sorted(one for one in {*dir(type(self)), *self.__dict__} if not one.startswith("_"))
                hint = "" if name.startswith("_") else f"; it has {', '.join(known)}"
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}")
            made = make()
            self.__dict__[name] = frozen(made) if isinstance(made, np.ndarray) else made
            return self.__dict__[name]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """NumPy unpickles arrays, and copies them deeply, as ones that can be written to."""
        for value in state.values():
            if isinstance(value, np.ndarray):
                read_only(value)
        self.__dict__.update(state)
