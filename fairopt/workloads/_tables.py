"""The calibration tables in `data/`: one JSON file per trace, written by `calibrate` and read by `generators`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from ._marginals import PROBABILITY, Marginals

DIGITS = 6


def load(name: str) -> tuple[Marginals, dict[str, Any]]:
    """The marginals of `data/<name>.json` and the other entries of the file."""
    table = json.loads(files(__package__).joinpath("data", f"{name}.json").read_text(encoding="utf-8"))
    columns = table.pop("columns")
    rows = {key: np.array(table.pop(key), dtype=float) for key in ("zero", "quantiles", "rank_correlation")}
    return Marginals(tuple(columns), **rows, normal_correlation=np.array(table.pop("normal_correlation"))), table


def dumps(marginals: Marginals, about: str, others: Mapping[str, Any]) -> str:
    """The text of a table, six digits per number and one entry per line."""
    entries = {
        "about": about,
        "columns": marginals.columns,
        "probability": PROBABILITY,
        "zero": marginals.zero,
        "quantiles": marginals.quantiles,
        "rank_correlation": marginals.rank_correlation,
        "normal_correlation": marginals.normal_correlation,
        **others,
    }
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {_text(value)}" for key, value in entries.items()) + "\n}\n"


def _text(value: Any) -> str:
    nested = isinstance(value, list | np.ndarray) and len(value) and isinstance(value[0], list | np.ndarray)
    if nested:
        return "[\n" + ",\n".join(f"  {_text(row)}" for row in value) + "\n ]"
    if isinstance(value, list | np.ndarray):
        value = [float(f"{x:.{DIGITS}g}") if isinstance(x, float) else x for x in value]
    return json.dumps(value)
