"""Conversion of documents to structs of msgspec: tables of TOML or JSON in which every key and value has a type.

The `description` of a type states what a value must be, in errors and in the schemas of editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from .errors import DataError
from .names import short

Made = TypeVar("Made")


def typed(said: Any, kind: type[Made]) -> Made:
    """Convert tables and lists to a struct.

    Raises
    ------
    DataError
        A value is invalid: `where` is the place of the entry, and the message continues the key of the entry.
    """
    try:
        return msgspec.convert([said], list[kind])[0]  # type: ignore[valid-type]
    except msgspec.ValidationError as error:
        raise _invalid(str(error), said, kind) from None


def _invalid(message: str, said: Any, kind: Any) -> DataError:
    """Error that states what the invalid value in `said` is and what it must be, from the message of msgspec.

    A message is the fault and the path of the value, such as "Expected `int`, got `str` - at `$[0].jobs[2].tasks`".
    """
    # An element of a list always has a path, so that an unknown key that looks like a path is not read as the path.
    fault, _, path = message.rpartition(" - at `$[0]")
    where = tuple(int(step) if step.isdecimal() else step for step in re.findall(r"\w+", path))
    value, wanted = said, kind
    for step in where:
        value = value[step]
        wanted = _fields(wanted)[step] if isinstance(step, str) else wanted
    if fault.startswith("Object contains unknown"):
        known = _fields(wanted)
        unknown = next(key for key in value if key not in known)
        return DataError(f"unknown key; known: {', '.join(sorted(known))}", (*where, unknown))
    text = f"is {short(value)}"
    if fault.startswith("Object missing"):
        missing = fault.split("`")[1]
        text, wanted = f"{missing} is missing", _fields(wanted)[missing]
    # For a fault in an element only the first description applies; the others describe the whole list.
    described = _described(wanted)[: 1 if path.endswith("]`") else None]
    expected = fault.removeprefix("Expected ").partition(", got")[0].replace("`object`", "a table")
    return DataError(f"{text}; it must be {'; '.join(described) or expected}", where)


def _fields(kind: Any) -> dict[str, Any]:
    """Types of the fields of a struct, or of the structs in a list, by key."""
    struct = next((part for part in _parts(kind) if hasattr(part, "__struct_fields__")), object)
    return get_type_hints(struct, include_extras=True)


def _described(kind: Any) -> list[str]:
    """Descriptions of a type; for a list, the description of its elements first."""
    said = (meta.description for part in _parts(kind) for meta in getattr(part, "__metadata__", ()))
    return list(dict.fromkeys(filter(None, said)))


def _parts(kind: Any) -> Iterator[Any]:
    """Generate a type, and the types of which it is composed."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)
