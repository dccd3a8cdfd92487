"""JSON Schemas of cluster files, experiment files and reports, from the declarations that read and write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ...model import cluster_file
from ..experiment import MECHANISMS, POLICIES
from . import reported

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_AMOUNT = {"type": "number", "minimum": 0}
_AMOUNTS = {
    "oneOf": [{"type": "object", "additionalProperties": _AMOUNT}, {"type": "array", "items": _AMOUNT}],
    "description": "of every resource: a table by its name, or a list in the order of `resources`",
}
_NAME = {"type": "string"}
#: Values of the keys of a cluster file; the keys themselves are those of the reader.
_CLUSTER: dict[str, dict[str, Any]] = {
    "name": _NAME,
    "count": {"type": "integer", "minimum": 1, "description": "how many such servers there are; default 1"},
    "capacity": _AMOUNTS,
    "demand": _AMOUNTS | {"description": f"of one task, {_AMOUNTS['description']}"},
    "weight": {"type": "number", "exclusiveMinimum": 0, "description": "default 1"},
    "max_tasks": {
        "type": "number",
        "minimum": 0,
        "description": "the most tasks that the user can use; default: no limit",
    },
    "eligible": {
        "oneOf": [_NAME, {"type": "array", "items": _NAME}],
        "description": "the only servers that it may use, by their names; default: all",
    },
    "rate": {
        "oneOf": [_AMOUNT, {"type": "object", "additionalProperties": _AMOUNT}],
        "description": "work of a task per unit of time: one number, or by the names of servers; default 1",
    },
}


def cluster() -> dict[str, Any]:
    """JSON Schema of cluster files (docs/cluster-file.md)."""
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
    """JSON Schema of experiment files (docs/experiments.md), with mechanisms on clusters or policies on workloads."""
    kinds, structs = msgspec.json.schema_components([MECHANISMS.file, POLICIES.file], ref_template="#/$defs/{name}")
    schema = {"$schema": _DRAFT, "title": "fairopt: an experiment", "oneOf": kinds, "$defs": structs}
    return dict(msgspec.json.decode(msgspec.json.encode(schema)))  # lists in place of tuples


def report() -> dict[str, Any]:
    """JSON Schema of the output of `fairopt report --json` (docs/explorer.md)."""
    return {"$schema": _DRAFT, "title": "fairopt: a report", **msgspec.json.schema(reported.Report)}


#: Functions that return a schema, by the name of the document.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "cluster": cluster, "experiment": experiments, "report": report,
}  # fmt: skip
