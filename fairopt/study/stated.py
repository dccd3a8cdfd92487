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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize, pd, sp
from ..certificates import _linear
from ..errors import DataError, SolverError
from ..model import _intake, _names, _validate
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Linear programs end at vertices: fractions, idle parts and budgets up to this are zero there.
_ZERO = 1e-9


def per_user(given: Any, argument: str, cluster: Cluster, users: Iterable[object] | None = None) -> Array:
    """A finite number >= 0 per user, (users,), NaN for users who are not named.

    `given` is a list in the order of `users` (by default all of the cluster's), or a series or dict, which counts by
    its labels: these must be `users`, in any order.

    Raises
    ------
    DataError
        Naming the user whose number is missing, negative or none, and names that the cluster does not have.
    """
    wanted = cluster.users if users is None else _names.labels(users, "user")
    places = {name: n for n, name in enumerate(cluster.users)}
    unknown = [name for name in wanted if name not in places]
    if unknown:
        raise DataError(f"users has {unknown[0]!r}; the cluster has {_names.some(cluster.users)}")
    if isinstance(given, Mapping):
        given = pd.Series(dict(given), dtype=object)
    numbers = _intake.plain(_validate.row(given, argument, wanted, "user"), argument)
    if numbers.shape != (len(wanted),):
        raise DataError(
            f"{argument} must have one number per user, {len(wanted)} in all ({_names.some(wanted)}); "
            f"got shape {numbers.shape}"
        )
    for name, value in zip(wanted, numbers.tolist(), strict=True):
        if not (np.isfinite(value) and value >= 0):
            raise DataError(
                f"{argument} of user {name!r} is {value:g}; it must be a finite number >= 0", ("users", places[name])
            )
    result = np.full(len(cluster.users), np.nan)
    result[[places[name] for name in wanted]] = numbers
    return result


def runnable(tasks: Array, argument: str, cluster: Cluster, remedy: str) -> NDArray[np.intp]:
    """The users who can run tasks and of whom some are stated: all must be > 0 and within the task limit.

    Raises
    ------
    DataError
        Naming the user who has tasks and can run none, who has none, or who has more than it may run.
    """
    for n, name in enumerate(cluster.users):
        value = tasks[n]
        if np.isnan(value):
            continue
        if value > 0 and not cluster.runnable[n]:
            raise DataError(
                f"{argument} of user {name!r} is {value:g}, but it can run nowhere; give 0, or mend its eligibility, "
                "task limit or demand",
                ("users", n),
            )
        if value == 0 and cluster.runnable[n]:
            raise DataError(f"{argument} of user {name!r} is 0, although it could run tasks; {remedy}", ("users", n))
    return np.flatnonzero(cluster.runnable & ~np.isnan(tasks))


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


def closed_form(place: Frontier, rule: Criterion, own: Array) -> Array:
    """Weights at which efficient tasks X are optimal: from supporting prices, or for max-min `u_n X_n`."""
    users, alpha = place.polytope.users, rule.alpha
    level = _share(rule, users) * place.tasks
    if np.isinf(alpha):
        return level
    log_budget = alpha * np.log(own) + (1 - alpha) * np.log(level)  # those that own weights ask for
    log_budget = np.clip(log_budget - np.median(log_budget), -9, 9)  # beyond, the linear program sees nothing
    budgets = _nearest(place, np.exp(log_budget))
    log_budget = log_budget if budgets is None else np.log(budgets)
    found = (log_budget + (alpha - 1) * np.log(level)) / alpha
    return np.asarray(np.exp(found - found.mean()))


def _nearest(place: Frontier, wanted: Array) -> Array | None:
    """Budgets (users,) of a normal at efficient tasks, at least those wanted, of which the largest multiple is least.

    The unknowns are prices of full rows and of task limits that bind, budgets, and that multiple.
    """
    polytope, tasks, fractions = place.polytope, place.tasks, place.fractions
    users, user, pairs = len(tasks), polytope.pair_user, len(polytope.pair_user)
    rows = np.flatnonzero(1 - polytope.use @ fractions <= _ZERO)
    limited = np.flatnonzero(tasks >= polytope.limit * (1 - 1e-7))
    own = sp.csr_matrix((np.ones(pairs), (np.arange(pairs), user)), shape=(pairs, users))
    cost = sp.diags(tasks[user] / polytope.gamma) @ polytope.use[rows].T
    least = sp.hstack([cost, own[:, limited], -own, sp.csr_matrix((pairs, 1))], format="csr")  # 0 where tasks run
    prices, paying = len(rows) + len(limited), fractions > _ZERO
    most = sp.hstack([sp.csr_matrix((users, prices)), -sp.identity(users), sp.csr_matrix(wanted[:, None])])
    lower = sp.vstack([least[~paying], most])
    low = np.concatenate([np.zeros(prices), wanted, [0.0]])
    solved = optimize.linprog(
        np.append(np.zeros(prices + users), 1.0), A_ub=-lower.tocsr(), b_ub=np.zeros(lower.shape[0]),
        A_eq=least[paying], b_eq=np.zeros(int(paying.sum())), bounds=np.transpose([low, np.full(len(low), np.inf)]),
        method="highs", options=_linear.highs(),
    )  # fmt: skip
    return np.asarray(solved.x[prices:-1]) if solved.status == 0 else None


def _share(rule: Criterion, users: Index) -> Array:
    """The share per task, (users,); of proportional servers that of the first, and at alpha = 1 it cancels anyway."""
    if rule.share.ndim == 1:
        return rule.share[users]
    usable = np.isfinite(rule.share[users])
    return np.asarray(rule.share[users][np.arange(len(users)), usable.argmax(axis=1)])
