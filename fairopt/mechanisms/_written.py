"""Mechanisms and policies as text: a name, and parameters in brackets behind it."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..errors import DataError


def parts(text: str, what: str) -> tuple[str, str | None]:
    """A name, and what stands in brackets behind it; `what` it names is for the error."""
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    if match is None:
        raise DataError(f"{text!r} is not a {what}; write a name, or name(parameter=value, ...)")
    return match[1], match[2]


def parameters(text: str, inside: str) -> dict[str, Any]:
    """What stands in the brackets, each parameter once."""
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
    return given


def _value(node: ast.expr) -> Any:
    """A number, a list or a string; bare words are strings, except `inf`."""
    if isinstance(node, ast.Name):
        return float("inf") if node.id in ("inf", "infinity") else node.id
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        raise DataError(f"{ast.unparse(node)!r} is not a value: write a number, a word or a list") from None
