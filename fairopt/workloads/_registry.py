"""What `open_source` knows: readers and generators by name. One is registered by being defined.

    @generator("uniform", "uniformly random users and servers")
    def uniform(rng: np.random.Generator, users: int = 10, servers: int = 5) -> Snapshot: ...

The options of a source are the parameters of its function but `rng` and `directory`; their types say how text is read,
and `Annotated[int, check]` what a value must be: `check(value, name)` raises `DataError`, before anything is drawn.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from ..errors import DataError
from ._snapshot import Snapshot

Parser = Callable[[str], Any]
Function = TypeVar("Function", bound=Callable[..., Snapshot])

#: Parameters that are no options.
_GIVEN = ("rng", "directory")


@dataclass(frozen=True)
class Entry:
    """A reader (with the `folder` name that its trace begins with) or a generator."""

    description: str
    function: Callable[..., Snapshot]
    folder: str = ""

    @cached_property
    def options(self) -> Mapping[str, Parser]:
        """How the text of each option is read, from the signature."""
        return {name: _checked(name, kind) for name, kind in _parameters(self.function).items() if name not in _GIVEN}

    def run(self, options: Mapping[str, Any], **arguments: Any) -> Snapshot:
        return self.function(**arguments, **options)


READERS: dict[str, Entry] = {}
GENERATORS: dict[str, Entry] = {}
ALIASES: dict[str, str] = {}
#: The generator in place of a trace that is not there.
STAND_INS: dict[str, str] = {}


def generator(name: str, description: str) -> Callable[[Function], Function]:
    """Register a function of `rng` and options as the source `name`."""

    def register(function: Function) -> Function:
        _register(GENERATORS, name, Entry(description, function))
        return function

    return register


def reader(
    name: str, description: str, *, folder: str, stand_in: str, alias: str | None = None
) -> Callable[[Function], Function]:
    """Register a function of `directory`, `rng` and options as the source `name`: a trace.

    Below the folder of traces its own begins with `folder`; without one the generator `stand_in` takes its place.
    """

    def register(function: Function) -> Function:
        _register(READERS, name, Entry(description, function, folder))
        STAND_INS[name] = stand_in
        if alias is not None:
            ALIASES[alias] = name
        return function

    return register


def _register(into: dict[str, Entry], name: str, entry: Entry) -> None:
    known = READERS | GENERATORS | {alias: READERS[of] for alias, of in ALIASES.items() if of in READERS}
    old = known.get(name)
    same = old is not None and _place(old.function) == _place(entry.function)
    if old is not None and not same:
        raise DataError(f"two sources are called {name!r}, {_place(old.function)} and {_place(entry.function)}; "
                        "give yours another name")  # fmt: skip
    if not name or not name.isascii() or not set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_"):
        raise DataError(f"a source cannot be called {name!r}: write small letters, digits, - and _")
    if "rng" not in _parameters(entry.function):
        raise DataError(f"the source {name!r} takes no rng; its function must, as all that is random comes from there")
    assert entry.options is not None  # every type can be read
    into[name] = entry


def _place(function: Callable[..., Snapshot]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _parameters(function: Callable[..., Snapshot]) -> dict[str, Any]:
    """The types of a function's parameters."""
    hints = typing.get_type_hints(function, include_extras=True)
    return {name: hints.get(name, str) for name in inspect.signature(function).parameters}


def _checked(name: str, kind: Any) -> Parser:
    """How the text of an option becomes a value that its checks let pass."""
    read = parser(kind)
    checks = getattr(kind, "__metadata__", ())
    if not checks:
        return read

    def value(text: str) -> Any:
        found = read(text)
        for check in checks if found is not None else ():
            check(found, name)
        return found

    return value


def parser(kind: Any) -> Parser:
    """How text becomes a value of a type.

    Raises
    ------
    DataError
        Nobody can write such a value.
    """
    origin, parts = typing.get_origin(kind), set(typing.get_args(kind))
    if origin is Annotated:
        return parser(kind.__origin__)
    if origin in (typing.Union, types.UnionType):
        several = parts - {type(None)}
        if several == {int, float}:
            return _amount
        if str in several and len(several) > 1:
            return _list
        if len(several) == 1:
            return parser(several.pop())
    if kind is bool:
        return _flag
    if kind in (int, float, str):
        return typing.cast(Parser, kind)
    if origin is Literal:
        return {value: value for value in parts}.__getitem__
    if origin in (list, Sequence) and parts == {str}:
        return _list
    raise DataError(
        f"an option of a source is of type {kind}, which cannot be written as text; it must be int, float, bool, str, "
        "a list of str, int | float, one of them or None, or a Literal"
    )


def _amount(text: str) -> int | float | None:
    if text == "all":
        return None
    return float(text) if "." in text else int(text)


def _flag(text: str) -> bool:
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]


def _list(text: str) -> list[str]:
    return text.split(",")
