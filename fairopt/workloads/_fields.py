"""Documented fields of the formats of snapshots: those that readers use, those that they only note, and the others.

A table is a file `data/NAME_fields.toml`. By kind of object it lists the fields that are `used`, those with no bearing
on what is held, wanted and weighed and on who may run where (`none`), and those `noted`: these have a bearing and the
cluster does not express it, so that a note names those that are in a snapshot, and says what may be wrong therefore.
A field is a path such as `spec.containers.ports.hostPort`, through lists as through tables; names with dots are in
brackets, `*` is any name, and a last bracket may hold a value of the field, or `>1`.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from ..base.names import listed

_NAMES = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")


@cache
def names(path: str) -> tuple[str, ...]:
    """Names along a path."""
    return tuple(one or other for one, other in _NAMES.findall(path))


def stated(value: Any, path: tuple[str, ...]) -> bool:
    """True if an object states a field: there is a value that is not empty, zero or false."""
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
    """Table of a format, by kind of object."""
    return tomllib.loads((resources.files(__package__) / "data" / f"{name}_fields.toml").read_text("utf-8"))


@cache
def _noted(name: str, kind: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((path, names(path)) for path in table(name).get(kind, {}).get("noted", ()))


class Fields:
    """Noted fields of the objects of one snapshot."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen: dict[tuple[str, str], list[str]] = defaultdict(list)

    def see(self, kind: str, thing: Any, who: str) -> None:
        """Record the noted fields that an object states."""
        for path, keys in _noted(self.name, kind):
            if stated(thing, keys):
                self._seen[kind, path].append(who)

    def notes(self) -> list[str]:
        """Notes on the recorded fields: kind, field, what may be wrong, and the objects."""
        return [f"{kind} {path} is not used: {table(self.name)[kind]['noted'][path]} ({listed(whose)})."
                for (kind, path), whose in self._seen.items()]  # fmt: skip
