"""JSON Schemas of cluster files, experiment files, reports and instances, derived from the code that reads them."""

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
#: Schemas of the values of a cluster file, by key; `cluster_file` determines which keys there are.
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
    return dict(msgspec.json.decode(msgspec.json.encode(schema)))  # converts tuples to lists


def report() -> dict[str, Any]:
    """JSON Schema of the output of `fairopt report --json` (docs/explorer.md)."""
    return {"$schema": _DRAFT, "title": "fairopt: a report", **msgspec.json.schema(reported.Report)}


def instance() -> dict[str, Any]:
    """JSON Schema of an instance of the library (docs/instances.md)."""
    number = {"oneOf": [{"type": "number"}, {"type": "string", "pattern": r"^-?\d+(/[1-9]\d*)?$"}]}
    some = {"oneOf": [*number["oneOf"], {"type": "null"}]}
    index = {"type": "integer", "minimum": 0}
    entries = _list({"type": "array", "prefixItems": [index, index, number], "minItems": 3, "maxItems": 3})
    answer = _object(
        {
            "mechanism": _NAME,
            "parameters": {"type": "object"},
            "tasks": entries | {"description": "[user, server, tasks], others are 0; fractions are exact"},
            "share": _list(some) | {"description": "share per task, or unit of work; null: infinite"},
            "levels": _list(some) | {"description": "share over weight; null: the user can run nowhere"},
            "prices": _list(entries) | {"description": "[server, resource, price]; max-min has a table for each level"},
            "fixed": {"type": "boolean", "description": "the same on every processor"},
        },
        "mechanism", "tasks",
    )  # fmt: skip
    amounts, names, null = _list(_list(_AMOUNT)), _list(_NAME), {"oneOf": [_AMOUNT, {"type": "null"}]}
    tables = {"capacity": amounts, "demand": amounts, "rate": amounts, "eligible": _list(_list({"enum": [0, 1]}))}
    lists = {"resources": names, "servers": names, "users": names, "weight": _list(_AMOUNT), "max_tasks": _list(null)}
    texts = dict.fromkeys(("name", "kind", "about", "source", "doi", "digest"), _NAME)
    data = _object(tables | lists, "resources", "servers", "users", "capacity", "demand")
    tree = {"queues": {"type": "object"}, "combine": {"enum": ["sum", "vector"]}}
    answers = {"answers": _list(answer), "left_out": names | {"description": "mechanisms whose answer is not proved"}}
    file = {"fairopt_instances": {"const": 2}, **texts, "cluster": data, **tree, **answers}
    needed = "fairopt_instances", "name", "kind", "about", "digest", "cluster", "answers"
    return {"$schema": _DRAFT, "title": "fairopt: an instance", **_object(file, *needed)}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _object(properties: dict[str, Any], *needed: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": [*needed], "properties": properties}


#: Functions that return a schema, by the name of the document.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "cluster": cluster, "experiment": experiments, "report": report, "instance": instance,
}  # fmt: skip
