"""The manifest of a reproduced paper: what was asked, with what code and data, and a digest of every file written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..sweeps.experiment import load
from ..sweeps.run import provenance
from .stored import Results

FORMAT = "fairopt-manifest-1"


def manifest(
    paper: str, experiments: Iterable[str], results: Results, files: Iterable[Path], folder: Path,
    verdicts: Mapping[str, int], seconds: Mapping[str, float],
) -> dict[str, Any]:  # fmt: skip
    """All of it, as JSON knows it; `files` are below `folder`, `seconds` by step, `verdicts` counts of claims."""
    return {
        "format": FORMAT,
        "paper": paper,
        "tiny version": results.smoke,
        "code": provenance(),
        "experiments": {name: _experiment(name, results) for name in experiments},
        "claims": dict(verdicts),
        "seconds": {step: round(value, 2) for step, value in seconds.items()},
        "files": {path.relative_to(folder).as_posix(): _digest(path) for path in sorted(files)},
    }


def _experiment(name: str, results: Results) -> dict[str, Any]:
    """Its file, seed and data: digests of what its sources drew or read, by their names."""
    chosen, found = load(name, results.smoke), results.of(name)
    cells = found.cells
    data = cells[["source", "data", "digest"]].drop_duplicates().sort_values(["source", "digest"])
    return {
        "file": hashlib.sha256(chosen.document.path.read_bytes()).hexdigest(),
        "seed": chosen.seed,
        "cells": {str(status): int(count) for status, count in cells["status"].value_counts().items()},
        "failed": len(found.failed),
        "code": sorted(set(cells["code"].dropna())),
        "data": [{key: _plain(value) for key, value in row.items()} for row in data.to_dict("records")],
        "notes": list(found.notes),
    }


def _plain(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
