"""The simulation loop: tables, placement, events, and rounds of decisions.

It is Python code on arrays, interpreted or compiled by numba. Names that depend on the policy (`share`, `score`,
`PAIRS`, ...) are replaced by those of a policy by `handed`.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ...base.loops import Loop

#: Cache of loops with parts of a policy, by these parts and by content, which avoids repeated compilation.
_HANDED: dict[Any, Loop] = {}


def handed(loop: Loop, parts: dict[str, Any], compiled: bool) -> Any:
    """Loop, including those that it calls, with these names bound to parts of a policy; compiled or interpreted."""
    if not compiled:
        parts = {name: handed(part, {}, False) if isinstance(part, Loop) else part for name, part in parts.items()}
        return _remade(loop, parts, False, {})
    return variant(loop, parts).dispatcher


def variant(loop: Loop, parts: dict[str, Any]) -> Loop:
    """Compiled loop in which each name in `parts` is bound to that function of a policy, cached by loop and parts."""
    key = loop, *sorted(parts.items())
    if key not in _HANDED:
        _HANDED[key] = _remade(loop, parts, True, {})
    return _HANDED[key]


def _remade(loop: Loop, parts: dict[str, Any], compiled: bool, made: dict[Loop, Any]) -> Any:
    """Copy of a loop, and of those that it calls, with names bound to parts; the loop itself if it reads none."""
    if loop not in made:
        reads = loop.reads
        new = {name: _remade(one, parts, compiled, made) for name, one in reads.items() if isinstance(one, Loop)}
        new |= {name: parts[name] for name in reads if name in parts}
        made[loop] = loop if compiled else loop.py_func
        if any(value is not reads[name] for name, value in new.items()):
            function = FunctionType(loop.py_func.__code__, loop.py_func.__globals__ | new, loop.py_func.__name__)
            made[loop] = _shared(loop, Loop(function, loop.options, loop.visited)) if compiled else function
    return made[loop]


def _shared(loop: Loop, made: Loop) -> Loop:
    """Loop shared by content: policies that differ in placement only share the code of other events."""
    made.py_func.__qualname__ = made.__qualname__ = f"{loop.__qualname__}.{made.content[:8]}"
    return _HANDED.setdefault((loop, made.content), made)
