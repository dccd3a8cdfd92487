"""Candidates put together: the same tasks once, splits averaged, equations solved to the last digits, and the index."""

from __future__ import annotations

from dataclasses import dataclass

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
    tasks, log_prices : (users, servers), and per resource unit (servers, resources), -inf for none
    index : +1 or -1; 0 where tasks are not locally unique, or where what is nearly active decides
    radius : spectral radius of a round of best responses
    by : who found it first
    """

    active: Active
    tasks: Array
    log_prices: Array
    index: int
    radius: float
    by: str


class Collected:
    """Equilibria of one game, as they are found."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.system = EquilibriumSystem.of(problem.polytope, problem.criterion)
        self.found: list[Verified] = []
        self.lost = 0  # candidates whose equations could not be solved

    @property
    def whole(self) -> bool:
        """True if indices are not 0 and sum to 1, and no candidate was lost."""
        indices = [one.index for one in self.found]
        return sum(indices) == 1 and 0 not in indices and not self.lost

    def take(self, tasks: Array, log_price: Array, by: str) -> int:
        """Add candidates: tasks (candidates, pairs), log level prices (candidates, servers, resources). How many new.

        Of those with the same X tasks and prices are averaged: splits of an equilibrium are a convex set, and so are
        the prices that support it; their middle has all pairs and rows that may be active.
        """
        before, system = len(self.found), self.system
        totals = np.log(np.add.reduceat(tasks, system.start[:-1], axis=1)) if len(tasks) else tasks
        left = np.arange(len(tasks))
        while len(left):
            near = np.abs(totals[left] - totals[left[0]]).max(axis=1) < _SAME
            group, left = left[near], left[~near]
            if not self._known(totals[group[0]] + np.log(system.largest)):
                mean = np.logaddexp.reduce(system.alpha * log_price[group]) - np.log(len(group))
                self._add(tasks[group].mean(axis=0), mean[system.polytope.row_server, system.polytope.row_resource], by)
        return len(self.found) - before

    def _known(self, log_total: Array) -> bool:
        """True if these are the tasks (users,) of a known equilibrium."""
        return any(np.abs(np.log(one.active.total) - log_total).max() < _SAME for one in self.found)

    def _add(self, tasks: Array, log_rows: Array, by: str) -> None:
        """Add the equilibrium near tasks (pairs,) and log prices of whole capacities (rows,), with index and radius.

        The index is 0 if it depends on pairs or rows that are outside without slack.
        """
        problem, polytope = self.problem, self.problem.polytope
        try:
            active = settled(
                polytope, problem.criterion, polytope.allocation(tasks / self.system.gamma), log_rows, None
            )
        except SolverError:
            self.lost += 1
            return
        # A candidate may have been farther from its equilibrium than others with the same are from each other.
        if not self._known(np.log(active.total)):
            whole = polytope.allocation(
                polytope.inside(active.part * active.total[polytope.pair_user] / polytope.gamma)
            )
            log_prices = polytope.log_unit_prices(active.prices[0].log_rows)
            found, more = (active_at(problem, whole, log_prices, weak) for weak in (0.0, 1e-8))
            assert found is not None
            assert more is not None
            sign = index(found)
            sign = (sign or 0) if index(more) == sign else 0
            self.found.append(Verified(active, whole, log_prices, sign, spectral_radius(found), by))
