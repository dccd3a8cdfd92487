"""Large values that are made when somebody reads them; arrays are then read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from ._immutable import frozen, handed_out, once, values

T = TypeVar("T")
C = TypeVar("C", bound=type)


def deferrable(*names: str) -> Callable[[C], C]:
    """Decorate a dataclass: these fields may be given as `deferred(function)`, which the first reading calls."""

    def decorate(cls: C) -> C:
        for name in names:
            setattr(cls, name, _Deferred(name))
        return cls

    return decorate


def deferred(make: Callable[[], T]) -> T:
    """What `make()` will return, for a deferrable field, and typed as such."""
    return cast("T", make)


def given(instance: object, name: str) -> Callable[[], Any] | None:
    """The function that a deferrable field was given as, if it was one: it may tell more cheaply what is asked."""
    return cast("Callable[[], Any] | None", values(instance).get(f"_make_{name}"))


class _Deferred:
    """A data descriptor: even the constructor of a frozen dataclass sets its field through it."""

    def __init__(self, name: str) -> None:
        self.make, self.made = f"_make_{name}", name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        known = values(instance)
        if self.made not in known:
            made = known[self.make]()
            known[self.made] = frozen(made) if isinstance(made, np.ndarray) else made
        return handed_out(known[self.made])

    def __set__(self, instance: object, value: Any) -> None:
        once(instance, self.make)
        once(instance, self.made)
        values(instance)[self.make if callable(value) else self.made] = value
