"""Every mechanism of the field, one file each. A mechanism is registered by being defined."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from typing import Any

from ..errors import DataError
from ._base import REGISTRY, Mechanism
from ._game import GameMechanism

__all__ = ["REGISTRY", "GameMechanism", "Mechanism", "get", "names", "parse"]

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")


def names() -> list[str]:
    """Names of all mechanisms, sorted."""
    return sorted(REGISTRY)


def get(name: str, **parameters: Any) -> Mechanism:
    """A mechanism by its name, with parameters: `get("alphapf-vds", alpha=3)`. Case, `-` and `_` do not matter."""
    plain = {_plain(known): known for known in REGISTRY}
    if _plain(name) not in plain:
        raise DataError(f"there is no mechanism {name!r}; known: {', '.join(names())}")
    kind = REGISTRY[plain[_plain(name)]]
    try:
        return kind(**parameters)
    except TypeError:
        fields = ", ".join(field.name for field in dataclasses.fields(kind)) or "none"
        raise DataError(f"{kind.name} does not take {', '.join(parameters)}; its parameters: {fields}") from None


def parse(text: str) -> tuple[Mechanism, ...]:
    """Mechanisms from a command line: `drfh`, `alphapf-vds(alpha=3)`, `fds(beta=2, lam=-1)`.

    A name without parameters stands for the variants that comparisons show by default.
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    if match is None:
        raise DataError(f"{text!r} is not a mechanism; write a name, or name(parameter=value, ...)")
    name, inside = match.groups()
    if inside is None:
        return get(name).variants()
    parameters: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in re.split(r",(?![^(\[]*[)\]])", inside))):
        key, equals, value = part.partition("=")
        if not equals:
            raise DataError(f"{part!r} in {text!r} is not parameter=value")
        parameters[key.strip()] = _value(value.strip())
    return (get(name, **parameters),)


def _value(text: str) -> Any:
    if text.lower() in ("inf", "infinity"):
        return float("inf")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())
