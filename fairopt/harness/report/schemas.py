"""JSON Schemas of cluster files, experiment files, reports and instances.

Those of experiments and reports are derived from the types that read and write them; the others are in `data`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from ...base import shipped
from ..experiment import MECHANISMS, POLICIES
from . import reported

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _stored(name: str) -> dict[str, Any]:
    return dict(shipped.content(__package__, f"data/{name}.schema.json"))


def experiments() -> dict[str, Any]:
    """JSON Schema of experiment files (docs/experiments.md), with mechanisms on clusters or policies on workloads."""
    kinds, structs = msgspec.json.schema_components([MECHANISMS.file, POLICIES.file], ref_template="#/$defs/{name}")
    schema = {"$schema": _DRAFT, "title": "fairopt: an experiment", "oneOf": kinds, "$defs": structs}
    return dict(msgspec.json.decode(msgspec.json.encode(schema)))  # converts tuples to lists


def report() -> dict[str, Any]:
    """JSON Schema of the output of `fairopt report --json` (docs/explorer.md)."""
    return {"$schema": _DRAFT, "title": "fairopt: a report", **msgspec.json.schema(reported.Report)}


#: Functions that return a schema, by the name of the document: docs/cluster-file.md has clusters, docs/instances.md
#: instances of the library.
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "cluster": partial(_stored, "cluster"), "experiment": experiments, "report": report,
    "instance": partial(_stored, "instance"),
}  # fmt: skip
