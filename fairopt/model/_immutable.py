"""Arrays that nobody can write to, and dataclasses that keep theirs so: in copies and pickles too."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def frozen(array: NDArray[T]) -> NDArray[T]:
    """The same numbers, not copied, read-only for good: `setflags` on the result or on a view cannot undo it."""
    array.setflags(write=False)
    # NumPy lets an array be written to again if it owns its memory, or if who owns it may write. A memoryview may not.
    return array if _is_frozen(array) else np.asarray(array.data)


def _is_frozen(array: NDArray[Any]) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, memoryview) and owner.readonly


class Immutable:
    """A frozen dataclass whose arrays are `frozen`: copies of those given, unless these are frozen themselves.

    Copies and pickles are not made by the constructor, and NumPy gives them arrays that can be written to. A field may
    be given as a function (`_deferred`): what it makes is frozen when it is made.
    """

    def __post_init__(self) -> None:
        values = vars(self)
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        values.update({name: frozen(a if _is_frozen(a) else a.copy(order="K")) for name, a in arrays.items()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = {name: frozen(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        vars(self).update(state | arrays)
