r"""Max-min and games of crowds over few servers, by groups of users who divide their tasks alike over servers.

A group g of users with base tasks :math:`b_n` is one user with the demand :math:`\sum_{n \in g} b_n d_n`: with
:math:`l_g` tasks of the group, its users have :math:`x_n = l_g b_n`, divided alike. At the prices of the optimum for
groups, every user has a cheapest server and desired tasks,

.. math::
    x_n(\lambda) = \max_i \Big(\frac{G_{ni}}{\sum_r \lambda_{ir} d_{nr}}\Big)^{1/\alpha},

with the marginal welfare :math:`G_{ni}` of one task, which in the game depends on the server. Users leave groups whose
cheapest server is not theirs, and base tasks become desired tasks, until neither changes: all conditions of optimality
then hold user by user. Marginal welfare of groups is :math:`G_{gi} = \sum_{n \in g} G_{ni} b_n^{1 - \alpha}`. Users
whose desired tasks exceed their limits form groups of their own, whose base tasks are the limits, and whose limit is 1.

In max-min base tasks are those of a unit of level. With the least costs :math:`p_n` of a task at the prices of a level,
and costs :math:`c_n` on the servers among which its group is divided, the level could be higher by at most the fraction
:math:`1 - \sum_n b_n p_n / \sum_n b_n c_n` if users were divided one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...base import clock
from ...base.errors import SolverError
from ...model import _arrays
from ...model._arrays import Array, Index, Mask
from ...model.criterion import criterion
from ...model.problem import Problem
from ..accuracy import NEGLIGIBLE, VISIBLE
from ..leximin import Leximin
from ..solution import Run, Solution
from .coupling import CoupledGame
from .entropy_homotopy import Place, cooled, follow, newton
from .equilibrium_system import EquilibriumSystem, log_unit_prices

#: Approximate number of initial groups, and largest number of groups relative to that of users.
_GROUPS, PART = 100, 0.1
#: Largest number of rounds, and of successive rounds in which the largest change is not below `_PROGRESS` times the
#: least earlier one.
_ROUNDS, _PATIENCE, _PROGRESS = 60, 4, 0.8
#: A user leaves its group if its saving, a log of costs, exceeds the users' mean, and rounding errors (`_ROUNDED`).
_ROUNDED = 1e-12
#: Largest change of log base tasks and saving, times alpha, relative to the tolerance, at which there is a candidate.
STEADY = 0.1
#: Temperature of the optimum of groups relative to the last change of log base tasks, and its bounds.
_ACCURACY, _LEAST, _MOST = 0.01, 1e-9, 1e-4
#: Temperature, relative to the last change and at least `_WARM`, at which Newton's method starts from the prices of the
#: last round; and its largest number of steps there, and to the final temperature.
_WARMER, _WARM, _RETURN, _STEPS = 10.0, 3e-4, 16, 300


class Optimum(NamedTuple):
    """Tasks (groups, servers), log prices (stages, servers, resources), and the level of each stage of max-min."""

    tasks: Array
    log: Array
    levels: Array


def kinds(demand: Array, usable: Mask) -> Index:
    """Number users with the same demanded resources and usable servers alike, (users,)."""
    bits = np.packbits(demand > 0, axis=1), np.packbits(usable, axis=1)
    return _arrays.numbered(np.hstack(bits).astype(float))


class Round(NamedTuple):
    """Tasks (users, servers) and optimum of groups, changes of log base tasks, and savings of users (`_Crowd.move`)."""

    tasks: Array
    found: Optimum
    change: float
    saving: float


def solutions(problem: Problem, tol: float, engine: str) -> Iterator[Solution]:
    """Yield candidates of max-min or of a game at finite alpha, once rounds hardly change prices."""
    begun, infinite = clock.cpu(), bool(np.isinf(problem.criterion.alpha))
    for k, (tasks, found, change, saving) in enumerate(rounds(problem)):
        if max(change, saving) * (1.0 if infinite else problem.criterion.alpha) <= STEADY * tol:
            run, log = Run("groups of users", clock.cpu() - begun), found.log if infinite else found.log[0]
            yield Solution(tasks, None, engine, (run,), 0.0, k + 1, "converged", log=log)
            begun = clock.cpu()


def rounds(problem: Problem, count: int = _GROUPS) -> Iterator[Round]:
    """Yield rounds from about `count` groups, until groups become too many, or rounds make no progress."""
    change, least, stalled, crowd = np.inf, np.inf, 0, _Crowd(problem, count)
    for _ in range(_ROUNDS):
        base, group = crowd.base, crowd.group
        found = crowd.optimum(change) if group.max() < PART * len(base) else None
        if found is None:
            return
        saving = crowd.move(found)
        before = base if crowd.infinite else base * found.tasks.sum(axis=1)[group]
        change = float(np.abs(np.log(crowd.base / before)).max())
        size = saving + change
        stalled, least = 0 if size < _PROGRESS * least else stalled + 1, min(least, size)
        if not np.isfinite(size) or stalled > _PATIENCE:
            return
        tasks = np.zeros(problem.cluster.shape[:2])
        tasks[problem.polytope.users] = base[:, None] * found.tasks[group]
        yield Round(tasks, found, change, saving)


class _Crowd:
    """Users of a problem, their groups, and base tasks."""

    def __init__(self, problem: Problem, count: int) -> None:
        self.problem, users = problem, problem.polytope.users
        cluster, rule = problem.cluster, problem.criterion.restrict(users)
        self.demand, self.usable, self.limit = cluster.demand[users], cluster.usable[users], problem.polytope.limit
        self.infinite, self.alpha = bool(np.isinf(rule.alpha)), 1.0 if np.isinf(rule.alpha) else rule.alpha
        self.unit = rule.weight / rule.share if self.infinite else np.ones(len(users))
        #: Log marginal welfare of a task, (users, servers) in the game, else (users, 1); 0 in max-min.
        marginal = np.zeros(len(users)) if self.infinite else rule.log_marginal(self.unit)
        self.marginal = marginal.reshape(len(users), -1)
        self.base, self.full = self.unit, np.zeros(len(users), dtype=bool)
        self.place: Place | None = None
        if not self.infinite:  # at equal prices of all servers
            pooled = np.where(cluster.pooled_capacity > 0, cluster.pooled_capacity, np.inf)
            log = self._desired(np.log(self.demand @ (1 / pooled))[:, None]).max(axis=1)
            self.base = np.exp(log - log.max())
        self.kind = kinds(self.demand, self.usable)
        self.group = self._numbered(_arrays.alike(self.demand, count))

    def _numbered(self, *labels: Index) -> Index:
        """Indices of groups of users with the same labels, (users,)."""
        return _arrays.numbered(np.column_stack([self.kind, self.full, *labels]).astype(float))

    def _desired(self, log_cost: Array) -> Array:
        """Log desired tasks (users, servers) at log costs of a task; in max-min minus log costs."""
        return np.asarray((self.marginal - log_cost) / self.alpha)

    def _sums(self, of_users: Array) -> Array:
        """Sums over groups, (groups, columns), of values (users, columns)."""
        return np.stack([np.bincount(self.group, column) for column in of_users.T], axis=1)

    def _marginals(self) -> Array:
        """Log marginal welfare of groups, (groups, servers) in the game, else (groups, 1)."""
        log = self.marginal + (1 - self.alpha) * np.log(self.base)[:, None]
        most = np.full(int(self.group.max()) + 1, -np.inf)
        np.maximum.at(most, self.group, log.max(axis=1, where=log < np.inf, initial=-np.inf))
        return np.asarray(np.log(self._sums(np.exp(log - most[self.group, None]))) + most[:, None])

    def optimum(self, change: float) -> Optimum | None:
        """Optimum of groups, of an accuracy that suits the last change of log base tasks; None if it is not found."""
        cluster, users = self.problem.cluster, int(self.group.max()) + 1
        first, level = np.unique(self.group, return_index=True)[1], np.zeros(users)
        # In max-min a group of users at their limits attains its limit at the highest of their levels.
        np.maximum.at(level, self.group, np.where(self.full & self.infinite, self.limit / self.unit, 1.0))
        groups = cluster.derived(
            demand=self._sums(self.base[:, None] * self.demand),
            weight=np.ones(users),
            max_tasks=np.where(self.full[first], 1.0, np.inf),
            users=[""] * users,
            eligible=self.usable[first],
            rate=None,
        )
        problem = Problem(groups, criterion(groups, level, np.inf, "servers"))
        if self.infinite:
            try:
                levels = Leximin(problem.polytope, problem.criterion)
            except SolverError:
                return None
            return Optimum(levels.tasks(), np.log(levels.prices()), np.sort([one.level for one in levels.stages]))
        polytope, marginals = problem.polytope, np.broadcast_to(self._marginals(), (users, len(cluster.servers)))
        q = EquilibriumSystem(polytope, level, self.alpha)
        gain = marginals[polytope.pair_user, polytope.pair_server] + np.log(polytope.gamma)
        q.log_gain = gain / self.alpha - np.log(q.largest)[polytope.pair_user]
        self.place = self._followed(q, change)
        if self.place is None:
            return None
        fractions = polytope.inside(self.place.here.tasks / q.gamma)
        return Optimum(polytope.allocation(fractions), log_unit_prices(q, self.place.here.price)[None], np.zeros(1))

    def _followed(self, q: EquilibriumSystem, change: float) -> Place | None:
        """Point of the homotopy of groups, from the prices of the last round if these are near; None if it fails."""
        last, places = float(np.clip(_ACCURACY * change, _LEAST, _MOST)), deque[Place](maxlen=1)
        if self.place is not None and (tau := max(_WARMER * change, _WARM)) < 1:
            before = self.place.here
            near = newton(CoupledGame(q, before.price, tau, before.unit, most=before.most), _RETURN)
            if near.here is not None:
                places.extend(cooled(Place(near.here, near.systems), last, _STEPS, warm=True))
        if not places or places[0].tau > last * (1 + VISIBLE):
            places.extend(follow(q, last, _STEPS))
        return places[0] if places else None

    def move(self, found: Optimum) -> float:
        """Move users to groups of their cheapest servers, and set base tasks.

        A user's saving is the difference of log desired tasks between its cheapest server and the servers among which
        its group is divided. The largest saving is returned, in max-min the number of users times their mean saving.
        """
        reach, labels, worst = np.full(len(self.base), np.inf), [self.group], 0.0
        divided = (found.tasks / found.tasks.sum(axis=1, keepdims=True))[self.group]
        for log, level in zip(found.log, found.levels, strict=True):
            log_cost = np.log(self.demand @ np.exp(log - log.max()).T) + log.max()
            desired = np.where(self.usable, self._desired(log_cost), -np.inf)
            best, most = desired.argmax(axis=1), desired.max(axis=1)
            saving = np.where(divided > 0, divided * (most[:, None] - desired), 0.0).sum(axis=1)
            part = self.base * np.exp(-most) if self.infinite else self.unit
            counts = part > NEGLIGIBLE * part.max()
            mean = float(np.average(np.where(counts, saving, 0.0), weights=part))
            worst = max(worst, len(saving) * mean if self.infinite else float(saving.max()))
            labels.append(np.where(counts & (saving > max(mean, _ROUNDED)), best, -1))
            reach = np.minimum(reach, np.where(counts, level * self.unit, np.inf)) if self.infinite else np.exp(most)
        self.full = reach > self.limit
        self.base = np.where(self.full, self.limit, self.unit if self.infinite else reach)
        self.group = self._numbered(*labels)
        return worst
