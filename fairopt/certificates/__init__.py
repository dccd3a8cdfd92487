"""Judgement: how good an allocation is, from (cluster, tasks, criterion) alone. It knows no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..exact.rational import tried
from ..model._frozen import deferred
from ..model.cluster import Cluster
from ..model.criterion import Criterion, virtual_share_per_task
from ..model.fairness_efficiency import FairnessEfficiency
from ..model.merging import merge, unmerged
from ..model.polytope import Polytope
from ..model.problem import Problem
from ..model.split import Split
from ._certificate import Certificate, feasibility, feasible
from .backward import BackwardError, backward_error, by_server, searched
from .blocking import Blocking, blocking
from .bottleneck import exploitability, rises
from .concave import duality_gap, fitted_gap
from .condition import conditions
from .ill_scaled import SEEN, advice, ill_scaling
from .leximin import SUFFICIENT, distances, lexicographic_rise, maxmin_condition

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

Array = NDArray[np.float64]
#: The part of the work on an exact optimum that is done only to make sure.
_CAUTION = 0.05


def certify(
    cluster: Cluster, tasks: Array | Split, criterion: Criterion, log_prices: Array | None = None
) -> tuple[Certificate, Array | None]:
    """The certificate of tasks under a criterion, and the prices that prove it.

    For finite alpha it is the backward error (`backward_error`) with the welfare gap (`duality_gap`), for max-min over
    a pool or servers the lexicographic rise (`lexicographic_rise`), for PS-DSF, and max-min of servers that do not
    coordinate, the exploitability (`exploitability`), of `FDS` off the alpha-fair line the welfare gap; all with the
    largest violation of the feasible set (`feasibility`). Max-min of small clusters that doubles do not settle is
    measured from its exact optimum (`exact_distance`).

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
    error = found.error
    known: Array | None = deferred(partial(conditions, polytope, criterion, table, found))
    if isinstance(criterion, FairnessEfficiency) and gap is not None:
        # Its weights are in more than one place, and its efficiency ties all users: welfare is what is vouched for.
        gap = fitted_gap(polytope, table, criterion, found.every_row)
        error, known = gap, None
    where = feasible[1] if feasible[0] > error else where
    certificate = Certificate(feasible[0], error, _measure(criterion), where, gap, known)
    return certificate, merging.split_prices(polytope.log_unit_prices(found.log_rows))


def _is_maxmin(criterion: Criterion) -> bool:
    return bool(np.isinf(criterion.alpha)) and criterion.scope != "game"


def _measure(criterion: Criterion) -> str:
    if isinstance(criterion, FairnessEfficiency):
        return "welfare gap"
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
