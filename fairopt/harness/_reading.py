"""What tables of experiment files must be: keys that are known, values that are checked, each error with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ._toml import Document, Where

#: How one value is checked, and what it must be.
Check = tuple[Callable[[Any], bool], str]


def checked(document: Document, where: Where, value: Any, check: Callable[[Any], bool], what: str) -> Any:
    """A value, if it is there and passes the check; `what` it must be stands in the error."""
    if not check(value):
        raise document.error(where, f"is {value!r}; it must be {what}" if value is not None else f"is missing: {what}")
    return value


def table(document: Document, where: Where, value: Any) -> dict[str, Any]:
    """A table of a document."""
    if not isinstance(value, dict):
        raise document.error(where, "must be a table" if value is not None else "is missing")
    return value


def unknown(document: Document, where: Where, found: dict[str, Any], keys: set[str]) -> None:
    """Refuse keys that are not known."""
    for key in found:
        if key not in keys:
            raise document.error((*where, key), f"unknown key; known: {', '.join(sorted(keys))}")


def many(
    document: Document, places: Mapping[str, Where], found: Mapping[str, Any], key: str, check: Check,
    default: tuple[Any, ...],
) -> tuple[Any, ...]:  # fmt: skip
    """The values of a key that takes one or a list."""
    if key not in found:
        return default
    values = found[key] if isinstance(found[key], list) else [found[key]]
    if not values:
        raise document.error(places[key], f"is empty; give {check[1]}, or leave it out")
    return tuple(checked(document, places[key], value, *check) for value in values)


def with_options(text: str, pairs: Iterable[tuple[str, Any]]) -> str:
    """The name of a source with options."""
    plain = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in pairs]
    return "?".join([text, "&".join(plain)]) if plain and "?" not in text else "&".join([text, *plain])
