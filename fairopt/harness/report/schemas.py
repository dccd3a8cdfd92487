"""JSON Schemas of cluster files and experiment files, for editors: from the declarations that their readers use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...model import cluster_file
from ..experiment import MECHANISMS, POLICIES, SINGLE, Kind

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_AMOUNT = {"type": "number", "minimum": 0}
_AMOUNTS = {
    "oneOf": [{"type": "object", "additionalProperties": _AMOUNT}, {"type": "array", "items": _AMOUNT}],
    "description": "of every resource: a table by its name, or a list in the order of `resources`",
}
_NAME = {"type": "string"}
#: What the keys of a cluster file hold. The keys themselves are the reader's.
_CLUSTER: dict[str, dict[str, Any]] = {
    "name": _NAME,
    "count": {"type": "integer", "minimum": 1, "description": "how many such servers there are; default 1"},
    "capacity": _AMOUNTS,
    "demand": _AMOUNTS | {"description": f"of one task, {_AMOUNTS['description']}"},
    "weight": {"type": "number", "exclusiveMinimum": 0, "description": "default 1"},
    "max_tasks": {"type": "number", "minimum": 0, "description": "tasks beyond these are worth nothing; default: none"},
    "eligible": {
        "oneOf": [_NAME, {"type": "array", "items": _NAME}],
        "description": "the only servers that it may use, by their names; default: all",
    },
}
#: Samples of every kind of value that a file can hold: what a check lets pass is of these types.
_SAMPLES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("string", ("default", "x", "raise", "alphapf-vds")),
    ("integer", (0, 1, 2)),
    ("number", (0.5, 1.5, 7.5)),
    ("boolean", (True,)),
)


def cluster() -> dict[str, Any]:
    """The schema of cluster files (docs/cluster-file.md)."""
    return {
        "$schema": _DRAFT,
        "title": "fairopt: a cluster",
        "type": "object",
        "additionalProperties": False,
        "required": ["servers", "users"],
        "properties": {
            "resources": {"type": "array", "items": _NAME, "description": "their names, in order"},
            "servers": _entries(cluster_file.SERVER_KEYS, "capacity"),
            "users": _entries(cluster_file.USER_KEYS, "demand"),
        },
    }


def _entries(keys: Iterable[str], needed: str) -> dict[str, Any]:
    properties = {key: _CLUSTER[key] for key in sorted(keys)}
    item = {"type": "object", "additionalProperties": False, "required": [needed], "properties": properties}
    return {"type": "array", "minItems": 1, "items": item}


def experiments() -> dict[str, Any]:
    """The schema of experiment files (docs/experiments.md): of mechanisms on clusters, or policies on workloads."""
    kinds = [_experiment(kind) for kind in (MECHANISMS, POLICIES)]
    return {"$schema": _DRAFT, "title": "fairopt: an experiment", "oneOf": kinds}


def _experiment(kind: Kind) -> dict[str, Any]:
    """One of the two kinds."""
    sources, runs = kind.sources, kind.runs
    of_grid = {key: (_one if key in SINGLE else _many)(*check) for key, (check, _) in kind.grid.items()}
    top = {key: (_many if key == "at" else _one)(*check) for key, (check, _) in kind.top.items()}
    source = {
        "oneOf": [_NAME, {"type": "object", "required": ["source"], "properties": {"source": _NAME}}],
        "description": "a source, such as 'paper:pf-fig1', or a table with `source` and its options",
    }
    named = {"type": "object", "additionalProperties": source}
    tables: dict[str, Any] = {
        sources: named | {"minProperties": 1},
        "grid": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "additionalProperties": False, "required": [runs], "properties": of_grid},
        },
        "smoke": {
            "type": "object",
            "additionalProperties": False,
            "description": "what is otherwise in the tiny version",
            "properties": {"seed": {}, "repetitions": {}, **of_grid, sources: named},
        },
        "experiment": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"plugins": {"type": "array", "items": _NAME}},
        },
    }
    properties = {key: (tables | top)[key] for key in sorted(kind.keys)}
    required = ["title", sources, "grid"]
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _one(check: Callable[[Any], bool], what: str) -> dict[str, Any]:
    """One value, of the types that the reader's check lets pass."""
    if what.startswith("one of ") and ", or " not in what:
        return {"enum": what.removeprefix("one of ").split(", ")}
    types = [name for name, samples in _SAMPLES if any(check(sample) for sample in samples)]
    return {"type": types} if types else dict(_NAME)


def _many(check: Callable[[Any], bool], what: str) -> dict[str, Any]:
    """One value or a list of them."""
    one = _one(check, what)
    return {"oneOf": [one, {"type": "array", "minItems": 1, "items": one}], "description": what}


#: Schemas by the names of what they describe.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {"cluster": cluster, "experiment": experiments}
