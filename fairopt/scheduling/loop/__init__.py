"""The loop of a simulation: tables, where tasks go, what happens, and rounds of decisions.

It is plain Python on arrays, which numba compiles as well. What depends on the policy (`share`, `score`, `PAIRS`, ...)
are names that `handed` replaces by those of a policy, before either runs.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ...base.loops import Loop

#: Loops with parts of a policy, by these, and by their content: what is compiled once is not compiled again.
_HANDED: dict[Any, Loop] = {}


def handed(loop: Loop, parts: dict[str, Any], compiled: bool) -> Any:
    """A loop, and those that it calls, where these names stand for parts of a policy; compiled or plain functions."""
    if not compiled:
        parts = {name: handed(part, {}, False) if isinstance(part, Loop) else part for name, part in parts.items()}
        return _remade(loop, parts, False, {})
    return variant(loop, parts).dispatcher


def variant(loop: Loop, parts: dict[str, Any]) -> Loop:
    """The loop that is compiled where these names stand for parts of a policy; the same for the same parts."""
    key = loop, *sorted(parts.items())
    if key not in _HANDED:
        _HANDED[key] = _remade(loop, parts, True, {})
    return _HANDED[key]


def _remade(loop: Loop, parts: dict[str, Any], compiled: bool, made: dict[Loop, Any]) -> Any:
    if loop not in made:
        reads = loop.reads
        new = {name: _remade(one, parts, compiled, made) for name, one in reads.items() if isinstance(one, Loop)}
        new |= {name: parts[name] for name in reads if name in parts}
        made[loop] = loop if compiled else loop.py_func
        if any(value is not reads[name] for name, value in new.items()):
            function = FunctionType(loop.py_func.__code__, loop.py_func.__globals__ | new, loop.py_func.__name__)
            made[loop] = _shared(loop, Loop(function, loop.options)) if compiled else function
    return made[loop]


def _shared(loop: Loop, made: Loop) -> Loop:
    """The one of this content: policies that differ in where tasks go have one code of how these end."""
    made.py_func.__qualname__ = made.__qualname__ = f"{loop.__qualname__}.{made.content[:8]}"
    return _HANDED.setdefault((loop, made.content), made)
