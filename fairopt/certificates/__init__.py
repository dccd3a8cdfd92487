"""Judgement: how good an allocation is, from (cluster, tasks, criterion) alone. It knows no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..exact.rational import tried
from ..model._arrays import Array
from ..model._frozen import Frozen, deferred
from ..model.cluster import Cluster
from ..model.criterion import Criterion, virtual_share_per_task
from ..model.fairness_efficiency import FairnessEfficiency
from ..model.merging import merge, unmerged
from ..model.polytope import Polytope
from ..model.problem import Problem
from ..model.split import Split
from .backward import BackwardError, backward_error, by_server, log_price_per_task, searched
from .blocking import Blocking, blocking
from .bottleneck import exploitability, rises
from .condition import conditions
from .ill_scaled import SEEN, advice, ill_scaling
from .leximin import SUFFICIENT, distances, lexicographic_rise, maxmin_condition

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
        where nothing is proved, `None` where it is not known. Estimated when it is first read.
    """

    feasibility: float
    optimality: float
    measure: str
    worst: str
    gap: float | None = None
    conditions: Array | None = field(default_factory=lambda: None, compare=False)

    @property
    def judged(self) -> bool:
        """Does it say something of optimality?"""
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
        """Are both within `tol`?"""
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
    table, on = (tasks.merged, tasks.merging.cluster) if isinstance(tasks, Split) else (tasks, cluster)
    if table.shape != on.shape[:2] or not np.isfinite(table).all():
        return np.inf, "tasks are not finite numbers of shape (users, servers)"
    limits = cluster.max_tasks if limits is None else limits
    unusable = (table != 0) & ~on.usable
    if unusable.any():
        n, i = np.argwhere(unusable)[0]
        if isinstance(tasks, Split):
            i = np.flatnonzero(tasks.merging.server_of == i)[0]
        return np.inf, f"user {cluster.users[n]!r} has tasks on {cluster.servers[i]!r}, which cannot run them"
    use = tasks.use if isinstance(tasks, Split) else table.T @ cluster.demand
    over = np.divide(use, cluster.capacity, out=np.zeros_like(use), where=use > 0) - 1
    total = tasks.user_tasks if isinstance(tasks, Split) else table.sum(axis=1)
    with np.errstate(over="ignore"):  # a limit of zero
        over_limit = np.where(total > 0, total / np.maximum(limits, np.finfo(float).tiny), 0.0) - 1
    below = np.zeros(len(total))
    for n in np.flatnonzero((table < 0).any(axis=1)):
        below[n] = np.divide(-table[n], on.gamma[n], out=np.zeros(len(on.servers)), where=table[n] < 0).max()
    short = np.zeros(len(total))
    if floor is not None:
        short = np.divide(floor - total, floor, out=short, where=floor > 0)
    of_users = ((over_limit, "above its task limit"), (short, "below its floor"), (below, "with negative tasks"))
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

#: The part of the work on an exact optimum that is done only to make sure.
_CAUTION = 0.05


def certify(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, log_prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    """The certificate of tasks under a criterion, and the prices that prove it.

    For finite alpha it is the backward error (`backward_error`) with the welfare gap (`duality_gap`), for max-min over
    a pool or servers the lexicographic rise (`lexicographic_rise`), for PS-DSF, and max-min of servers that do not
    coordinate, the exploitability (`exploitability`); all with the largest violation of the feasible set
    (`feasibility`). Max-min of small clusters that doubles do not settle is measured from its exact optimum
    (`exact_distance`).

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

    Source: docs/certificates.md proves the bounds.
    """
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
    cluster, criterion = problem.cluster, problem.criterion
    tasks = tasks if isinstance(tasks, Split) else np.asarray(tasks, dtype=float)
    if log_prices is not None and log_prices.ndim > 2 and not _is_maxmin(criterion):
        log_prices = None  # made for max-min: no hint here
    limits = problem.limits
    if criterion.scope == "per_server":
        limits = np.where(limits > 0, np.inf, 0.0)  # servers that do not coordinate keep no limit but zero
    feasible, where = feasibility(cluster, tasks, limits, criterion.floor)
    if not np.isfinite(feasible):
        return Certificate(feasible, np.inf, _measure(criterion), where), None
    if np.isfinite(criterion.alpha):
        return _finite(problem, tasks, log_prices, (feasible, where))
    with np.errstate(over="ignore"):
        prices = None if log_prices is None else np.exp(log_prices)
    optimal, measure, proof, found = _optimality(problem, tasks, limits, prices)
    with np.errstate(divide="ignore"):
        kept = None if proof is None else np.log(proof)
    known = None
    if criterion.scope in ("pool", "servers"):
        known = deferred(partial(maxmin_condition, cluster, tasks, criterion, proof))
    return Certificate(feasible, optimal, measure, where if feasible > optimal else found, None, known), kept


@dataclass(frozen=True)
class ByCriterion:
    """The judge who knows a criterion and no mechanism, of any tasks: files may hold any finite number."""

    criterion: Criterion

    def __call__(self, cluster: Cluster, tasks: Array, log_prices: Array | None) -> tuple[Certificate, Array | None]:
        with np.errstate(over="ignore", invalid="ignore"):
            return certify(cluster, tasks, self.criterion, log_prices)


def _finite(
    problem: Problem,
    tasks: Array | Split,
    log_prices: Array | None,
    feasible: tuple[float, str],
) -> tuple[Certificate, Array | None]:
    """Backward error, welfare gap and conditions, on the merged servers where tasks are split like them."""
    cluster, criterion = problem.cluster, problem.criterion
    if isinstance(tasks, Split):
        split = tasks
    else:
        split = Split.from_table(merge(cluster, criterion.scale_free, users=False), tasks)
    merging, table, merged = split.merging, split.merged, split.merging.cluster
    if not isinstance(tasks, Split) and not split.matches(tasks):
        merging, table, merged = unmerged(cluster), tasks, cluster
    elif not merging.trivial and criterion.scope == "game":
        criterion = replace(criterion, share=virtual_share_per_task(merged))
    polytope = problem.polytope if merged is cluster else Polytope(merged, problem.limits)
    names = [cluster.servers[i] for i in merging.first_server]  # merged servers by a name that the cluster has
    if log_prices is None:
        found = searched(polytope, criterion, table, names)
    else:
        hint = polytope.log_row_prices(log_prices[merging.first_server])
        found = backward_error(polytope, criterion, table, hint, names)
    gap = None if criterion.scope == "game" else duality_gap(polytope, table, criterion, found.every_row)
    where = f"largest for {found.where}" if found.error > 0 else found.where
    # Where efficiency ties all users conditions are not known.
    tied = isinstance(criterion, FairnessEfficiency)
    known: Array | None = None if tied else deferred(partial(conditions, polytope, criterion, table, found))
    where = feasible[1] if feasible[0] > found.error else where
    certificate = Certificate(feasible[0], found.error, _measure(criterion), where, gap, known)
    return certificate, merging.split_prices(polytope.log_unit_prices(found.log_rows))


def _is_maxmin(criterion: Criterion) -> bool:
    return bool(np.isinf(criterion.alpha)) and criterion.scope != "game"


def _measure(criterion: Criterion) -> str:
    if np.isfinite(criterion.alpha):
        return "backward error"
    return "exploitability" if criterion.scope == "game" else "lexicographic rise"


def _optimality(
    problem: Problem, tasks: Array | Split, limits: Array, prices: Array | None
) -> tuple[float, str, Array | None, str]:
    """Optimality judged after merging proportional servers, which is exact when the tasks are split like them.

    And what it measures, the prices that prove it, and where it is largest.
    """
    cluster, criterion = problem.cluster, problem.criterion
    split = Split.from_answer(cluster, tasks)
    merging = split.merging
    merged, table, servers = merging.cluster, split.merged, cluster.servers
    if criterion.scope in ("per_server", "game") and not merging.trivial:
        if not isinstance(tasks, Split) and not split.matches(tasks):
            return _solved(_scaled(problem, cluster, limits), tasks, criterion, limits, prices, cluster.servers)
        criterion = replace(criterion, share=virtual_share_per_task(merged))
    first = merging.first_server
    hint = None if prices is None else prices[..., first, :]
    # Merged servers by a name that the cluster has.
    polytope = _scaled(problem, merged, limits)
    found = _solved(polytope, table, criterion, limits, hint, [servers[i] for i in first])
    return found[0], found[1], merging.split_prices(found[2]), found[3]


def _scaled(problem: Problem, cluster: Cluster, limits: Array) -> Polytope:
    """The polytope of `cluster`: the problem's, if that is its cluster and nothing is without limits here."""
    same = cluster is problem.cluster and limits is problem.limits
    return problem.polytope if same else Polytope(cluster, limits)


def _solved(
    polytope: Polytope,
    tasks: Array,
    criterion: Criterion,
    limits: Array,
    prices: Array | None,
    servers: Sequence[str],
) -> tuple[float, str, Array | None, str]:
    """As `_certify` finds it, or the distance to the optimum of a small cluster that is too ill-scaled for doubles."""
    cluster = polytope.cluster
    gaps, proof, found = _certify(polytope, tasks, criterion, prices, servers)
    gap, measure = float(gaps.max()), _measure(criterion)
    if not _is_maxmin(criterion):
        return gap, measure, proof, found
    # Prices may seem to prove what is not so where users are lost in the rounding of others.
    proved = gap <= SUFFICIENT
    if proved and (criterion.scope == "per_server" or not _doubtful(polytope, criterion, limits, gap)):
        return gap, measure, proof, found
    requested = np.ones(1, dtype=bool) if proved else gaps > SUFFICIENT
    apart, where = distances(cluster, tasks, criterion, limits, requested, _CAUTION if proved else 1.0)
    i = int(apart.argmax())
    if apart[i] == np.inf or (apart[i] > SUFFICIENT and not proved):
        return gap, measure, proof, found
    found = f"largest for user {cluster.users[where[i]]!r}"
    found += f" on server {servers[i]!r}" if criterion.scope == "per_server" else ""
    certain = float(gaps[~requested].max(initial=0.0))  # servers where doubles do
    return max(float(apart[i]), certain), "distance from the optimum", proof if proved else None, found


def _doubtful(polytope: Polytope, criterion: Criterion, limits: Array, gap: float) -> bool:
    """Is more to be known for little work?"""
    if not tried(polytope.cluster, limits, _CAUTION):
        return False
    return gap > 1e-9 or ill_scaling(polytope, criterion)[0] < SEEN


def _certify(
    polytope: Polytope,
    tasks: Array,
    criterion: Criterion,
    prices: Array | None,
    servers: Sequence[str],
) -> tuple[Array, Array | None, str]:
    """The violation, by server where each is judged on its own, the prices that prove it, and where it is largest."""
    cluster = polytope.cluster
    proof: Array | None
    if criterion.scope in ("game", "per_server"):
        gaps, whom = exploitability(polytope, tasks, criterion)
        i = int(np.argmax(gaps))
        found = f"largest for {whom[i]} on server {servers[i]!r}" if gaps[i] > 0 else "no server would deviate"
        return np.asarray(gaps), None, found
    if cluster.shape[1] > 1:
        most, proof, where = lexicographic_rise(polytope, tasks, criterion, prices)
        return np.array([most]), proof, where
    if not len(polytope.users):
        return np.zeros(1), None, "no user can run anything"
    users = polytope.users
    own = criterion.restrict(users)
    x = tasks[users, 0]
    rise = rises(cluster.demand[users], cluster.capacity[0], x, own.levels(x), x, polytope.limit, own.floor)
    n = int(rise.argmax())
    return rise[[n]], None, f"largest for user {cluster.users[users[n]]!r}" if rise[n] > 0 else "nobody can rise"


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
        missing = float(loss.sum() + here @ (cost - least[user]) + idle)
        gap = missing / float(np.exp(log_marginal - top) @ x)
    return gap if np.isfinite(gap) else np.inf
