"""Candidates put together: the same tasks once, splits averaged, equations solved to the last digits, and the index."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...core.first_order import Active
from ...core.settled import settled
from ...errors import SolverError
from ...model._arrays import Array
from ...model.problem import Problem
from ..model.equilibrium_system import EquilibriumSystem
from ..model.index import active_at, index
from ..model.stability import spectral_radius

#: Of two candidates that are one users' tasks differ by less than this, relatively.
_SAME = 1e-6


@dataclass(frozen=True)
class Verified:
    """One equilibrium.

    Attributes
    ----------
    active : its active set, with tasks and prices to the last digits
    index : +1 or -1; 0 where tasks are not locally unique, or where what is nearly active decides
    radius : spectral radius of a round of best responses
    by : who found it first
    """

    active: Active
    index: int
    radius: float
    by: str

    @property
    def pair_tasks(self) -> Array:
        """(pairs,)."""
        return np.asarray(self.active.part * self.active.total[self.active.polytope.pair_user])

    @property
    def log_prices(self) -> Array:
        """Log prices per resource unit (servers, resources), -inf for none."""
        return self.active.polytope.log_unit_prices(self.active.prices[0].log_rows)


class Collected:
    """Equilibria of one game, as they are found."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
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
            near = np.abs(totals[left] - totals[left[0]]).max(axis=1) < _SAME
            group, left = left[near], left[~near]
            log_total = totals[group[0]] + np.log(self.system.largest)
            if not self._known(log_total):
                self._add(tasks[group].mean(axis=0), self._mean_price(log_price[group]), by)
        return len(self.found) - before

    def _mean_price(self, log_price: Array) -> Array:
        """Log level prices whose powers are the average."""
        alpha = self.system.alpha
        top = log_price.max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.exp(alpha * (log_price - np.where(top > -np.inf, top, 0.0))).mean(axis=0)
            return np.asarray(top + np.log(mean) / alpha)

    def _known(self, log_total: Array) -> bool:
        """Are these the tasks (users,) of one that has been found?"""
        return any(np.abs(np.log(one.active.total) - log_total).max() < _SAME for one in self.found)

    def _add(self, tasks: Array, log_price: Array, by: str) -> None:
        polytope, system = self.problem.polytope, self.system
        whole = polytope.allocation(tasks / system.gamma)
        log_rows = system.alpha * log_price[polytope.row_server, polytope.row_resource]
        try:
            active = settled(polytope, self.problem.criterion, whole, log_rows, None)
        except SolverError:
            self.lost += 1
            return
        # A candidate may have been farther from its equilibrium than others with the same are from each other.
        if not self._known(np.log(active.total)):
            found = Verified(active, 0, 0.0, by)
            sign, radius = self._index(found)
            self.found.append(replace(found, index=sign, radius=radius))

    def _index(self, one: Verified) -> tuple[int, float]:
        """The index, 0 if it depends on pairs or rows that are outside without slack, and the spectral radius."""
        tasks = self.problem.polytope.allocation(one.pair_tasks / self.problem.polytope.gamma)
        found, more = (active_at(self.problem, tasks, one.log_prices, weak) for weak in (0.0, 1e-8))
        assert found is not None
        assert more is not None
        sign = index(found)
        return (sign or 0) if index(more) == sign else 0, spectral_radius(found)
