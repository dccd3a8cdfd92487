"""One text for a mechanism with its parameters, whatever text it was asked for with."""

from __future__ import annotations

import dataclasses

from ..mechanisms import Mechanism


def text_of(mechanism: Mechanism) -> str:
    """The one text for a mechanism with its parameters, from which it can be made again."""
    return named(mechanism.name, **_parameters(mechanism))


def _parameters(mechanism: Mechanism) -> dict[str, object]:
    """The fields that differ from their defaults, and alpha always; 3 and 3.0 are one."""
    return {
        field.name: float(value) if isinstance(value := getattr(mechanism, field.name), int) else value
        for field in dataclasses.fields(mechanism)
        if field.name == "alpha" or getattr(mechanism, field.name) != field.default
    }


def named(name: str, **parameters: object) -> str:
    """A name with parameters in brackets."""
    inside = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    return f"{name}({inside})" if inside else name
