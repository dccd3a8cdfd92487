"""Prices for a judge who was given none: those at which an allocation comes nearest to optimal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model.criterion import Criterion
from ..model.polytope import Polytope
from ._supporting import supporting
from .backward import BackwardError, backward_error

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PriceSearchOptions:
    """Which prices are looked for, and how long."""

    #: Better prices are not looked for once `error <= proved`.
    proved: float = 1e-9
    #: By how much every user may be misplaced for nothing, in turn.
    leeway: tuple[float, ...] = (1e-10, 1e-8, 1e-7, 1e-6, 1e-4)
    #: Rows that idle more than this have no price in the second half of what is tried.
    idle: float = 1e-6


#: What is used unless a caller says otherwise.
OPTIONS = PriceSearchOptions()


def searched(
    polytope: Polytope, criterion: Criterion, tasks: Array, servers: Sequence[str] | None = None
) -> BackwardError:
    """The least backward error at prices that linear programs propose; infinite where none was solved."""
    best = backward_error(polytope, criterion, tasks, np.full(len(polytope.row_server), -np.inf), servers)
    for log_rows in _proposals(polytope, criterion, tasks):
        if best.error <= OPTIONS.proved:
            break
        found = backward_error(polytope, criterion, tasks, log_rows, servers)
        best = min(best, found, key=lambda one: one.error)
    return best


def _proposals(polytope: Polytope, criterion: Criterion, tasks: Array) -> Iterator[Array]:
    totals = tasks.sum(axis=1)
    user = polytope.pair_user
    if not len(user) or not (criterion.starves or (totals[polytope.users] > 0).all()):
        return
    log_marginal = criterion.restrict(polytope.users).log_marginal(totals[polytope.users])
    marginal = log_marginal[user, polytope.pair_server] if log_marginal.ndim == 2 else log_marginal[user]
    idle = np.maximum(1 - polytope.used(tasks), 0.0)
    for free in (np.inf, OPTIONS.idle):
        for leeway in OPTIONS.leeway:
            found = supporting(polytope, criterion, tasks, idle, marginal, leeway, idle > free)
            if found is not None:
                yield found
