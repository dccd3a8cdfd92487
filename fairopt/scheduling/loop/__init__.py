"""The loop of a simulation: tables, where tasks go, what happens, and rounds of decisions.

It is plain Python on arrays, which numba compiles as well. What depends on the policy (`share`, `score`, `PAIRS`, ...)
are names that `handed` replaces by those of a policy, before either runs.
"""

from __future__ import annotations

import hashlib
from types import FunctionType
from typing import Any

from ..._loops import Loop

#: Loops with parts of a policy, by their content: what is compiled once is not compiled again.
_HANDED: dict[tuple[Loop, str], Loop] = {}


def handed(loop: Loop, parts: dict[str, Any], compiled: bool) -> Any:
    """A loop, and those that it calls, where these names stand for parts of a policy; compiled or plain functions."""
    if not compiled:
        parts = {name: handed(part, {}, False) if isinstance(part, Loop) else part for name, part in parts.items()}
        return _remade(loop, parts, "", {})
    return variant(loop, parts).dispatcher


def variant(loop: Loop, parts: dict[str, Any]) -> Loop:
    """The loop that is compiled where these names stand for parts of a policy; the same for the same parts."""
    content = {name: part.content if isinstance(part, Loop) else part for name, part in sorted(parts.items())}
    digest = hashlib.sha256(repr(content).encode()).hexdigest()[:8]
    if (loop, digest) not in _HANDED:
        _HANDED[loop, digest] = _remade(loop, parts, digest, {})
    return _HANDED[loop, digest]


def _remade(loop: Loop, parts: dict[str, Any], variant: str, made: dict[Loop, Any]) -> Any:
    if loop not in made:
        reads = loop.reads
        new = {name: _remade(one, parts, variant, made) for name, one in reads.items() if isinstance(one, Loop)}
        new |= {name: parts[name] for name in reads if name in parts}
        made[loop] = loop if variant else loop.py_func
        if any(value is not reads[name] for name, value in new.items()):
            function = FunctionType(loop.py_func.__code__, loop.py_func.__globals__ | new, loop.py_func.__name__)
            function.__qualname__ = f"{loop.__qualname__}.{variant}"
            made[loop] = Loop(function, loop.options) if variant else function
    return made[loop]
