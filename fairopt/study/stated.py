r"""Given tasks of users: validation, position relative to the Pareto frontier, and supporting prices.

Tasks X are optimal for an alpha-fair criterion with alpha in (0, infinity], over a pool or over servers, under some
weights, if and only if X > 0 is Pareto efficient in the polytope T of all feasible tasks:

- a maximiser of a function that is increasing in every :math:`X_n` is efficient;
- an efficient point of a polytope is supported by some normal G > 0 (Arrow, Barankin and Blackwell 1953), so that X
  maximises welfare for :math:`\phi_n = (G_n u_n^{\alpha-1} X_n^\alpha)^{1/\alpha}`, whose marginal welfare at X is G;
- for max-min let :math:`\phi_n = u_n X_n`: all levels of X are 1, and tasks with lexicographically larger levels have
  levels >= 1, hence at least :math:`X_n` tasks for every n, so that these tasks equal X, since X is efficient.

Normals are :math:`G_n = \min_i \sum_r \lambda_{ir} d_{nr} + \xi_n`, with prices :math:`\lambda \ge 0` of active
capacity constraints and :math:`\xi \ge 0` of active task limits; budgets are :math:`b_n = G_n X_n`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.errors import DataError, SolverError
from ..base.libraries import sp
from ..certificates import _linear
from ..model._arrays import Array, Index
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.linear import minimise
from ..model.polytope import Polytope

#: Fractions, slacks and budgets at a vertex of a linear program count as zero up to this value.
_ZERO = 1e-9


def runnable(tasks: Array, argument: str, cluster: Cluster, remedy: str) -> Index:
    """Indices of users that can run tasks and whose entry in `tasks` is not NaN; the entry must be > 0.

    Raises
    ------
    DataError
        A user that cannot run tasks has tasks, or a user that can run tasks has 0; the message names the user.
    """
    for n in np.flatnonzero(np.where(cluster.runnable, tasks == 0, tasks > 0)).tolist():
        what = f"{argument} of user {cluster.users[n]!r} is {tasks[n]:g}"
        able = f", although it could run tasks; {remedy}"
        unable = ", but it can run nowhere; give 0, or mend its eligibility, task limit or demand"
        raise DataError(what + (able if cluster.runnable[n] else unable), ("users", n))
    return np.flatnonzero(cluster.runnable & ~np.isnan(tasks))


def limited(tasks: Array, cluster: Cluster, more: float, remedy: str) -> None:
    """Raise `DataError` for a user whose tasks exceed its limit by more than the fraction `more`."""
    for n in np.flatnonzero(tasks > cluster.max_tasks * (1 + more)).tolist():
        limit = f"{tasks[n]:.6g} tasks, and only {cluster.max_tasks[n]:g} to run"
        raise DataError(f"user {cluster.users[n]!r} has {limit}; {remedy}", ("users", n))


@dataclass(frozen=True)
class Frontier:
    """Given tasks relative to the Pareto frontier, all arrays in the order of `polytope.users`.

    Attributes
    ----------
    scale : the largest t such that t times the given tasks is feasible, without task limits
    short : active capacity constraints (rows) at this scale
    tasks : (users,), Pareto-efficient tasks: `min(t, 1)` times the given tasks, increased by `rises`
    rises : (users,), relative increases that are feasible together
    fractions : (pairs,), an allocation of `tasks` to servers
    """

    polytope: Polytope
    scale: float
    short: Index
    tasks: Array
    rises: Array
    fractions: Array

    @cached_property
    def normals(self) -> Normals:
        """Normal cone of the feasible set at `tasks`."""
        return Normals(self.polytope, self.tasks, self.fractions)


def frontier(polytope: Polytope, stated: Array) -> Frontier:
    """Scale tasks (users,) > 0 to feasibility and increase them to efficiency, by two linear programs.

    Raises
    ------
    SolverError
        A linear program was not solved.
    """
    scale, short = scaled(polytope, stated)
    base = np.minimum(stated * min(scale, 1.0), polytope.limit)
    found = _linear.rises(polytope, base, base, np.arange(len(base)))
    if found is None:
        raise SolverError("the linear program that looks for more tasks was not solved; give them in fewer digits")
    return Frontier(polytope, scale, short, base * (1 + found.rises), found.rises, found.fractions)


def scaled(polytope: Polytope, stated: Array) -> tuple[float, Index]:
    """The largest t such that t times `stated` (users,) > 0 is feasible without task limits, and the active rows.

    Raises
    ------
    SolverError
        The linear program was not solved.
    """
    rows, users = polytope.use.shape[0], len(polytope.users)
    relative = sp.diags(1 / stated) @ polytope.tasks
    solved = _linear.maximise(
        np.append(np.zeros(len(polytope.gamma)), 1.0),
        [sp.hstack([polytope.use, sp.csr_matrix((rows, 1))]), sp.hstack([-relative, np.ones((users, 1))])],
        [np.ones(rows), np.zeros(users)],
    )
    if solved is None:
        raise SolverError("the linear program that scales the stated tasks was not solved; give them in fewer digits")
    return float(solved[0][-1]), np.flatnonzero(solved[1][0] > _ZERO)


class Normals:
    """Normal cone at efficient tasks, in budgets b (users,), with linear programs over this cone."""

    def __init__(self, polytope: Polytope, tasks: Array, fractions: Array) -> None:
        self.users = len(tasks)
        rows = np.flatnonzero(1 - polytope.use @ fractions <= _ZERO)
        self.limited = np.flatnonzero(tasks >= polytope.limit * (1 - 1e-7))
        user = polytope.pair_user
        cost = sp.diags(tasks[user] / polytope.gamma) @ polytope.use[rows].T
        pairs = np.arange(len(user))
        own = sp.csr_matrix((np.ones(len(user)), (pairs, user)), shape=(len(user), self.users))
        whole = sp.hstack([cost, own[:, self.limited], -own, sp.csr_matrix((len(user), 1))], format="csr")
        paying = fractions > _ZERO
        self._equal, self._least = whole[paying], whole[~paying]
        self._others = len(rows) + len(self.limited)

    def nearest(self, budgets: Array) -> Array | None:
        """Budgets b >= `budgets` of a normal with the least `max_n b_n / budgets_n`; None if no such b is found."""
        return self._minimise(np.zeros(self.users), budgets, np.full(self.users, np.inf), budgets, 1.0)

    def least(self, user: int, reference: int) -> float:
        """Least budget of a user over normals in which the reference has budget 1; inf if there is no such normal."""
        low, high = np.zeros(self.users), np.full(self.users, np.inf)
        low[reference] = high[reference] = 1.0
        found = self._minimise(np.eye(self.users)[user], low, high, np.ones(self.users), 0.0)
        return np.inf if found is None else 0.0 if found[user] <= _ZERO else float(found[user])

    def _minimise(self, cost: Array, low: Array, high: Array, size: Array, most: float) -> Array | None:
        """Normal b in `[low, high]` that minimises `cost b + most t` with `b <= t size`; None if none is found."""
        under = [sp.csr_matrix((self.users, self._others)), -sp.identity(self.users), sp.csr_matrix(size[:, None])]
        least = sp.vstack([self._least, sp.hstack(under)], format="csr")
        others = np.zeros(self._others)
        solved = minimise(
            np.concatenate([others, cost, [most]]), -least, np.zeros(least.shape[0]), equal=self._equal,
            low=np.concatenate([others, low, [0.0]]), high=np.concatenate([others + np.inf, high, [np.inf]]),
        )  # fmt: skip
        return None if solved is None else np.asarray(solved.x[self._others : -1])


def closed_form(place: Frontier, rule: Criterion, own: Array) -> Array:
    """Weights (users,) under which efficient tasks X are optimal: from supporting prices, or shares u X for max-min.

    Budgets are as near as possible to those of the weights `own`; if the linear program fails, they are those of `own`.
    """
    share, alpha = _share(rule, place.polytope.users), rule.alpha
    if np.isinf(alpha):
        return np.asarray(share * place.tasks)
    log_budget = _log_budgets(alpha, own, share, place)
    log_budget = np.clip(log_budget - np.median(log_budget), -9, 9)  # a range that linear programs resolve
    budgets = place.normals.nearest(np.exp(log_budget))
    log_budget = log_budget if budgets is None else np.log(budgets)
    found = (log_budget + (alpha - 1) * np.log(share * place.tasks)) / alpha
    return np.asarray(np.exp(found - found.mean()))


def ranges(place: Frontier, rule: Criterion, weights: Array) -> tuple[Array, Array, int]:
    r"""Lower and upper bounds (users,) of weights for a fixed weight of a reference user m, and the index m.

    A bound is 0 or infinity if the weight is unbounded on that side.

    m is the user with the largest budget b (for max-min, the largest weight) among those with an inactive task limit,
    or the first user if all limits are active. For finite alpha, with shares :math:`\sigma_n = u_n X_n`, ratios of
    weights follow from ratios of budgets:

    .. math::
        \frac{\phi_n}{\phi_m} = \Big(\frac{b_n}{b_m} \Big(\frac{\sigma_n}{\sigma_m}\Big)^{\alpha-1}\Big)^{1/\alpha}
    """
    share, free = _share(rule, place.polytope.users), np.ones(len(weights), dtype=bool)
    free[place.normals.limited] = False
    log_budget = np.log(weights) if np.isinf(rule.alpha) else _log_budgets(rule.alpha, weights, share, place)
    reference = int(np.argmax(np.where(free, log_budget, -np.inf))) if free.any() else 0
    size = (share * place.tasks) ** (1 - 1 / rule.alpha)
    size = weights[reference] * size / size[reference]
    others = [n for n in range(len(weights)) if n != reference]
    least, inverse = np.ones(len(weights)), np.ones(len(weights))
    least[others] = [place.normals.least(n, reference) for n in others]
    inverse[others] = [place.normals.least(reference, n) for n in others]
    # Levels are equal, but a weight has no upper bound if the user can be bound without the reference, and no positive
    # lower bound if the reference can be bound without the user.
    if np.isinf(rule.alpha):
        return np.where(least == 0, 0.0, size), np.where(inverse == 0, np.inf, size), reference
    with np.errstate(divide="ignore"):
        return size * least ** (1 / rule.alpha), size * (1 / inverse) ** (1 / rule.alpha), reference


def _share(rule: Criterion, users: Index) -> Array:
    """Share per task, (users,); in the game, on the first usable server, as servers are proportional or alpha = 1."""
    if rule.share.ndim == 1:
        return rule.share[users]
    usable = np.isfinite(rule.share[users])
    return np.asarray(rule.share[users][np.arange(len(users)), usable.argmax(axis=1)])


def _log_budgets(alpha: float, weights: Array, share: Array, place: Frontier) -> Array:
    """Log budgets, `log(X_n dF/dx_n)` at efficient tasks X, (users,)."""
    return np.asarray(alpha * np.log(weights) + (1 - alpha) * np.log(share * place.tasks))
