"""Tasks that somebody states: read user by user, placed beside the frontier, and supported by prices there.

Tasks X can be given by some weights of an alpha-fair criterion with alpha in (0, infinity], over a pool or over
servers, if and only if X > 0 is Pareto efficient in the polytope T of all feasible tasks:

- a maximum of a function that rises in every X_n is efficient;
- at an efficient point of a polytope some normal w > 0 supports it (Arrow, Barankin and Blackwell 1953), so that X
  maximises welfare for `phi_n = (w_n u_n^(alpha-1) X_n^alpha)^(1/alpha)`, whose marginal utility at X is w;
- for max-min take `phi_n = u_n X_n`: all levels are 1, and whoever has lexicographically better ones has levels >= 1,
  so at least X_n tasks for every n, and X is efficient.

Normals are `w_n = min_i sum_r lambda[i,r] d[n,r] + nu_n`, with prices lambda >= 0 of rows that are used up, nu >= 0 of
task limits that bind; budgets are `b_n = w_n X_n`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.errors import DataError, SolverError
from ..base.libraries import optimize, sp
from ..certificates import _linear
from ..model._arrays import Array, Index
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.polytope import Polytope

#: Linear programs end at vertices: fractions, idle parts and budgets up to this are zero there.
_ZERO = 1e-9


def runnable(tasks: Array, argument: str, cluster: Cluster, remedy: str) -> Index:
    """The users who can run tasks and of whom some are stated: all must be > 0 and within the task limit.

    Raises
    ------
    DataError
        Naming the user who has tasks and can run none, who has none, or who has more than it may run.
    """
    for n in np.flatnonzero(np.where(cluster.runnable, tasks == 0, tasks > 0)).tolist():
        what = f"{argument} of user {cluster.users[n]!r} is {tasks[n]:g}"
        able = f", although it could run tasks; {remedy}"
        unable = ", but it can run nowhere; give 0, or mend its eligibility, task limit or demand"
        raise DataError(what + (able if cluster.runnable[n] else unable), ("users", n))
    return np.flatnonzero(cluster.runnable & ~np.isnan(tasks))


def limited(tasks: Array, cluster: Cluster, more: float, remedy: str) -> None:
    """Raise DataError for a user who has more than it may run, by more than this part."""
    for n in np.flatnonzero(tasks > cluster.max_tasks * (1 + more)).tolist():
        limit = f"{tasks[n]:.6g} tasks, and only {cluster.max_tasks[n]:g} to run"
        raise DataError(f"user {cluster.users[n]!r} has {limit}; {remedy}", ("users", n))


@dataclass(frozen=True)
class Frontier:
    """Stated tasks beside the frontier, all in the order of `polytope.users`.

    Attributes
    ----------
    scale : the largest t such that everybody can have t times its tasks; task limits do not count
    short : the rows that stand in the way of more
    tasks : efficient tasks: `min(t, 1)` times the stated ones, and `rises` on top
    rises : what users can have more than that at the same time, relatively
    fractions : (pairs,), an allocation with these tasks
    """

    polytope: Polytope
    scale: float
    short: Index
    tasks: Array
    rises: Array
    fractions: Array

    @cached_property
    def normals(self) -> Normals:
        """The normals of the feasible set at `tasks`."""
        return Normals(self.polytope, self.tasks, self.fractions)


def frontier(polytope: Polytope, stated: Array) -> Frontier:
    """Two linear programs: how far tasks (users,) > 0 can be scaled, and who can rise from there.

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
    """The largest t such that t times all tasks (users,) > 0 is feasible, and the rows in the way; no task limits.

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
    """The cone of normals at efficient tasks, as budgets b (users,): what of it is extreme, by linear programs."""

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
        """Budgets b, one of them as given and the others at least, of which the largest multiple of these is least."""
        return self._minimise(np.zeros(self.users), budgets, np.full(self.users, np.inf), budgets, 1.0)

    def least(self, user: int, reference: int) -> float:
        """The least budget of a user in normals in which the reference's is 1; infinite where that has none."""
        low, high = np.zeros(self.users), np.full(self.users, np.inf)
        low[reference] = high[reference] = 1.0
        found = self._minimise(np.eye(self.users)[user], low, high, np.ones(self.users), 0.0)
        return np.inf if found is None else 0.0 if found[user] <= _ZERO else float(found[user])

    def _minimise(self, cost: Array, low: Array, high: Array, size: Array, most: float) -> Array | None:
        """The budgets b in `[low, high]` that minimise `cost b + most t`, where `b <= t size`."""
        under = [sp.csr_matrix((self.users, self._others)), -sp.identity(self.users), sp.csr_matrix(size[:, None])]
        least = sp.vstack([self._least, sp.hstack(under)], format="csr")
        others = np.zeros(self._others)
        bounds = [np.concatenate([others, low, [0.0]]), np.concatenate([others + np.inf, high, [np.inf]])]
        solved = optimize.linprog(
            np.concatenate([others, cost, [most]]), A_ub=-least, b_ub=np.zeros(least.shape[0]), A_eq=self._equal,
            b_eq=np.zeros(self._equal.shape[0]), bounds=np.transpose(bounds), method="highs", options=_linear.highs(),
        )  # fmt: skip
        return np.asarray(solved.x[self._others : -1]) if solved.status == 0 else None


def closed_form(place: Frontier, rule: Criterion, own: Array) -> Array:
    """Weights at which efficient tasks X are optimal: from supporting prices, or for max-min `u_n X_n`."""
    share, alpha = _share(rule, place.polytope.users), rule.alpha
    if np.isinf(alpha):
        return np.asarray(share * place.tasks)
    log_budget = _log_budgets(alpha, own, share, place)
    log_budget = np.clip(log_budget - np.median(log_budget), -9, 9)  # beyond, linear programs see nothing
    budgets = place.normals.nearest(np.exp(log_budget))
    log_budget = log_budget if budgets is None else np.log(budgets)
    found = (log_budget + (alpha - 1) * np.log(share * place.tasks)) / alpha
    return np.asarray(np.exp(found - found.mean()))


def ranges(place: Frontier, rule: Criterion, weights: Array) -> tuple[Array, Array, int]:
    """The ends of `phi_n / phi_ref` times the weight of the reference, (users,) each, and who that is.

    It is the user with the largest budget of those whose task limit does not bind. For finite alpha the ratio is
    `(b_n/b_ref (s_n/s_ref)^(alpha-1))^(1/alpha)`.
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
    if np.isinf(rule.alpha):  # all levels may be equal; whom prices hold without the reference may be below it
        return np.where(least == 0, 0.0, size), np.where(inverse == 0, np.inf, size), reference
    with np.errstate(divide="ignore"):
        return size * least ** (1 / rule.alpha), size * (1 / inverse) ** (1 / rule.alpha), reference


def _share(rule: Criterion, users: Index) -> Array:
    """The share per task, (users,); of proportional servers that of the first, and at alpha = 1 it cancels anyway."""
    if rule.share.ndim == 1:
        return rule.share[users]
    usable = np.isfinite(rule.share[users])
    return np.asarray(rule.share[users][np.arange(len(users)), usable.argmax(axis=1)])


def _log_budgets(alpha: float, weights: Array, share: Array, place: Frontier) -> Array:
    """`log(X_n dF/dx_n)` at efficient tasks X, (users,)."""
    return np.asarray(alpha * np.log(weights) + (1 - alpha) * np.log(share * place.tasks))
