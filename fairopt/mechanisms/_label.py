"""Labels of mechanisms: their parameters in text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np


def differs(value: object, default: object) -> bool:
    """True if a parameter differs from its default."""
    return bool(np.any(np.asarray(value != default)))


def written(mechanism: Any) -> str:
    """Text of a mechanism that `mechanisms.one` parses: name, alpha and non-default parameters."""
    given = {field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)
             if field.init and (field.name == "alpha" or getattr(mechanism, field.name) != field.default)}  # fmt: skip
    numbers = {name: float(value) if isinstance(value, int) else value for name, value in given.items()}
    inside = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
    return f"{mechanism.name}({inside})" if inside else str(mechanism.name)


def label(name: str, made: Any, always: Iterable[str] = ()) -> str:
    """Name followed by the parameters of a dataclass that differ from defaults or are in `always`."""
    shown = [
        f"{field.name}={plain(value)}"
        for field in dataclasses.fields(made)
        if field.init and (differs(value := getattr(made, field.name), field.default) or field.name in always)
    ]
    name = name or type(made).__name__
    return f"{name}({', '.join(shown)})" if shown else name


def plain(value: object) -> str:
    """Short text of a parameter's value."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, np.ndarray):
        return "custom"
    if callable(value):
        return getattr(value, "__name__", "custom")
    return str(value)
