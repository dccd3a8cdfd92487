r"""Crowds over few servers: prices from a sample of users, and groups of users who divide their tasks alike.

At finite alpha the unknowns are the few prices, at which every user has a cheapest server and desired tasks,

.. math::
    x_n(\lambda) = \max_i \Big(\frac{G_{ni}}{\sum_r \lambda_{ir} d_{nr}}\Big)^{1/\alpha},

with the marginal welfare :math:`G_{ni}` of one task, which in the game depends on the server. The optimum of a sample
of users, with the weights of the users that they represent, determines prices to about a percent. The homotopy of
`entropy_homotopy` then begins at a low temperature, with the pairs of all users that may have tasks near these prices.

In welfare whole sets of servers, here zones, may have the same prices per unit: together they are as good as one server
of their total capacity, and all of their users are indifferent among them. In the sample prices of a zone agree up to
the temperature. The homotopy therefore has zones in place of servers, and the tasks of each user are divided among the
servers of its zone afterwards, by max-min of the fraction of these tasks. Where it is below 1, a zone is split.

Max-min, and games up to alpha = 8, are solved by groups of users (`groups`): in games many users may be indifferent
among servers whose prices are not equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...base import clock
from ...base.libraries import csgraph
from ...model import _arrays
from ...model._arrays import Array, Index, Mask
from ...model.criterion import criterion
from ...model.problem import Problem
from ..accuracy import NEGLIGIBLE
from ..solution import Run, Solution
from . import groups
from .coupling import CoupledGame
from .entropy_homotopy import Place, cooled, follow, newton
from .equilibrium_system import EquilibriumSystem, log_unit_prices, suppress_fp_warnings

#: Largest finite alpha of games by groups: in steeper ones desired tasks change more from round to round than before.
_STEEP = 8.0
#: Approximate number of initial groups for the division of given tasks, and digits of its relative prices that count.
_DIVIDED, _DIGITS = 1000, 4
#: Approximate number of users in a sample, if all users are eligible on all servers.
_SAMPLED = 4000
#: Last temperature of the sample, and temperatures from which the curve of all users begins, in the order of trials.
_LAST, _LEFT_AT = 1e-6, (1e-3, 5e-3, 3e-2)
#: Servers are in the same zone if the logs of costs there differ, for all users whose costs are within `_USED` of their
#: least costs, by at most `_ALIKE` times the last temperature; and largest number of attempts to form zones.
_USED, _ALIKE, _ZONINGS = 0.1, 1000.0, 4
#: Pairs are listed whose log desired tasks are less than the user's largest by at most `_REACH` times the temperature;
#: those below half of it must all be listed at the prices that are found.
_REACH = 60.0
#: Largest number of Newton steps to the first point (`_RETURN`), and their smallest length (`_SHORTEST_STEP`): some
#: prices vanish in the sample, but not for all users. Number of steps at a last point, with all listed pairs (`_MORE`).
_RETURN, _SHORTEST_STEP, _MORE = 24, 1e-3, 8
#: Largest number of linear systems, and temperatures of candidates: relative to the tolerance, and absolute.
_STEPS, _TAU_PER_TOL, _OFFERED_TAU = 400, 0.03, (1e-9, 1e-11)


@suppress_fp_warnings
def solutions(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """Yield candidates for max-min, welfare and the game at finite alpha; none if a method fails.

    There are none for PS-DSF, a single pool, floors, or rates.
    """
    rule, infinite = problem.criterion, bool(np.isinf(problem.criterion.alpha))
    known = ("servers",) if infinite else ("servers", "game")
    if rule.scope not in known or rule.floor.any() or problem.cluster.rated:
        return
    if infinite or (rule.scope == "game" and rule.alpha <= _STEEP):
        yield from groups.solutions(problem, tol, engine)
    if not infinite:
        yield from _by_sample(problem, tol, engine)


class Users:
    """Users of a problem at finite alpha."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.users = problem, problem.polytope.users
        self.demand, self.usable = problem.cluster.demand[self.users], problem.cluster.usable[self.users]
        self.alpha, self.game = problem.criterion.alpha, problem.criterion.scope == "game"
        marginal = problem.criterion.log_marginal(np.ones(len(problem.criterion.weight)))[self.users]
        self.marginal = marginal.reshape(len(self.users), -1)

    def costs(self, log: Array) -> Array:
        """Log costs of a task (users, servers) at log prices (servers, resources)."""
        return np.asarray(np.log(self.demand @ np.exp(log - log.max()).T) + log.max())

    def short(self, log: Array) -> Array:
        """Log desired tasks (users, servers), relative to the user's largest, at log prices (servers, resources)."""
        desired = np.where(self.usable, (self.marginal - self.costs(log)) / self.alpha, -np.inf)
        return np.asarray(desired - desired.max(axis=1, keepdims=True))

    def sample(self) -> EquilibriumSystem:
        """System of the middle user of each group of similar users, with the weight of the group."""
        cluster, rule = self.problem.cluster, self.problem.criterion
        similar = _arrays.alike(self.demand, _SAMPLED)
        group = _arrays.numbered(np.column_stack([groups.kinds(self.demand, self.usable), similar]).astype(float))
        order, ends = _arrays.by_group(group, int(group.max()) + 1)
        chosen = np.sort(order[(ends[:-1] + ends[1:]) // 2])
        # Users are weighted by the resources of their desired tasks at equal prices of all servers.
        log = -np.log(np.where(cluster.pooled_capacity > 0, cluster.pooled_capacity, np.inf))
        spent = self.marginal.max(axis=1) + (self.alpha - 1) * self.costs(log[None])[:, 0]
        size = np.exp((spent - spent.max()) / self.alpha)
        represented, some = np.bincount(group, size)[group[chosen]] / size[chosen], self.users[chosen]
        part = cluster.derived(
            demand=cluster.demand[some],
            weight=cluster.weight[some],
            max_tasks=cluster.max_tasks[some],
            users=[""] * len(some),
            eligible=cluster.eligible[some],
        )
        q = EquilibriumSystem.of(Problem(part, rule.restrict(some)).polytope, rule.restrict(some))
        q.log_gain, q.limit = q.log_gain + np.log(represented)[q.user], q.limit * represented
        return q

    def zones(self, log: Array, apart: float) -> Index:
        """Zone of each server, (servers,): logs of costs differ by at most `apart` between two of its servers."""
        count = len(log)
        if self.game:
            return np.arange(count)
        cost = np.where(self.usable, self.costs(log), np.inf)
        used, same = cost <= cost.min(axis=1, keepdims=True) + _USED, np.zeros((count, count), dtype=bool)
        for i in range(count):
            for j in range(i):
                both = used[:, i] | used[:, j]
                near = both.any() and (np.abs(cost[both, i] - cost[both, j]) <= apart).all()
                same[i, j] = near and (self.usable[:, i] == self.usable[:, j]).all()
        return np.asarray(csgraph.connected_components(same, directed=False)[1])

    def begin(self, curve: Sequence[Place], zone: Index) -> Place | None:
        """Point of the curve of all users, from prices of the sample; None if Newton's method fails from all of them.

        Its system has the pairs of users and zones that may have tasks.
        """
        first, steps = np.unique(zone, return_index=True)[1], curve[-1].steps
        for tau in _LEFT_AT:
            at = next((place.here for place in curve if place.tau <= tau), curve[-1].here)
            log, unit = np.full((len(first), at.price.shape[1]), np.inf), np.full(len(first), np.inf)
            np.minimum.at(log, zone, log_unit_prices(at.q, at.price))
            np.minimum.at(unit, zone, at.unit)
            here, near = None, np.zeros((len(self.users), len(first)), dtype=bool)
            while ((short := self.short(log[zone])[:, first]) > -_REACH / 2 * at.tau)[~near].any():
                near |= short > -_REACH * at.tau
                q = self._system(zone, near)
                price = (log + np.log(q.polytope.cluster.capacity)) / self.alpha
                price = np.where(np.isfinite(price), price, unit[:, None])
                found = newton(CoupledGame(q, price, at.tau, unit, most=at.most), _RETURN, _SHORTEST_STEP)
                here, steps = found.here, steps + found.systems
                if here is None:
                    break
                log = log_unit_prices(q, here.price)
            if here is not None:
                return Place(here, steps)
        return None

    def _system(self, zone: Index, near: Mask) -> EquilibriumSystem:
        """System with zones in place of servers, and the pairs `near` (users, zones)."""
        cluster, rule = self.problem.cluster, self.problem.criterion
        capacity = np.zeros((near.shape[1], cluster.shape[2]))
        np.add.at(capacity, zone, cluster.capacity)
        eligible = np.zeros((cluster.shape[0], len(capacity)), dtype=bool)
        eligible[self.users] = near
        zones = cluster.derived(capacity=capacity, servers=[""] * len(capacity), eligible=eligible)
        return EquilibriumSystem.of(Problem(zones, rule).polytope, rule)

    def divided(self, q: EquilibriumSystem, tasks: Array, zone: Index, tol: float) -> tuple[Array | None, Index]:
        """Tasks (all users, servers), from tasks of pairs of users and zones, and zones; None if zones are split."""
        cluster, fractions = self.problem.cluster, q.polytope.inside(tasks / q.gamma)
        amounts = q.polytope.allocation(fractions)
        if len(zone) == amounts.shape[1]:
            return amounts, zone
        total = amounts.sum(axis=1)
        eligible = cluster.usable & (amounts > NEGLIGIBLE * total[:, None])[:, zone]
        free = cluster.derived(eligible=eligible, max_tasks=np.full(len(total), np.inf))
        rule = criterion(free, 1 / np.where(total > 0, total, 1.0), np.inf, "servers", weight=np.ones(len(total)))
        for divided, found, _, saving in groups.rounds(Problem(free, rule), _DIVIDED):
            low = 1 - found.levels[0]
            if low <= groups.STEADY * tol:
                return divided, zone
            if low * len(total) > saving:
                # Servers of a zone whose prices differ at the lowest level lack different resources.
                price = np.exp(found.log[0] - found.log[0].max()).round(_DIGITS)
                split = _arrays.numbered(np.column_stack([zone, price]))
                return None, split if split.max() > zone.max() else np.arange(len(zone))
        return None, np.arange(len(zone))


def _by_sample(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """Yield candidates at finite alpha, from the prices of a sample of users."""
    begun, users = clock.cpu(), Users(problem)
    q = users.sample()
    if len(q.weight) > groups.PART * len(users.users):
        return
    curve, ends = list(follow(q, _LAST, warm=True)), (_TAU_PER_TOL * tol, *_OFFERED_TAU)
    if not curve:
        return
    zone = users.zones(log_unit_prices(q, curve[-1].here.price), _ALIKE * curve[-1].tau)
    for _ in range(_ZONINGS):
        start, before = users.begin(curve, zone), zone
        if start is None:
            return
        q, left = start.here.q, list(ends)
        for place in cooled(start, ends[-1], start.steps + _STEPS, warm=True, listed=True):
            if not left or place.tau > left[0] * (1 + NEGLIGIBLE):
                continue
            left.pop(0)
            game = CoupledGame(q, place.here.price, place.tau, place.here.unit, most=place.here.most)
            here = newton(game, _MORE).here or game
            tasks, zone = users.divided(q, here.tasks, zone, tol)
            if tasks is None:
                break
            run, log = Run("sample of users", clock.cpu() - begun), log_unit_prices(q, here.price)[zone]
            yield Solution(tasks, None, engine, (run,), 0.0, place.steps, "converged", log=log)
            begun = clock.cpu()
        if np.array_equal(zone, before):
            return
