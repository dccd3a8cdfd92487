"""Judgement: how good an allocation is, from (cluster, tasks, criterion) alone. It knows no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..base.errors import DataError
from ..model import _intake
from ..model._arrays import Array, Frozen, Index, deferred, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion, FairnessEfficiency, virtual_share_per_task
from ..model.merging import Split, merge, unmerged
from ..model.polytope import Polytope
from ..model.problem import Problem
from .backward import BackwardError, backward_error, by_server, log_price_per_task, searched
from .blocking import Blocking, blocking
from .bottleneck import exploitability, rises, taking
from .condition import conditions
from .ill_scaled import SEEN, advice, ill_scaling
from .leximin import SUFFICIENT, distances, lexicographic_rise, maxmin_condition
from .rational import tried

#: The measure of a certificate of tasks of which nothing but feasibility is claimed.
UNJUDGED = "no criterion"


@dataclass(frozen=True)
class Certificate(Frozen):
    """Two numbers that vouch for an allocation, both 0 for an exact answer; and what they mean for each user's tasks.

    Attributes
    ----------
    feasibility : float
        Largest relative overuse of a capacity or task limit, lack of a floor, largest negative or ineligible share.
    optimality : float
        Relative; `measure` says of what.
    measure : str
        `backward error` (finite alpha: by how much data must change for the tasks to be exact), `lexicographic rise`,
        `distance from the optimum` (exact, of a user's tasks), `exploitability` (PS-DSF: the relative rise in tasks
        that a server owes a user), `complaint`, or, where no criterion is stated, `no criterion`: `optimality` is 0.
    worst : str
        What the larger of the two is largest for, such as "largest for user 'b' on server 's'". It says nothing about
        how large that is: also of an exact answer something is the worst, by a rounding error.
    gap : float or None
        Welfare gap of a global program with finite alpha: nobody can have more welfare by more than this part of
        `sum_n x_n dF/dx_n`. It vouches for welfare, not for tasks.
    conditions : (users,) or None
        By what factor, at most and to first order, a relative change of the data moves each user's tasks; infinite
        where nothing is proved, NaN or, of all, `None` where it is not known. Estimated when it is first read.
    """

    feasibility: float
    optimality: float
    measure: str
    worst: str
    gap: float | None = None
    conditions: Array | None = field(default_factory=lambda: None, compare=False)

    @property
    def judged(self) -> bool:
        """True if optimality was measured."""
        return self.measure != UNJUDGED

    @property
    def residual(self) -> float:
        """The larger of the two; infinite when either is not a number."""
        values = (self.feasibility, self.optimality)
        return float(max(values)) if all(value == value for value in values) else float("inf")

    @property
    def condition(self) -> float:
        """The largest of `conditions`: errors in tasks are about this times `optimality`, at most; NaN if unknown."""
        known = self.conditions
        return float("nan") if known is None else float(np.max(known, initial=1.0))

    def passes(self, tol: float = 1e-6) -> bool:
        """True if feasibility and optimality are within `tol`."""
        return self.residual <= tol

    def to_dict(self) -> dict[str, float | str | None]:
        """All but the conditions of single users, for tables and files."""
        names = ("feasibility", "optimality", "measure", "worst", "gap", "condition")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        if not self.judged:
            return f"Certificate(feasibility={self.feasibility:.1e}, {self.measure}; {self.worst})"
        return f"Certificate(feasibility={self.feasibility:.1e}, {self.measure}={self.optimality:.1e}; {self.worst})"


def feasible(cluster: Cluster, tasks: Array, log_prices: Array | None = None) -> tuple[Certificate, None]:
    """The certificate of tasks of which nothing is claimed but that they are feasible."""
    violation, where = feasibility(cluster, tasks)
    return Certificate(violation, 0.0, UNJUDGED, where), None


def feasibility(
    cluster: Cluster, tasks: Array | Split, limits: Array | None = None, floor: Array | None = None
) -> tuple[float, str]:
    """Largest relative violation of the feasible set by tasks, and where.

    `max(use/c - 1, x_n/limit - 1, 1 - x_n/floor, -x/gamma)`; infinite for a task on a server that cannot run it. Of a
    split, all but the use of capacities is judged on the merged servers, where it is the same.

    Parameters
    ----------
    cluster : whose capacities and eligibility hold
    tasks : (users, servers), a table, or split over merged servers
    limits : (users,), the most tasks `limit`; by default the cluster's `max_tasks`
    floor : (users,), the least tasks, 0 for none; by default none

    Returns
    -------
    violation : relative, 0 where nothing is violated; infinite too where tasks have another shape or are not finite
    where : in words
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
    with np.errstate(over="ignore"):  # a limit of zero
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

#: A welfare gap is at most the error times users and A, or twice that, of errors that are no larger.
_GAIN, _GOOD = 100.0, 1e-3
#: The part of the work on an exact optimum that is done only to make sure.
_CAUTION = 0.05


def certify(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, log_prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    """The certificate of tasks under a criterion, and the prices that prove it.

    For finite alpha it is the backward error (`backward_error`) with the welfare gap (`duality_gap`), for max-min over
    a pool or servers the lexicographic rise (`lexicographic_rise`), for PS-DSF, and max-min of servers that do not
    coordinate, the exploitability (`exploitability`); all with the largest violation of the feasible set
    (`feasibility`). Max-min of small clusters that doubles do not settle is measured from its exact optimum.

    Parameters
    ----------
    cluster : what was shared
    tasks : (users, servers), a table or split over merged servers; of another shape, or not finite, the certificate is
        infinite
    criterion : what is fair, for the users of `cluster`
    log_prices : (servers, resources), logarithms of prices per unit of resource, -inf for none, from whoever made the
        tasks: better ones make the bound sharper, wrong ones cannot make it pass. For max-min they may be one set per
        level, (levels, servers, resources). None: linear programs look for them; exploitability needs none

    Returns
    -------
    Certificate
    prices : log prices like those given, or None where others, or none, prove it

    Raises
    ------
    DataError
        `log_prices` are no numbers, or of another shape.

    Source: docs/certificates.md proves the bounds.
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
    """`certify`, with the scaled data of the problem. What certifies (use, gaps, prices) is computed from `tasks`.

    Parameters
    ----------
    problem : cluster and criterion
    tasks, log_prices : as of `certify`

    Returns
    -------
    As `certify`.
    """
    cluster, criterion, limits = problem.cluster, problem.criterion, problem.limits
    tasks = tasks if isinstance(tasks, Split) else np.asarray(tasks, dtype=float)
    violation, where = feasibility(cluster, tasks, limits, criterion.floor)
    if not np.isfinite(violation):
        return Certificate(violation, np.inf, _measure(criterion), where), None
    if criterion.scope == "per_server":
        limits = np.where(limits > 0, np.inf, 0.0)  # of what each server owes, which knows of no tasks elsewhere
    has_levels = bool(np.isinf(criterion.alpha)) and criterion.scope in ("pool", "servers")
    if isinstance(tasks, Split):
        split = tasks
    else:
        split = Split.from_table(merge(cluster, criterion.scale_free, users=False), tasks)
        # Over servers max-min is the same however tasks are split over proportional ones.
        if not (has_levels or split.matches(tasks)):
            split = Split(unmerged(cluster), tasks)
    merging = split.merging
    if criterion.scope in ("game", "per_server") and not merging.trivial:
        criterion = replace(criterion, share=virtual_share_per_task(merging.cluster))
    same = merging.cluster is cluster and limits is problem.limits
    polytope = problem.polytope if same else Polytope(merging.cluster, limits)
    # Merged servers by a name that the cluster has; prices made for max-min are no hint for others.
    servers, hint = [cluster.servers[i] for i in merging.first_server], None
    if log_prices is not None and (log_prices.ndim == 2 or has_levels):
        hint = log_prices[..., merging.first_server, :]
    judge = _finite if np.isfinite(criterion.alpha) else _infinite
    found = judge(polytope, criterion, split.merged, limits, hint, servers)
    prices, conditions = merging.split_prices(found.log_prices), found.conditions
    if has_levels:
        proof = None if prices is None else np.exp(prices)
        conditions = deferred(partial(maxmin_condition, cluster, split, criterion, proof))
    where = where if violation > found.optimality else found.where
    return Certificate(violation, found.optimality, found.measure, where, found.gap, conditions), prices


@dataclass(frozen=True)
class ByCriterion:
    """The judge who knows a criterion and no mechanism, of any tasks: files may hold any finite number."""

    criterion: Criterion

    def __call__(self, cluster: Cluster, tasks: Array, log_prices: Array | None) -> tuple[Certificate, Array | None]:
        with np.errstate(over="ignore", invalid="ignore"):
            return certify(cluster, tasks, self.criterion, log_prices)


class _Judgement(NamedTuple):
    """Parts of a certificate, and log prices of merged servers that prove it."""

    optimality: float
    measure: str
    where: str
    log_prices: Array | None
    gap: float | None = None
    conditions: Array | None = None


def _measure(criterion: Criterion) -> str:
    if np.isfinite(criterion.alpha):
        return "backward error"
    return "exploitability" if criterion.scope == "game" else "lexicographic rise"


def _finite(
    polytope: Polytope, criterion: Criterion, tasks: Array, limits: Array, hint: Array | None, servers: Sequence[str]
) -> _Judgement:
    """Backward error, welfare gap and conditions."""
    if hint is None:
        found = searched(polytope, criterion, tasks, servers)
    else:
        found = backward_error(polytope, criterion, tasks, polytope.log_row_prices(hint), servers)
    welfare = None
    if criterion.scope != "game":
        welfare = min(duality_gap(polytope, tasks, criterion, rows) for rows in (found.every_row, found.log_rows))
    least = (welfare or 0.0) / (_GAIN * len(tasks) * criterion.stiffness)
    if found.error < min(least, _GOOD) and not criterion.floor.any():  # at floors users may pay far too much
        found = replace(found, error=least, where="the welfare, whose gap no smaller error explains")
    where = f"largest for {found.where}" if found.error > 0 else found.where
    prices = polytope.log_unit_prices(found.log_rows)
    # Where efficiency ties all users conditions are not known.
    tied = isinstance(criterion, FairnessEfficiency)
    known: Array | None = None if tied else deferred(partial(conditions, polytope, criterion, tasks, found))
    return _Judgement(found.error, _measure(criterion), where, prices, welfare, known)


def _infinite(
    polytope: Polytope, criterion: Criterion, tasks: Array, limits: Array, hint: Array | None, servers: Sequence[str]
) -> _Judgement:
    """Largest possible rise, or the distance from the optimum of a small cluster too ill-scaled for doubles."""
    cluster, alone = polytope.cluster, criterion.scope in ("game", "per_server")
    proof, where, known = None, "nobody can rise", None

    def largest(who: Index, i: int) -> str:
        return f"largest for user {cluster.users[who[i]]!r}" + (f" on server {servers[i]!r}" if alone else "")

    if alone or len(servers) == 1:
        rise, who = exploitability(polytope, tasks, criterion)
        i = int(rise.argmax())
        where = largest(who, i) if rise[i] > 0 else where
        known = deferred(partial(taking, polytope, tasks, criterion)) if criterion.scope == "game" else None
    else:
        prices = hint
        if hint is not None:  # the largest of each level is 1
            prices = np.exp(hint - np.nan_to_num(hint.max(axis=(-2, -1), keepdims=True), neginf=0.0))
        most, proof, where = lexicographic_rise(polytope, tasks, criterion, prices)
        rise = np.array([most])
    with np.errstate(divide="ignore"):
        log_prices = None if proof is None else np.log(proof)
    found = _Judgement(float(rise.max()), _measure(criterion), where, log_prices, None, known)
    # Prices may seem to prove what is not so where users are lost in the rounding of others.
    proved = found.optimality <= SUFFICIENT
    doubtful = not proved or (
        criterion.scope != "per_server"
        and tried(cluster, limits, _CAUTION)  # more is to be known for little work
        and (found.optimality > 1e-9 or ill_scaling(polytope, criterion)[0] < SEEN)
    )
    if criterion.scope == "game" or not doubtful:
        return found
    requested = np.ones(1, dtype=bool) if proved else rise > SUFFICIENT
    apart, who = distances(cluster, tasks, criterion, limits, requested, _CAUTION if proved else 1.0)
    i = int(apart.argmax())
    if apart[i] == np.inf or (apart[i] > SUFFICIENT and not proved):
        return found
    most = max(float(apart[i]), float(rise[~requested].max(initial=0.0)))  # doubles do on other servers
    return _Judgement(most, "distance from the optimum", largest(who, i), found.log_prices if proved else None)


def duality_gap(polytope: Polytope, tasks: Array, criterion: Criterion, log_rows: Array) -> float:
    """The relative welfare gap of tasks, from prices alone: a bound on what their welfare is below the largest.

    It is the sum of every user's Fenchel-Young loss, of `sum_ni x_ni (p_ni - p_n)` and of the price of what is idle,
    over `sum_n x_n dF/dx_n`. Any prices give a bound. Infinite where tasks have no finite welfare.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    tasks : (users, servers), tasks of the polytope's cluster
    criterion : of the same cluster, with finite alpha, in a scope other than `game`
    log_rows : (rows,), log prices of whole capacities in the scale of `dF/dx`, a row being a (server, resource) that
        somebody can use; -inf for none

    Source: docs/certificates.md, "The welfare gap".
    """
    if not len(polytope.users):
        return 0.0
    own, user = criterion.restrict(polytope.users), polytope.pair_user
    first = polytope.start[:-1]
    here = tasks[polytope.users[user], polytope.pair_server]
    x = np.add.reduceat(here, first)
    if not (x >= 0).all() or not x.any() or not (criterion.starves or (x > 0).all()):
        return np.inf
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        log_marginal = own.log_marginal(x)
        top = float(log_marginal.max())
        cost = np.exp(log_price_per_task(polytope, log_rows) - top)
        least = np.minimum.reduceat(cost, first)
        loss = own.bregman(x, log_marginal - top, least, np.minimum(own.floor, x), polytope.reach)
        idle = np.exp(log_rows - top) @ np.maximum(1 - polytope.used(tasks), 0.0)
        dear = np.where(here > 0, cost - least[user], 0.0)
        missing = float(loss.sum() + here @ dear + idle)
        gap = missing / float(np.exp(log_marginal - top) @ x)
    return gap if np.isfinite(gap) else np.inf
