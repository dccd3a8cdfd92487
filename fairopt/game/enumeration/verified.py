"""Candidates put together: the same tasks once, splits averaged, equations solved to the last digits, and the index."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...model.problem import Problem
from ..model.active_newton import newton
from ..model.active_set import ActiveSet
from ..model.candidate import log_unit_prices
from ..model.equilibrium_system import EquilibriumSystem
from ..model.index import active_at, index
from ..model.stability import spectral_radius

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VerifiedOptions:
    """When two candidates are one, and what a solution may miss."""

    #: Users' tasks differ by less than this, relatively.
    same: float = 1e-6
    #: A part of a user's tasks that is as good as none, and a price below this part of its server's largest is.
    part: float = 1e-10
    price: float = 1e-30
    #: Residuals, missing tasks, slacks and idle parts (relative).
    error: float = 1e-9
    #: Pairs and rows outside with less slack could as well be inside.
    weak: float = 1e-8


OPTIONS = VerifiedOptions()


@dataclass(frozen=True)
class Verified:
    """One equilibrium.

    Attributes
    ----------
    active, z : its active set and the solution of its equations
    index : +1 or -1; 0 where tasks are not locally unique, or where what is nearly active decides
    radius : spectral radius of a round of best responses
    total : (users,), X in units of the largest gamma
    by : who found it first
    """

    active: ActiveSet
    z: Array
    index: int
    radius: float
    total: Array
    by: str


class Collected:
    """Equilibria of one game, as they are found."""

    def __init__(self, problem: Problem, options: VerifiedOptions = OPTIONS) -> None:
        self.problem, self.options = problem, options
        self.system = EquilibriumSystem.of(problem.polytope, problem.criterion)
        self.found: list[Verified] = []
        self.lost = 0  # candidates whose equations could not be solved

    def take(self, tasks: Array, log_price: Array, by: str) -> int:
        """Add candidates: tasks (candidates, pairs), log level prices (candidates, servers, resources). How many new.

        Of those with the same X tasks and prices are averaged: splits of an equilibrium are a convex set, and so are
        the prices that support it; their middle has all pairs and rows that may be active.
        """
        before = len(self.found)
        first = self.system.start[:-1]
        with np.errstate(divide="ignore"):
            totals = np.log(np.add.reduceat(tasks, first, axis=1)) if len(tasks) else np.zeros((0, len(first)))
        left = np.arange(len(tasks))
        while len(left):
            near = np.abs(totals[left] - totals[left[0]]).max(axis=1) < self.options.same
            group, left = left[near], left[~near]
            known = [np.abs(np.log(one.total) - totals[group[0]]).max() < self.options.same for one in self.found]
            if not any(known):
                self._add(tasks[group].mean(axis=0), self._mean_price(log_price[group]), by)
        return len(self.found) - before

    def _mean_price(self, log_price: Array) -> Array:
        """Log level prices whose powers are the average."""
        alpha = self.system.alpha
        top = log_price.max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.exp(alpha * (log_price - np.where(top > -np.inf, top, 0.0))).mean(axis=0)
            return np.asarray(top + np.log(mean) / alpha)

    def _add(self, tasks: Array, log_price: Array, by: str) -> None:
        made = self._solved(tasks, log_price)
        if made is None:
            self.lost += 1
            return
        active, z = made
        total = active.totals(z)
        # A candidate may have been farther from its equilibrium than others with the same are from each other.
        if any(np.abs(np.log(one.total / total)).max() < self.options.same for one in self.found):
            return
        sign, radius = self._index(active, z)
        self.found.append(Verified(active, z, sign, radius, total, by))

    def _solved(self, tasks: Array, log_price: Array) -> tuple[ActiveSet, Array] | None:
        """The active set of a candidate and its solution, if everything holds there."""
        system, options = self.system, self.options
        total = np.add.reduceat(tasks, system.start[:-1])
        pairs = np.flatnonzero(tasks > options.part * total[system.user])
        top = log_price.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            high = system.alpha * (log_price - top) > np.log(options.price)
        rows = np.flatnonzero((system.row & high).reshape(-1))
        at_limit = np.flatnonzero(total >= system.limit * (1 - options.error))
        active = ActiveSet(system, pairs, rows, at_limit)
        z = np.concatenate([tasks[pairs], log_price.reshape(-1)[rows], np.zeros(len(at_limit))])
        found = newton(active, z)
        if found is None:
            return None
        here, _, excess = active.split(found)
        slip = float((-here / active.totals(found)[active.user]).max(initial=0.0))
        over = float(active.over_limit(found).max(initial=0.0))
        error = max(slip, over, active.outside(found).worst, float((-excess).max(initial=0.0)))
        return (active, found) if error <= options.error else None

    def _index(self, active: ActiveSet, z: Array) -> tuple[int, float]:
        """The index, 0 if it depends on pairs or rows that are outside without slack, and the spectral radius."""
        fractions, levels = active.whole(z)
        tasks = self.problem.polytope.allocation(fractions / self.system.gamma)
        log_prices = log_unit_prices(self.system, levels)
        found, more = (active_at(self.problem, tasks, log_prices, weak) for weak in (0.0, self.options.weak))
        assert found is not None
        assert more is not None
        sign = index(found)
        return (sign or 0) if index(more) == sign else 0, spectral_radius(found)
