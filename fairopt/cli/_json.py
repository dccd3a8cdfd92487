"""Strict JSON on standard output."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def print_json(value: Any) -> None:
    """Print a value; numpy's numbers and arrays as plain ones, what JSON does not know as text."""

    def plain(item: Any) -> Any:
        if isinstance(item, np.ndarray):
            return item.tolist()
        return item.item() if isinstance(item, np.generic) else str(item)

    print(json.dumps(_finite(value), indent=1, default=plain, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: null, and a string."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return None if np.isnan(value) else str(float(value))
    return value
