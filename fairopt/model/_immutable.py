"""Arrays that nobody can write to or reshape, and dataclasses that keep theirs so: in copies and pickles too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)
C = TypeVar("C", bound=type)


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


class Field:
    """An attribute in `vars` that is set once; arrays are handed out as views.

    NumPy lets anybody set the shape, the strides and the type of a read-only array: a view has its own.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        try:
            value = vars(instance)[self.name]
        except KeyError:
            raise AttributeError(
                f"{owner.__name__} without {self.name!r}: it was not made by its constructor"
            ) from None
        return value.view() if isinstance(value, np.ndarray) else value

    def __set__(self, instance: object, value: Any) -> None:
        once(instance, self.name)
        vars(instance)[self.name] = value


def once(instance: object, name: str) -> None:
    """Refuse to set an attribute again: a second call of a constructor would leave what was derived before stale."""
    if name in vars(instance):
        raise AttributeError(f"{type(instance).__name__} is immutable: {name} is set; make another one")


def fields_once(*names: str) -> Callable[[C], C]:
    """Decorate a class: these are `Field`s. Of a dataclass name its arrays, and the field that is set first."""

    def decorate(cls: C) -> C:
        for name in names:
            setattr(cls, name, Field(name))
        return cls

    return decorate


class derived_array(Generic[T]):
    """A cached property whose array is frozen when it is made, and handed out as views."""

    def __init__(self, make: Callable[[Any], NDArray[T]]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> NDArray[T]: ...
    def __get__(self, instance: object | None, owner: type) -> Self | NDArray[T]:
        if instance is None:
            return self
        values = vars(instance)
        if self.name not in values:
            values[self.name] = frozen(self.make(instance))
        found: NDArray[T] = values[self.name].view()
        return found

    def __set__(self, instance: object, value: Any) -> None:
        raise AttributeError(f"{type(instance).__name__} is immutable: {self.name} is derived")


class Immutable:
    """A frozen dataclass whose arrays are `frozen`: copies of those given, unless these are frozen themselves.

    Copies and pickles are not made by the constructor, and NumPy gives them arrays that can be written to. A field may
    be given as a function (`_deferred`): what it makes is frozen when it is made. Fields that are arrays, and the first
    one, are `fields_once` or deferrable.
    """

    def __post_init__(self) -> None:
        values = vars(self)
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        values.update({name: frozen(a.view() if _is_frozen(a) else a.copy(order="K")) for name, a in arrays.items()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = {name: frozen(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        vars(self).update(state | arrays)
