"""How the parameters of a mechanism read in its label."""

from __future__ import annotations

import numpy as np


def differs(value: object, default: object) -> bool:
    """Is a parameter not its default?"""
    return bool(np.any(np.asarray(value != default)))


def plain(value: object) -> str:
    """A parameter in a few characters."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, np.ndarray):
        return "custom"
    if callable(value):
        return getattr(value, "__name__", "custom")
    return str(value)
