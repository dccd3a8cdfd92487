"""JSON Schemas of cluster files and experiment files, for editors; tests hold them to what the readers take."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

#: What there are schemas of.
SCHEMAS = ("cluster", "experiment")


def schema(kind: str) -> dict[str, Any]:
    """The schema of a kind of file (docs/cluster-file.md, docs/experiments.md)."""
    text = (resources.files(__package__) / "data" / f"{kind}.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
