"""Certificates: bounds on the error of an allocation, from cluster, tasks and criterion alone.

In this package the *rise* of a user is a bound on the relative increase of its tasks that a criterion would still
permit. It is zero at an exact optimum of max-min. No certificate relies on the engine that computed the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..base.errors import DataError
from ..model import _intake
from ..model._arrays import Array, Frozen, Index, deferred, ratio
from ..model.cluster import Cluster, SparseCluster
from ..model.criterion import Criterion, FairnessEfficiency, virtual_share_per_task
from ..model.merging import Split, merge, unmerged
from ..model.polytope import Polytope
from ..model.problem import Problem
from ..model.tree_filling import TreeCriterion
from . import sparse_pool
from .backward import BackwardError, backward_error, by_server, log_price_per_task, searched
from .blocking import Blocking, blocking
from .bottleneck import exploitability, rises, taking
from .condition import conditions
from .ill_scaled import SEEN, advice, ill_scaling
from .leximin import SUFFICIENT, distances, lexicographic_rise, maxmin_condition
from .rational import tried
from .stages import over_limits, rise_when_stopped

#: `Certificate.measure` of a certificate that judges feasibility only.
UNJUDGED = "no criterion"


@dataclass(frozen=True)
class Certificate(Frozen):
    r"""Certificate of an allocation: relative infeasibility and suboptimality, both 0 for an exact solution.

    .. math:: \text{residual} = \max(\text{feasibility},\ \text{optimality})

    Attributes
    ----------
    feasibility : float
        Largest relative violation of a capacity, task limit or floor, or negative or ineligible fraction.
    optimality : float
        Dimensionless error of the kind that `measure` names.
    measure : str
        `backward error` (finite alpha: relative change of the data that makes the tasks optimal), `lexicographic rise`
        (max-min: largest relative increase of a user's tasks at no loss to users at or below its level), `rise when
        stopped` (`Tree`), `distance from the optimum` (largest relative error of a user's tasks, exact),
        `exploitability` (PS-DSF: largest relative increase of a user's tasks that a unilateral deviation of one server
        allows), `complaint` (`BottleneckFairness`), `distance from partial allocation`, or, without a criterion,
        `no criterion` with `optimality` 0.
    worst : str
        Place at which the larger of feasibility and optimality is attained, such as "largest for user 'b' on server
        's'", even if that number is only a rounding error.
    gap : float or None
        Welfare gap of a global program with finite alpha, a bound on the loss of welfare relative to
        :math:`\sum_n x_n \, \partial F / \partial x_n`. It bounds welfare, not tasks.
    conditions : (users,) or None
        Condition numbers: to first order, bounds on the ratio of the relative change of each user's tasks to the
        relative change of the data; infinite where nothing is proved, NaN or None where unknown. They are computed when
        they are first read.

    >>> import fairopt as fo
    >>> certificate = fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).certificate
    >>> certificate.passes(1e-9), certificate.measure
    (True, 'lexicographic rise')
    """

    feasibility: float
    optimality: float
    measure: str
    worst: str
    gap: float | None = None
    conditions: Array | None = field(default_factory=lambda: None, compare=False)

    @property
    def judged(self) -> bool:
        """True if optimality under a criterion is judged, and not only feasibility."""
        return self.measure != UNJUDGED

    @property
    def residual(self) -> float:
        """Larger of feasibility and optimality; infinite if either is NaN."""
        values = (self.feasibility, self.optimality)
        return float(max(values)) if all(value == value for value in values) else float("inf")

    @property
    def condition(self) -> float:
        """Largest of `conditions`, which bounds errors of tasks relative to `optimality`; NaN if unknown."""
        known = self.conditions
        return float("nan") if known is None else float(np.max(known, initial=1.0))

    def passes(self, tol: float = 1e-6) -> bool:
        """True if feasibility and optimality are at most `tol`."""
        return self.residual <= tol

    def to_dict(self) -> dict[str, float | str | None]:
        """Dictionary of all fields; `conditions` are represented by the largest condition number, `condition`."""
        names = ("feasibility", "optimality", "measure", "worst", "gap", "condition")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        if not self.judged:
            return f"Certificate(feasibility={self.feasibility:.1e}, {self.measure}; {self.worst})"
        return f"Certificate(feasibility={self.feasibility:.1e}, {self.measure}={self.optimality:.1e}; {self.worst})"


def feasible(cluster: Cluster, tasks: Array, log_prices: Array | None = None) -> tuple[Certificate, None]:
    """Certify that tasks (users, servers) are feasible for `cluster`, and nothing else (`feasibility`).

    The results are a certificate and None. `log_prices` are ignored, so that the function has the signature of `Judge`.

    >>> import numpy as np, fairopt as fo
    >>> fo.certificates.feasible(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[3.0], [2.0]]))[0].measure
    'no criterion'
    """
    violation, where = feasibility(cluster, tasks)
    return Certificate(violation, 0.0, UNJUDGED, where), None


def feasibility(
    cluster: Cluster, tasks: Array | Split, limits: Array | None = None, floor: Array | None = None
) -> tuple[float, str]:
    r"""Largest relative violation of the feasible set, and where it occurs.

    .. math:: \max\Big(\frac{\sum_n x_{ni} d_{nr}}{c_{ir}} - 1,\ \frac{x_n}{q_n} - 1,\ 1 - \frac{x_n}{\underline{x}_n},\
        -\frac{x_{ni}}{\gamma_{ni}},\ 0\Big)

    The violation is infinite for tasks on a server that cannot run them. For tasks on merged servers, only the term of
    capacities is evaluated on the original servers; the other terms are equivalent on merged servers.

    Parameters
    ----------
    cluster : Cluster
    tasks : (users, servers)
        An array, or tasks split over merged servers.
    limits : (users,), optional
        Task limits :math:`q_n`; by default the cluster's `max_tasks`.
    floor : (users,), optional
        Lower bounds :math:`\underline{x}_n` on tasks, 0 for users without a floor. Default: 0.

    Returns
    -------
    violation : float
        Dimensionless; infinite if tasks have another shape or are not finite.
    where : str
        Place of the largest violation, in words.

    >>> import numpy as np, fairopt as fo
    >>> fo.certificates.feasibility(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[3.0], [2.4]]))[1]
    "largest for 'resource1' of 'server1', overused"
    """
    split = tasks if isinstance(tasks, Split) else Split(unmerged(cluster), tasks)
    table, on = split.merged, split.merging.cluster
    if table.shape != on.shape[:2] or not np.isfinite(table).all():
        return np.inf, "tasks are not finite numbers of shape (users, servers)"
    limits = cluster.max_tasks if limits is None else limits
    unusable = (table != 0) & ~on.usable
    if unusable.any():
        n, i = np.argwhere(unusable)[0]
        server = cluster.servers[split.merging.first_server[i]]
        return np.inf, f"user {cluster.users[n]!r} has tasks on {server!r}, which cannot run them"
    total, below = split.user_tasks, np.zeros(len(table))
    negative = (table < 0).any(axis=1)
    below[negative] = ratio(-table[negative], on.gamma[negative]).max(axis=1)
    short = np.zeros(len(total)) if floor is None else ratio(floor - total, floor)
    with np.errstate(over="ignore"):  # division by a limit of zero
        over_limit = total / np.maximum(limits, np.finfo(float).tiny) - 1
    of_users = ((over_limit, "above its task limit"), (short, "below its floor"), (below, "with negative tasks"))
    over = ratio(split.use, cluster.capacity) - 1
    values, what = max(((over, "overused"), *of_users), key=lambda one: one[0].max())
    if not values.max() > 0:
        return 0.0, "feasible"
    i, *r = np.unravel_index(values.argmax(), values.shape)
    whom = f"{cluster.resources[r[0]]!r} of {cluster.servers[i]!r}" if r else f"user {cluster.users[i]!r}"
    return float(values.max()), f"largest for {whom}, {what}"


__all__ = [
    "BackwardError",
    "Blocking",
    "ByCriterion",
    "Certificate",
    "advice",
    "backward_error",
    "blocking",
    "by_server",
    "certify",
    "certify_problem",
    "conditions",
    "duality_gap",
    "exploitability",
    "feasibility",
    "feasible",
    "lexicographic_rise",
    "rises",
]

#: For backward errors up to `_GOOD`, a welfare gap is at most `_GAIN` times the product of the backward error, the
#: number of users and the criterion's `stiffness`.
_GAIN, _GOOD = 100.0, 1e-3
#: Largest unused fraction of a user's limit at which its own time has a price in the welfare gap.
_USED_UP = 1e-6
#: Fraction of `rational.WORK` that may be used to confirm a certificate that passes.
_CAUTION = 0.05


def certify(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, log_prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    r"""Certify tasks under a criterion, and return the certificate and the log prices of its proof.

    Optimality is measured by the backward error (`backward_error`) for finite alpha, with the welfare gap
    (`duality_gap`) of global programs; by the lexicographic rise (`lexicographic_rise`) for max-min over a pool or
    servers; and by the exploitability (`exploitability`) for PS-DSF and per-server max-min. Feasibility is the largest
    violation of the feasible set (`feasibility`). Max-min allocations of small clusters that floating point does not
    decide are compared with their exact optimum. For proportional fairness on one pool, for example, tasks are optimal
    at prices :math:`\lambda_r` if and only if

    .. math:: \frac{\phi_n}{x_n} = \sum_r \lambda_r d_{nr}, \qquad
        \lambda_r \Big(c_r - \sum_n x_n d_{nr}\Big) = 0, \qquad \lambda \ge 0

    Parameters
    ----------
    cluster : Cluster
    tasks : (users, servers)
        An array, or tasks split over merged servers; for another shape, or NaN, the certificate is infinite.
    criterion : Criterion
        Criterion for the users of `cluster`.
    log_prices : (servers, resources), optional
        Logarithms of prices per unit of resource, -inf for zero; for max-min possibly (levels, servers, resources).
        Better prices reduce the bound, and no prices can make a wrong allocation pass. Without `log_prices`, prices
        are determined by linear programs; exploitability requires no prices.

    Returns
    -------
    certificate : Certificate
    prices : array or None
        Log prices of the proof, in the shape of `log_prices`; None if the proof does not depend on `log_prices`.

    Raises
    ------
    DataError
        `log_prices` are not numbers, or have another shape.

    Source: docs/certificates.md has the proofs.

    >>> import numpy as np, fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> fo.certificates.certify(cluster, np.array([[3.0], [2.0]]), fo.DRF().criterion(cluster))[0].passes(1e-9)
    True
    """
    if log_prices is not None:
        log_prices, shape = _intake.plain(log_prices, "log_prices"), cluster.capacity.shape
        if log_prices.ndim not in (2, 3) or log_prices.shape[-2:] != shape:
            raise DataError(
                f"log_prices has shape {log_prices.shape}; it must be (servers, resources) = {shape}, or of max-min "
                f"(levels, servers, resources)"
            )
    return certify_problem(Problem(cluster, criterion), tasks, log_prices)


def certify_problem(
    problem: Problem, tasks: Array | Split, log_prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    r"""Certify tasks (users, servers) of a problem, as `certify` does, with the problem's cached feasible set.

    .. math:: z_{ni} = \frac{x_{ni}}{\gamma_{ni}} \ge 0, \qquad
        \sum_n \frac{\gamma_{ni} d_{nr}}{c_{ir}} z_{ni} \le 1

    Parameters
    ----------
    problem : Problem
        Cluster and criterion.
    tasks, log_prices
        Arguments of `certify`, whose results are returned.

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.model.problem import Problem
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> problem = Problem(cluster, fo.DRF().criterion(cluster))
    >>> fo.certificates.certify_problem(problem, np.array([[3.0], [2.0]]))[0].passes(1e-9)
    True
    """
    cluster, criterion, limits = problem.cluster, problem.criterion, problem.limits
    tasks = tasks if isinstance(tasks, Split) else np.asarray(tasks, dtype=float)
    violation, where = feasibility(cluster, tasks, limits, criterion.floor)
    if not np.isfinite(violation):
        return Certificate(violation, np.inf, _measure(criterion), where), None
    if isinstance(cluster, SparseCluster):
        x = tasks.user_tasks if isinstance(tasks, Split) else tasks.sum(axis=1)
        rise = sparse_pool.rise(cluster, x, criterion, limits)
        n = int(rise.argmax())
        where = where if violation > rise[n] else f"largest for user {cluster.users[n]!r}"
        return Certificate(violation, float(rise[n]), _measure(criterion), where), None
    if criterion.scope == "per_server":
        limits = np.where(limits > 0, np.inf, 0.0)  # each server is judged separately, without tasks on other servers
    has_levels = bool(np.isinf(criterion.alpha)) and criterion.scope in ("pool", "servers")
    if isinstance(tasks, Split):
        split = tasks
    else:
        split = Split.from_table(merge(cluster, criterion.scale_free, users=False), tasks)
        # The max-min criterion over servers does not depend on the split of tasks over proportional servers.
        if not (has_levels or split.matches(tasks)):
            split = Split(unmerged(cluster), tasks)
    merging = split.merging
    if criterion.scope in ("game", "per_server") and not merging.trivial:
        criterion = replace(criterion, share=virtual_share_per_task(merging.cluster))
    same = merging.cluster is cluster and limits is problem.limits
    polytope = problem.polytope if same else Polytope(merging.cluster, limits)
    # A merged server has the name of its first server; prices by level are hints only for max-min.
    servers, hint = [cluster.servers[i] for i in merging.first_server], None
    if log_prices is not None and (log_prices.ndim == 2 or has_levels):
        hint = log_prices[..., merging.first_server, :]
    judge = _finite if np.isfinite(criterion.alpha) else _infinite
    if isinstance(criterion, TreeCriterion):
        judge, has_levels = _of_tree, False
        filling = criterion.filling(polytope.cluster, polytope.users)
        violation, where = max((violation, where), over_limits(polytope, filling, split.merged))
    found = judge(polytope, criterion, split.merged, limits, hint, servers)
    prices, conditions = merging.split_prices(found.log_prices), found.conditions
    if has_levels and len(polytope.timed):
        conditions = None
    elif has_levels:
        proof = None if prices is None else np.exp(prices)
        conditions = deferred(partial(maxmin_condition, cluster, split, criterion, proof))
    where = where if violation > found.optimality else found.where
    return Certificate(violation, found.optimality, found.measure, where, found.gap, conditions), prices


@dataclass(frozen=True)
class ByCriterion:
    """Function that certifies tasks (users, servers) by a criterion, without warnings for data of extreme size.

    >>> import numpy as np, fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]])
    >>> judge = fo.certificates.ByCriterion(fo.DRF().criterion(cluster))
    >>> judge(cluster, np.array([[3.0], [2.0]]), None)[0].passes(1e-9)
    True
    """

    criterion: Criterion

    def __call__(self, cluster: Cluster, tasks: Array, log_prices: Array | None) -> tuple[Certificate, Array | None]:
        with np.errstate(over="ignore", invalid="ignore"):
            return certify(cluster, tasks, self.criterion, log_prices)


class _Judgement(NamedTuple):
    """Fields of a certificate, and the log prices of its proof for merged servers."""

    optimality: float
    measure: str
    where: str
    log_prices: Array | None
    gap: float | None = None
    conditions: Array | None = None


def _measure(criterion: Criterion) -> str:
    if isinstance(criterion, TreeCriterion):
        return "rise when stopped"
    if np.isfinite(criterion.alpha):
        return "backward error"
    return "exploitability" if criterion.scope == "game" else "lexicographic rise"


def _finite(
    polytope: Polytope, criterion: Criterion, tasks: Array, limits: Array, hint: Array | None, servers: Sequence[str]
) -> _Judgement:
    """Backward error, welfare gap and condition numbers."""
    if hint is None:
        found = searched(polytope, criterion, tasks, servers)
    else:
        found = backward_error(polytope, criterion, tasks, polytope.log_row_prices(hint), servers)
    welfare = None
    if criterion.scope != "game":
        welfare = min(duality_gap(polytope, tasks, criterion, rows) for rows in (found.every_row, found.log_rows))
    least = (welfare or 0.0) / (_GAIN * len(tasks) * criterion.stiffness)
    # At floors the bound does not hold, since users' costs may exceed their marginal utilities.
    if found.error < min(least, _GOOD) and not criterion.floor.any():
        found = replace(found, error=least, where="the welfare, whose gap no smaller error explains")
    where = f"largest for {found.where}" if found.error > 0 else found.where
    prices = polytope.log_unit_prices(found.log_rows)
    # Condition numbers are unknown if the objective depends on a sum over all users, or if own time can have a price.
    tied = isinstance(criterion, FairnessEfficiency) or len(polytope.timed) > 0
    known: Array | None = None if tied else deferred(partial(conditions, polytope, criterion, tasks, found))
    return _Judgement(found.error, _measure(criterion), where, prices, welfare, known)


def _infinite(
    polytope: Polytope, criterion: Criterion, tasks: Array, limits: Array, hint: Array | None, servers: Sequence[str]
) -> _Judgement:
    """Largest possible increase of tasks, or the distance from the exact optimum of a small ill-conditioned cluster."""
    cluster, alone = polytope.cluster, criterion.scope in ("game", "per_server")
    proof, where, known = None, "no user can rise", None

    def largest(who: Index, i: int) -> str:
        return f"largest for user {cluster.users[who[i]]!r}" + (f" on server {servers[i]!r}" if alone else "")

    if alone or len(servers) == 1:
        rise, who = exploitability(polytope, tasks, criterion)
        i = int(rise.argmax())
        where = largest(who, i) if rise[i] > 0 else where
        known = deferred(partial(taking, polytope, tasks, criterion)) if criterion.scope == "game" else None
    else:
        prices = hint
        if hint is not None:  # scaled to a largest price of 1 per level
            prices = np.exp(hint - np.nan_to_num(hint.max(axis=(-2, -1), keepdims=True), neginf=0.0))
        most, proof, where = lexicographic_rise(polytope, tasks, criterion, prices)
        rise = np.array([most])
    with np.errstate(divide="ignore"):
        log_prices = None if proof is None else np.log(proof)
    found = _Judgement(float(rise.max()), _measure(criterion), where, log_prices, None, known)
    # Due to rounding, the bound that prices prove may be too small for users with negligible demand.
    proved = found.optimality <= SUFFICIENT
    doubtful = not proved or (
        criterion.scope != "per_server"
        and tried(cluster, limits, _CAUTION)
        and (found.optimality > 1e-9 or ill_scaling(polytope, criterion)[0] < SEEN)
    )
    if criterion.scope == "game" or not doubtful:
        return found
    requested = np.ones(1, dtype=bool) if proved else rise > SUFFICIENT
    apart, who = distances(cluster, tasks, criterion, limits, requested, _CAUTION if proved else 1.0)
    i = int(apart.argmax())
    if apart[i] == np.inf or (apart[i] > SUFFICIENT and not proved):
        return found
    most = max(float(apart[i]), float(rise[~requested].max(initial=0.0)))
    return _Judgement(most, "distance from the optimum", largest(who, i), found.log_prices if proved else None)


def _of_tree(
    polytope: Polytope,
    criterion: Criterion,
    tasks: Array,
    limits: Array,
    hint: Array | None,
    servers: Sequence[str],
) -> _Judgement:
    """Largest possible increase of a user's tasks at the moment at which progressive filling stops the user.

    It is 0 if no user can run tasks.
    """
    assert isinstance(criterion, TreeCriterion)
    filling = criterion.filling(polytope.cluster, polytope.users)
    log_prices = np.full((1, *polytope.cluster.capacity.shape), -np.inf) if hint is None else hint
    log_prices = log_prices.reshape(-1, *polytope.cluster.capacity.shape)
    most = np.nan_to_num(log_prices.max(axis=(-2, -1), keepdims=True), neginf=0.0)
    rise = rise_when_stopped(polytope, filling, tasks, np.exp(log_prices - most))
    n = int(rise.argmax()) if len(rise) else -1
    if n < 0:
        return _Judgement(0.0, _measure(criterion), "no user can run anything", hint)
    where = f"largest for user {polytope.cluster.users[polytope.users[n]]!r}"
    return _Judgement(float(rise[n]), _measure(criterion), where, hint)


def duality_gap(polytope: Polytope, tasks: Array, criterion: Criterion, log_rows: Array) -> float:
    r"""Relative welfare gap of tasks at given prices, an upper bound on the suboptimality of their welfare F.

    .. math:: \frac{1}{\sum_n x_n \partial F / \partial x_n} \Big(\sum_n B_n(x_n, p_n) + \sum_{ni} x_{ni} (p_{ni} - p_n)
        + \sum_{ir} \lambda_{ir} \big(c_{ir} - \sum_n x_{ni} d_{nr}\big)\Big)

    with the cost :math:`p_{ni}` of a task on server i, the least cost :math:`p_n = \min_i p_{ni}`, and the
    Fenchel-Young loss B (`Criterion.bregman`). Every price vector gives a bound. The bound is infinite if welfare is
    not finite, and 0 if no user can run tasks.

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    tasks : (users, servers)
    criterion : Criterion
        Criterion of finite alpha, in a scope other than `game`.
    log_rows : (rows,)
        Log prices of whole capacities in units of :math:`x_n \, \partial F / \partial x_n`, -inf for zero; a row is a
        (server, resource) that some user can use.

    Source: docs/certificates.md, "The welfare gap".

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster, log_rows = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.log([1.8, 0.2])
    >>> tasks = np.array([[45 / 11], [18 / 11]])
    >>> place = Polytope(cluster, cluster.max_tasks)
    >>> bool(fo.certificates.duality_gap(place, tasks, fo.CEEI().criterion(cluster), log_rows) < 1e-9)
    True
    """
    if not len(polytope.users):
        return 0.0
    own, user = criterion.restrict(polytope.users), polytope.pair_user
    first = polytope.start[:-1]
    here = polytope.work(tasks)
    x = np.add.reduceat(here, first)
    if not (x >= 0).all() or not x.any() or not (criterion.starves or (x > 0).all()):
        return np.inf
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        log_marginal = own.log_marginal(x)
        top = float(log_marginal.max())
        cost = np.exp(log_price_per_task(polytope, log_rows) - top)
        time = 0.0
        if len(polytope.timed):
            assert polytope.rate is not None
            lacking = (np.exp(log_marginal - top)[user] - cost) * polytope.rate
            left, price = np.maximum(1 - polytope.part_of_limit(here), 0.0), np.zeros(len(x))
            price[polytope.timed] = np.maximum(np.maximum.reduceat(lacking, first), 0.0)[polytope.timed]
            price = np.where(left <= _USED_UP, price, 0.0)  # any price proves a bound; this choice is nearly the best
            cost, time = (
                cost + price[user] / polytope.rate,
                float(price @ np.nan_to_num(left * polytope.quota, posinf=0.0)),
            )
        least = np.minimum.reduceat(cost, first)
        loss = own.bregman(x, log_marginal - top, least, np.minimum(own.floor, x), polytope.reach)
        idle = np.exp(log_rows - top) @ np.maximum(1 - polytope.used(tasks), 0.0)
        excess_cost = np.where(here > 0, cost - least[user], 0.0)
        missing = float(loss.sum() + here @ excess_cost + idle + time)
        gap = missing / float(np.exp(log_marginal - top) @ x)
    return gap if np.isfinite(gap) else np.inf
