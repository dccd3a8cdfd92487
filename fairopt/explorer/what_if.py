"""What if: `weight.research=2`, `alpha=3`, `nodes.gpu-b=+4`, as edits of a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..errors import DataError
from .edits import OPTIONS, Start
from .state import State, alpha, number

_FORMS = "weight.NAME=NUMBER, alpha=NUMBER, nodes.NAME=+NUMBER (or -NUMBER, or =NUMBER for so many)"


def what_if(start: Start, state: State, requested: Sequence[str]) -> State:
    """The state after changes, one after the other.

    A name of `weight` is a namespace or account (all its users) or a user; of `nodes` a server, or the name of several
    that are alike.

    Raises
    ------
    DataError
        No such form or name, or no such number.
    """
    edits, at = dict(state.edits), state.alpha
    for text in requested:
        key, equals, value = text.rpartition("=") if re.search(r"==|=[+-]", text) is None else _split(text)
        kind, _, name = key.partition(".")
        if kind == "alpha" and equals and not name:
            at = alpha(value)
        elif kind == "weight" and name:
            weight = number(value, ("weight",), f"the weight in {text!r}")
            edits |= {f"users/{n}/weight": weight for n in _users(start, name)}
        elif kind == "nodes" and name:
            entry = _entry(start, name)
            edits[f"servers/{entry}/count"] = _count(start, edits, entry, value, text)
        else:
            raise DataError(f"--what-if {text}: write {_FORMS}")
    return State(state.mechanism, at, edits)


def _split(text: str) -> tuple[str, str, str]:
    key, equals, value = text.partition("=")
    return key, equals, value


def _users(start: Start, name: str) -> list[int]:
    found = [n for n, group in enumerate(start.groups) if group == name]
    found = found or [n for n, user in enumerate(start.cluster.users) if user == name]
    if not found:
        raise DataError(f"there is no namespace, account or user {name!r}; there are {_some(start.groups)}")
    return found


def _entry(start: Start, name: str) -> int:
    if name in start.names:
        return start.names.index(name)
    if name in start.cluster.servers:
        return int(start.entry_of[start.cluster.servers.index(name)])
    raise DataError(f"there are no nodes {name!r}; there are {_some(start.names)}")


def _count(start: Start, edits: dict[str, Any], entry: int, value: str, text: str) -> int:
    before = int(edits.get(f"servers/{entry}/count", start.counts[entry]))
    found = re.fullmatch(r"([+=-]?)(\d{1,9})", value)
    if found is None:
        raise DataError(f"--what-if {text}: {value!r} is no number of nodes; write +4, -4 or =4")
    sign, size = found.group(1), int(found.group(2))
    made = before + size if sign == "+" else before - size if sign == "-" else size
    if not 0 <= made <= OPTIONS.most_servers:
        raise DataError(f"--what-if {text}: that would be {made} nodes, of {before} now")
    return made


def _some(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:8]) + (f" and {len(distinct) - 8} more" if len(distinct) > 8 else "")
