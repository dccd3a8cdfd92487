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
    fields = [field.name for field in dataclasses.fields(kind)]
    if unknown := [parameter for parameter in parameters if parameter not in fields]:
        known = ", ".join(fields) or "none"
        raise DataError(f"{kind.name} does not take {', '.join(unknown)}; its parameters: {known}")
    try:
        return kind(**parameters)
    except DataError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{kind.name} cannot use these parameters: {error}") from None


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
    source = f"f({inside})"
    try:
        call: ast.expr | None = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: thousands of brackets
        call = None
    # Brackets may close and open again inside: f(alpha=1)(alpha=2) is a call of what a call returns, f(x=1)# a remark.
    whole = isinstance(call, ast.Call) and call.end_col_offset == len(source.encode())
    if not isinstance(call, ast.Call) or not whole or not isinstance(call.func, ast.Name) or call.args:
        raise DataError(f"{text!r}: what stands in the brackets is not parameter=value, ...")
    given: dict[str, Any] = {}
    for part in call.keywords:
        if part.arg is None or part.arg in given:
            again = "has **" if part.arg is None else f"gives {part.arg} twice"
            raise DataError(f"{text!r} {again}; write every parameter once, as parameter=value")
        given[part.arg] = _value(part.value)
    return (get(name, **given),)


def _value(node: ast.expr) -> Any:
    """A number, a list or a string; bare words are strings, except `inf`."""
    if isinstance(node, ast.Name):
        return float("inf") if node.id in ("inf", "infinity") else node.id
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        raise DataError(f"{ast.unparse(node)!r} is not a value: write a number, a word or a list") from None


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())
