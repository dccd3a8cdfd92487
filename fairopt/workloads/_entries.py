"""`Entry`: a reader or generator by its function; its options are the function's parameters.

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
from typing import Annotated, Any, Literal

from ..errors import DataError

Parser = Callable[[str], Any]

#: Parameters that are no options.
_GIVEN = ("rng", "directory")


@dataclass(frozen=True)
class Entry:
    """A reader (with the `folder` name that its trace begins with) or a generator."""

    description: str
    function: Callable[..., Any]
    folder: str = ""

    @cached_property
    def options(self) -> Mapping[str, Parser]:
        """How the text of each option is read, from the signature."""
        return {name: _checked(name, kind) for name, kind in parameters(self.function).items() if name not in _GIVEN}

    def run(self, options: Mapping[str, Any], **arguments: Any) -> Any:
        return self.function(**arguments, **options)


def place(function: Callable[..., Any]) -> str:
    """Where a function is written."""
    return f"{function.__module__}.{function.__qualname__}"


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
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
