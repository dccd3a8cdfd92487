"""Formats of Slurm's commands: numbers, lists of words, trackable and generic resources, hosts, arrays and features.

A parser raises `DataError` if a value has another format; the message begins with the name of the field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from ..base.errors import DataError
from ..base.names import items
from ._snapshot import GIB, quantity

#: Texts that mean that a field has no value.
_NOTHING = {"", "(null)", "N/A", "None assigned", "Unknown"}
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_FEATURE = re.compile(r"[&|,()\[\]]|\*[0-9]+|[^&|,()\[\]*\s]+")
_BRACKETS = re.compile(r"\[([^\]]*)\]")
#: Prefixes of trackable resources that are not consumed on nodes.
_NOT_SHARED = ("billing", "energy", "fs/", "ic/", "license/", "vmem", "pages", "bb/")
#: Capacity of a generic resource that is not consumed, large enough never to bind.
_PLENTY = 1_000_000
#: Largest number of elements of a job array.
MOST = 10_000_000
#: Largest number of hosts in one item of a host list.
_MOST_HOSTS = 1_000_000


def number(value: object, what: str) -> float | None:
    """Parse a number, plain or as {set, infinite, number}; None if it is not set."""
    if isinstance(value, Mapping):
        if value.get("infinite") or not value.get("set", True):
            return None
        value = value.get("number")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e20:
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a number >= 0")
    return float(value)


def text(value: object, what: str) -> str:
    """Parse a text, or join a list by commas; '' for texts that mean no value."""
    value = ",".join(map(str, value)) if isinstance(value, list) else value
    if value is not None and not isinstance(value, str):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a text")
    return "" if value is None or value in _NOTHING else value.strip()


def words(value: object, what: str) -> list[str]:
    """Parse a list of words, or words separated by commas."""
    if value is None:
        return []
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise DataError(f"{what} is {str(value)[:40]!r}; it must be a list of words")
    return [word.strip() for word in found if word.strip() not in _NOTHING]


def tres(value: object, of: str) -> dict[str, float]:
    """Parse `cpu=8,mem=16384M,node=2,gres/gpu=2` to amounts by resource.

    `mem`, in MB unless it has a unit, becomes `memory` in GiB. Resources that are not consumed on nodes are omitted.
    """
    found: dict[str, float] = {}
    for part in words(value, of):
        what, _, amount = part.partition("=")
        if amount in _NOTHING or what.startswith(_NOT_SHARED):
            continue
        binary = "i" if amount[-1:].isalpha() else "Mi" if what == "mem" else ""
        try:
            parsed = quantity(amount + binary)
        except DataError:
            raise DataError(f"{of} has {part[:40]!r}; it must read like cpu=8 or mem=16G") from None
        found["memory" if what == "mem" else what] = float(parsed / GIB if what == "mem" else parsed)
    return found


def gres(value: object, of: str) -> Counter[str]:
    """Parse generic resources of nodes (`gpu:h100:4(S:0-1)`), requests (`gres/gpu:h100=2`) and allocations.

    A typed resource counts both under its name and under its name with the type, `gres/gpu` and `gres/gpu:h100`. A
    resource that is not consumed has a capacity that never binds. Resources of `tres` that are not generic are left
    out.
    """
    found = Counter[str]()
    for part in items(text(value, of)):
        name, *more = re.split("[:=]", re.sub(r"^gres[/:]|\(.*", "", part))
        if name in ("cpu", "mem", "node", *(one.rstrip("/") for one in _NOT_SHARED)):
            continue
        counted = bool(more) and re.fullmatch(r"[0-9]+[kKmMgGtTpP]?", more[-1]) is not None
        amount = more.pop() if counted else "1"
        count = int(quantity(amount.upper() + "i" if amount[-1].isalpha() else amount))
        if "no_consume" in more:
            more.remove("no_consume")
            count *= _PLENTY
        for key in (f"gres/{name}", *(f"gres/{name}:{kind}" for kind in more[:1])):
            found[key] += count
    return found


def hosts(value: object, of: str) -> list[str]:
    """Expand a list of hosts such as `n[001-003,7],r[1-2]n[1-4]`."""
    found: list[str] = []
    wrong = f"{of} is {str(value)[:40]!r}; it must read like n[001-003,7]"
    for part in items(text(value, of)):
        first, *between = _BRACKETS.split(part)
        runs = [list(ranges(inside, wrong)) for inside in between[::2]]
        if prod(sum(len(run) for _, run in each) for each in runs) > _MOST_HOSTS:
            raise DataError(wrong)
        parts = [[f"{k:0{digits}d}{after}" for digits, run in each for k in run]
                 for each, after in zip(runs, between[1::2], strict=True)]  # fmt: skip
        found += ["".join(one) for one in product([first], *parts)]
    return found


def elements(value: object, of: str) -> tuple[int, int | None]:
    """Number of elements of an array such as `1-10:2,20%4`, and its throttle or None; 1 and None for an empty text.

    A list that Slurm truncated ends with `...`; only the listed elements count.
    """
    listed, _, throttle = text(value, of).partition("%")
    listed = listed.replace("...", "").strip(",[] ")
    wrong = f"{of} is {str(value)[:40]!r}; it must read like 1-10 or 1-9:2,20"
    count = sum(len(run) for _, run in ranges(listed, wrong)) if listed else 1
    if not 1 <= count <= MOST:
        raise DataError(f"{of} stands for {count} jobs; it must be 1 to {MOST}")
    return count, int(throttle.strip("]")) or None if throttle.strip("]").isdecimal() else None


def ranges(listed: str, wrong: str) -> Iterator[tuple[int, range]]:
    """Yield the ranges of a list such as `001-003,7` or `1-9:2`, each after the number of digits of its start."""
    for part in listed.split(",") if listed else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise DataError(wrong)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        yield len(match[1]), range(first, last + 1, max(step, 1))


@lru_cache(4096)
def has_features(wanted: str, has: Set[str]) -> bool:
    """True if a node with the features `has` may be one of the nodes of a job with the constraint `wanted`.

    Operators apply from left to right, and parentheses group. In brackets with counts, `[rack1*2&rack2*4]`, each term
    applies to different nodes of the job. A count without brackets, `graphics*4`, does not restrict the other nodes.

    Source: sbatch(1), --constraint.
    """
    tokens = _FEATURE.findall(wanted)
    return _alternative(tokens, has, counted="[" in wanted) if tokens else True


def _alternative(tokens: list[str], has: Set[str], counted: bool) -> bool:
    """Truth of the tokens up to the closing bracket, evaluated from left to right; they are removed from the list."""
    terms: list[tuple[str, bool]] = []
    operator, several = "&", False
    while tokens:
        token = tokens.pop(0)
        if token in ")]":
            break
        if token in "&|,":
            operator = "|" if token == "|" else "&"
        elif token.startswith("*"):
            several = True
        else:
            terms.append((operator, _alternative(tokens, has, counted) if token in "([" else token in has))
    if several and (counted or len(terms) == 1):
        return not counted or any(met for _, met in terms)
    value = True
    for operator, met in terms:
        value = value and met if operator == "&" else value or met
    return value


def shown(value: Any) -> bool:
    """True if a field has a value: set, and neither empty, false nor zero."""
    if isinstance(value, Mapping) and "number" in value:
        return not value.get("infinite") and bool(value.get("set", True) and value["number"])
    return value is not None and (value not in _NOTHING if isinstance(value, str) else bool(value))
