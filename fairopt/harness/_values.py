"""What a value in an experiment file must be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..game.dynamics.orders import ORDERS
from ..result import metrics

#: What a cell may measure besides its row.
MEASURES = ("utilization", "convergence", "classes", "price_of_fairness", "tasks", "times", "crossings", "violations")

#: Those that are asked for by name in the table `measured`; the latter has code of its own, fairopt/properties.
CROSSINGS, VIOLATIONS = MEASURES[-2:]


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 10**308 if isinstance(value, int) else not math.isnan(value)


def is_positive(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf


#: Keys of a grid: how one value is checked, and what it must be.
GRID: dict[str, tuple[Callable[[Any], bool], str]] = {
    "clusters": (is_text, "a name from [clusters]"),
    "mechanisms": (is_text, "a mechanism, such as 'drfh'"),
    "alphas": (lambda value: is_number(value) and value >= 0, "a number >= 0, or inf"),
    "engines": (is_text, "the name of an engine, or 'default'"),
    "orders": (lambda value: is_text(value) and value in ORDERS, f"one of {', '.join(ORDERS)}"),
    "dampings": (lambda value: value == "default" or (is_number(value) and 0 < value < 2), "in (0, 2), or 'default'"),
    "tols": (lambda value: value == "default" or is_positive(value), "a number > 0, or 'default'"),
    "max_rounds": (whole(1), "a whole number >= 1"),
    "repetitions": (whole(1), "a whole number >= 1"),
    "residuals": (is_positive, "a number > 0"),
    "measures": (
        lambda value: value in MEASURES or (is_text(value) and value in metrics.MEASURES),
        f"one of {', '.join(MEASURES)}, or a measure of a plug-in",
    ),
}
