"""The simulation loop: tables, placement, events, and rounds of decisions.

The loop is Python code on arrays, interpreted or compiled by numba. `handed` replaces functions and options that depend
on the policy (`share`, `score`, `PAIRS`, ...) by the functions and options of a given policy.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ...base.loops import Loop

#: Loops with the parts (functions and options) of policies, by loop and parts, and by loop and content, so that each is
#: compiled once.
_HANDED: dict[Any, Loop] = {}


def handed(loop: Loop, parts: dict[str, Any], compiled: bool) -> Any:
    """Bind names in a loop, and in the loops that it calls, to the `parts` of a policy; compiled or interpreted."""
    if not compiled:
        parts = {name: handed(part, {}, False) if isinstance(part, Loop) else part for name, part in parts.items()}
        return _remade(loop, parts, False, {})
    return variant(loop, parts).dispatcher


def variant(loop: Loop, parts: dict[str, Any]) -> Loop:
    """Compiled loop in which each name in `parts` is bound to its function or option, cached by loop and parts."""
    key = loop, *sorted(parts.items())
    if key not in _HANDED:
        _HANDED[key] = _remade(loop, parts, True, {})
    return _HANDED[key]


def _remade(loop: Loop, parts: dict[str, Any], compiled: bool, made: dict[Loop, Any]) -> Any:
    """Copy of a loop and of the loops that it calls, with names bound to parts; the loop itself if it reads no part."""
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
    """Return an earlier loop of equal content, if any: policies that differ in placement share the code of events."""
    made.py_func.__qualname__ = made.__qualname__ = f"{loop.__qualname__}.{made.content[:8]}"
    return _HANDED.setdefault((loop, made.content), made)
