"""Documented fields of snapshot formats, which a reader uses, notes or ignores.

A table is a file `data/NAME_fields.toml`. By kind of object it lists fields that are `used`, fields that affect neither
use, demand, weight nor eligibility (`none`), and fields that are `noted`, which affect one of the four in a way that a
cluster cannot express. A note names the noted fields of a snapshot, and states which results they may falsify. A field
is a path such as `spec.containers.ports.hostPort`, which descends into lists as well as into tables. Names with dots
are in brackets, `*` is any name, and a last bracket may hold a value of the field, or `>1`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any, TypedDict

from ..base import shipped
from ..base.names import listed

_NAMES = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")


@cache
def names(path: str) -> tuple[str, ...]:
    """Split a path into names."""
    return tuple(one or other for one, other in _NAMES.findall(path))


def stated(value: Any, path: tuple[str, ...]) -> bool:
    """True if an object has a value at this path that is not empty, zero or false, or that the path itself names."""
    if isinstance(value, list):
        return any(stated(one, path) for one in value)
    if not path:
        return value not in (None, "", {}, False, 0)
    if not isinstance(value, dict):
        return (path == (">1",) and isinstance(value, int) and value > 1) or path == (value,)
    if path[0] == "*":
        return any(stated(one, path[1:]) for one in value.values())
    return path[0] in value and stated(value[path[0]], path[1:])


@cache
def table(name: str) -> Mapping[str, Any]:
    """Table of the fields of a format, by kind of object."""
    return dict(shipped.content(__package__, f"data/{name}_fields.toml"))


@cache
def kept_type(name: str, kind: str) -> Any:
    """Type of the objects of a kind with which msgspec decodes only the used and noted fields.

    Paths of the kind must have neither `*` nor values of fields.
    """
    fields = {names(path) for key in ("used", "noted") for path in table(name)[kind][key]}
    tree = dict[str, Any](kind={}, apiVersion={})
    for path in fields:
        if not any(path[:k] in fields for k in range(1, len(path))):
            at = tree
            for key in path:
                at = at.setdefault(key, {})
    return _typed(tree)


def _typed(tree: Mapping[str, Any]) -> Any:
    if not tree:
        return Any
    kept = TypedDict("kept", {key: _typed(below) for key, below in tree.items()}, total=False)  # type: ignore[misc]
    return kept | list[kept] | None


@cache
def _noted(name: str, kind: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((path, names(path)) for path in table(name).get(kind, {}).get("noted", ()))


class Fields:
    """Collector of the noted fields that occur in the objects of a snapshot."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen: dict[tuple[str, str], list[str]] = defaultdict(list)

    def see(self, kind: str, thing: Any, who: str) -> None:
        """Record the noted fields that an object of a kind states, with its name `who`."""
        for path, keys in _noted(self.name, kind):
            if stated(thing, keys):
                self._seen[kind, path].append(who)

    def notes(self) -> list[str]:
        """Notes on the recorded fields: kind, field, consequence, and the objects concerned."""
        return [f"{kind} {path} is not used: {table(self.name)[kind]['noted'][path]} ({listed(whose)})."
                for (kind, path), whose in self._seen.items()]  # fmt: skip
