"""Arrays that nobody can write to or reshape, and dataclasses that keep theirs so: in copies and pickles too."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Generic, Literal, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)
C = TypeVar("C", bound=type)
V = TypeVar("V")


class _Attributes:
    """Where the dictionary of attributes comes from that `Sealed` shows and does not hand out."""


#: `values(instance)`: the attributes of an instance of `Sealed`, to write to.
values: Callable[[Any], dict[str, Any]] = _Attributes.__dict__["__dict__"].__get__


def handed_out(value: V) -> V:
    """A view of an array, whose header is the reader's own; a copy of a dictionary; anything else as it is."""
    if isinstance(value, np.ndarray):
        return cast("V", value.view())
    return cast("V", value.copy()) if isinstance(value, dict) else value


class Sealed(_Attributes):
    """`vars` and `__getstate__` of its instances show their attributes; nothing that is done to these changes them."""

    @property
    def __dict__(self) -> Mapping[str, Any]:  # type: ignore[override]
        return MappingProxyType(self.__getstate__())

    def __getstate__(self) -> dict[str, Any]:
        return {name: handed_out(value) for name, value in values(self).items()}


#: What memory is kept for whom: by the number of a weak reference to the array, that reference and the memory.
_OWNED: dict[int, tuple[Any, object]] = {}


def _owned(array: V, memory: object) -> V:
    """The array, which keeps its memory whatever is done to its header.

    `ndarray.__setstate__` makes an array let go of its memory, which its views would then go on to read.
    """
    reference = weakref.ref(array, _released)
    _OWNED[id(reference)] = reference, memory
    return array


def _released(reference: Any) -> None:
    _OWNED.pop(id(reference), None)


def frozen(array: NDArray[T]) -> NDArray[T]:
    """A copy of the numbers in `bytes`, which nobody can write to; the same array if it is one.

    NumPy lets an array be written to again if it owns its memory, and whoever has a view or a memoryview of an array
    has the array as well, as `base` or `obj`.
    """
    if array.base is not None and _is_frozen(array):
        return array
    order: Literal["C", "F"] = "F" if array.ndim > 1 and array.strides[0] < array.strides[-1] else "C"
    data = array.tobytes(order)
    memory = _owned(np.frombuffer(data, array.dtype) if array.size else np.ndarray(0, array.dtype, b""), data)
    return memory.reshape(array.shape, order=order)  # its views have `memory` as their base: its header is its own


class _Kept:
    """The memory of an array that nobody else has, without a way to it."""

    __slots__ = ("__known", "__weakref__")

    def __init__(self, array: NDArray[Any]) -> None:
        known = array.__array_interface__
        _owned(self, array)
        self.__known = (*known.items(), ("data", (known["data"][0], True)))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return dict(self.__known)


#: Of this size in bytes on arrays that nobody else has are kept as they are, not copied.
_LARGE = 1 << 16


def kept(array: NDArray[T]) -> NDArray[T]:
    """The same as `frozen` for an array that nobody else has: a large one is not copied."""
    if array.nbytes < _LARGE or array.base is not None:
        return frozen(array)
    owner = _Kept(array)
    return _owned(np.asarray(owner), owner).view()


def _is_frozen(array: NDArray[Any]) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, (bytes, _Kept))


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
            value = values(instance)[self.name]
        except KeyError:
            raise AttributeError(
                f"{owner.__name__} without {self.name!r}: it was not made by its constructor"
            ) from None
        kind = type(value)  # `handed_out`, as attributes are read often
        return value.view() if kind is np.ndarray else value.copy() if kind is dict else value

    def __set__(self, instance: object, value: Any) -> None:
        once(instance, self.name)
        values(instance)[self.name] = value


def once(instance: object, name: str) -> None:
    """Refuse to set an attribute again: a second call of a constructor would leave what was derived before stale."""
    if name in values(instance):
        raise AttributeError(f"{type(instance).__name__} is immutable: {name} is set; make another one")


def fields_once(*names: str) -> Callable[[C], C]:
    """Decorate a class: these are `Field`s; of a dataclass all that are not deferrable, unless some are named."""

    def decorate(cls: C) -> C:
        known = [field.name for field in fields(cls)] if not names else []
        for name in names or [name for name in known if not hasattr(getattr(cls, name, None), "__set__")]:
            setattr(cls, name, Field(name))
        return cls

    return decorate


class derived_property(Generic[V]):
    """A property that is made once, of arrays a new one; it is frozen then, and handed out as views."""

    def __init__(self, make: Callable[[Any], V]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> V: ...
    def __get__(self, instance: object | None, owner: type) -> Self | V:
        if instance is None:
            return self
        known = values(instance)
        if self.name not in known:
            made = self.make(instance)
            known[self.name] = kept(made) if isinstance(made, np.ndarray) else made
        found: V = handed_out(known[self.name])
        return found

    def __set__(self, instance: object, value: Any) -> None:
        raise AttributeError(f"{type(instance).__name__} is immutable: {self.name} is derived")


class Immutable(Sealed):
    """A frozen dataclass whose arrays are `frozen`: copies of those given, unless these are frozen themselves.

    Copies and pickles are not made by the constructor, and NumPy gives them arrays that can be written to. A field may
    be given as a function (`_deferred`): what it makes is frozen when it is made. Fields are `fields_once` or
    deferrable.
    """

    def __post_init__(self) -> None:
        known = values(self)
        arrays = {name: value for name, value in known.items() if isinstance(value, np.ndarray)}
        known.update({name: frozen(array.view()) for name, array in arrays.items()})

    def __setstate__(self, state: dict[str, Any]) -> None:
        if values(self):
            raise AttributeError(f"{type(self).__name__} is immutable: only a new one has no state yet")
        arrays = {name: frozen(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        values(self).update(state | arrays)
