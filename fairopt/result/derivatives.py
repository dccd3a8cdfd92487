r"""Derivatives with respect to all data by the adjoint method: one linear solve per output, for any number of data.

For the linearised conditions :math:`J \delta = -B\,d\theta` and an output whose differential is :math:`\eta^T \delta`,
the adjoint equation :math:`J^T w = \eta` gives all derivatives, :math:`-w^T B`. A derivative does not exist, and is
NaN, if the linearised equations have no solution for the datum (:math:`\nu^T B \ne 0` for some :math:`\nu` with
:math:`\nu^T J = 0`), or if the datum enters through the larger of two quantities that tie.

This module computes the groups of servers that a global program may pool, and the active sets of max-min solutions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from ..base.errors import DataError, SolverError
from ..base.libraries import sp
from ..base.names import listed
from ..certificates.backward import log_price_per_task
from ..certificates.leximin import by_level, held, hints
from ..core.first_order import Active, Entries, Equations, Factors, Prices, assembled, parts, summed
from ..core.identification import ZERO, identified
from ..model._arrays import Array, Index, Mask, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion, ShareRule, virtual_share_per_task
from ..model.merging import Merging, Split, unmerged
from ..model.polytope import Polytope

#: Largest relative slack of an exhausted capacity, largest fraction of a cost at which a price counts as zero, and
#: largest eigenvalue of `A'A` at which demands A count as rank-deficient.
SMALL = 1e-6


@dataclass(frozen=True)
class Pooling:
    """Partition of servers into groups, and the `cluster` with one server per group.

    Attributes
    ----------
    pool_of : (servers,), group of each server
    first : (groups,), one server of each group, whose prices are the prices of the group
    part : (servers, resources), capacity of each server as a fraction of the capacity of its group
    """

    cluster: Cluster
    pool_of: Index
    first: Index
    part: Array


def pooling(cluster: Cluster, criterion: Criterion, tasks: Array, log_prices: Array | None) -> Pooling:
    r"""Group the servers of a global program such that derivatives depend only on the total capacities of groups.

    If servers i and j have equal prices, users that run on both are indifferent between them: if one capacity changes,
    tasks move, and only the sum of the capacities matters. Let P be the set of resources with a positive price. Small
    changes of users' totals in a group of servers, and of the group's capacities, can be divided among its servers if
    and only if they preserve the exhausted sums over the group, provided that

    .. math::
        \nu_i \cdot d_n = \eta_n \text{ for all pairs } (n, i) \text{ with tasks} \quad \Rightarrow \quad
        \nu_{ir} = \nu_r \ (r \in P), \quad \nu_{ir} = 0 \ (\text{other exhausted } r)

    by Farkas' lemma, with multipliers :math:`\nu` of the resources exhausted on i, and :math:`\eta` of the totals of
    users. The condition is verified server by server. Server i joins a group if the demands of the users that run both
    on i and on a server of the group have full rank in the resources exhausted on i. Derivatives of totals then equal
    the derivatives of the cluster with one server per group. The split of tasks over servers is determined neither by
    the derivatives nor by the solution. In the game servers are not grouped, since :math:`\gamma_{ni}` of every single
    server matters.

    Parameters
    ----------
    tasks : (users, servers)
    log_prices : (servers, resources), or (levels, servers, resources) for max-min
        Log prices per resource unit; without prices no servers are grouped.
    """
    chosen = servers = np.arange(cluster.shape[1])
    if criterion.scope != "game" and log_prices is not None and len(servers) > 1:
        # Prices are equal if the cost of a task with equal shares of all resources agrees to this tolerance.
        same = 1e-5 * (criterion.stiffness if np.isfinite(criterion.alpha) else 1.0)
        chosen = _chosen(cluster, tasks, log_prices.reshape(-1, *cluster.capacity.shape), same)
    first, pool_of = np.unique(chosen, return_inverse=True)
    if len(first) == len(servers):
        return Pooling(cluster, servers, servers, np.ones(cluster.capacity.shape))
    onto = summed(pool_of, len(first))
    capacity = onto @ cluster.capacity
    eligible = onto @ cluster.usable.T.astype(float) > 0
    labels = [cluster.servers[i] for i in first]
    pooled = cluster.derived(capacity=capacity, eligible=eligible.T, servers=labels)
    return Pooling(pooled, pool_of, first, ratio(cluster.capacity, capacity[pool_of]))


def _chosen(cluster: Cluster, tasks: Array, log_prices: Array, same: float) -> Index:
    """Index of the representative of each server's group, (servers,); prices within `same` count as equal."""
    servers, resources = cluster.capacity.shape
    pool = np.where(cluster.pooled_capacity > 0, cluster.pooled_capacity, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        full = 1 - (tasks.T @ cluster.demand) / cluster.capacity <= SMALL
        whole = np.where(cluster.capacity > 0, log_prices, -np.inf) + np.log(pool)  # price of a whole capacity
        total = np.logaddexp.reduce(whole, axis=2)
        part = np.nan_to_num(np.exp(whole - total[:, :, None]))
    priced = (part > SMALL).any(axis=0)
    # A row per server: the log total and the relative prices in all levels.
    prices = np.concatenate([np.nan_to_num(total)[:, :, None], part], axis=2).transpose(1, 0, 2).reshape(servers, -1)
    runs = (tasks > 1e-4 * tasks.sum(axis=1, keepdims=True)).T.astype(float)  # pairs whose tasks can decrease
    demand = cluster.demand / pool
    demand /= demand.max(axis=1, keepdims=True)
    outer = (demand[:, :, None] * demand[:, None, :]).reshape(len(demand), -1)
    # Servers with an exhausted resource without a price join no group.
    chosen, free = np.arange(servers), ~(full & ~priced).any(axis=1)
    for root in np.argsort(-runs.sum(axis=1), kind="stable"):
        if not free[root]:
            continue
        free[root] = False
        may = np.flatnonzero(free & (np.abs(prices - prices[root]).max(axis=1) <= same))
        while len(may):
            known = runs[chosen == root].any(axis=0)
            gram = (runs[may] @ (outer * known[:, None])).reshape(-1, resources, resources)
            used_up = priced[may, :, None] & priced[may, None, :]
            # The demands of common users must have full rank in the exhausted resources.
            joins = np.linalg.eigvalsh(np.where(used_up, gram, np.eye(resources)))[:, 0] > SMALL
            if not joins.any():
                break
            chosen[may[joins]], free[may[joins]], may = root, False, may[~joins]
    return chosen


def leximin(polytope: Polytope, criterion: Criterion, tasks: Array, hint: Array | None) -> Active:
    """Active set of a max-min solution `tasks` (all users, servers), given prices as a hint.

    `hint` is (sets, servers, resources), per unit of resource, or None.

    Raises
    ------
    SolverError
        No prices prove the levels to seven digits.
    """
    user, first = polytope.pair_user, polytope.start[:-1]
    x = tasks[polytope.users[user], polytope.pair_server]
    total = np.add.reduceat(x, first)
    level = criterion.restrict(polytope.users).levels(total)
    limited = total >= polytope.limit * (1 - ZERO)
    sets, blocked = _prices(polytope, tasks, level, limited, hint)
    part = x / total[user]
    pairs, priced = part > ZERO, np.zeros(len(polytope.row_server), dtype=bool)
    slack = np.zeros(len(x))
    for rows in sets:
        whole = polytope.price_per_task(rows) * total[user]
        least = np.minimum.reduceat(whole, first)[user]
        slack = np.maximum(slack, (whole - least) / np.where(least > ZERO * rows.sum(), least, max(rows.sum(), 1e-300)))
        priced |= rows > ZERO * rows.max(initial=0.0)
    # The excess cost of pairs with more than a thousandth of a user's tasks shows the accuracy of the prices.
    weak = ~pairs & (slack <= max(ZERO, float(slack[part > 1e-3].max(initial=0.0))))
    prices = []
    for rows in sets:
        cheap = (pairs | weak) & (polytope.price_per_task(rows) * polytope.gamma > ZERO * rows.max(initial=0.0))
        cheap &= np.bincount(user[cheap], minlength=len(total))[user] > 1
        with np.errstate(divide="ignore"):
            log_rows = np.log(rows)
            prices.append(Prices(log_rows, log_price_per_task(polytope, log_rows), cheap))
    return Active(
        polytope,
        criterion,
        total,
        np.where(pairs, part, 0.0),
        pairs,
        weak,
        priced,
        ~priced & (1 - polytope.used(tasks) <= ZERO),
        limited,
        np.zeros(len(total), dtype=bool),
        blocked,
        _level_groups(polytope, level),
        np.ones(len(total), dtype=bool),
        tuple(prices),
    )


def _level_groups(polytope: Polytope, level: Array) -> Index:
    """Index of each user's group, (users,): users at one level that are connected by common usable servers."""
    rank = np.empty(len(level), dtype=np.intp)
    for g, members in enumerate(by_level(level)):
        rank[members] = g
    both = np.column_stack([rank, parts(polytope)[polytope.users]])
    return np.asarray(np.unique(both, axis=0, return_inverse=True)[1].ravel())


def _prices(
    polytope: Polytope, tasks: Array, level: Array, limited: Mask, hint: Array | None
) -> tuple[list[Array], Mask]:
    """Price vectors (rows,) of whole capacities that prove users to be bound by capacity, and the mask of these users.

    Raises `SolverError` if a user is neither at its task limit nor proved to be bound by capacity.
    """
    sets, proof = held(polytope, tasks, level, np.zeros(len(level)), ~limited, hint, ZERO)
    blocked = proof.rise <= 10 * ZERO
    open = ~limited & ~blocked
    if open.any():
        name = polytope.cluster.users[polytope.users[int(open.argmax())]]
        raise SolverError(
            f"no prices prove the level of user {name!r} to seven digits, so that nothing is known of how it moves"
        )
    some = [sets[s] for s in np.unique(proof.which[blocked])]
    return [polytope.row_prices(np.nan_to_num(np.maximum(unit, 0.0), posinf=0.0)) for unit in some], blocked


#: Relative difference up to which resources count as tied.
TIED = 1e-7
#: Relative residual of equations and adjoints due to rounding.
ROUNDING = 1e-6
_SUPPORTED = (
    "derivatives are for the per-server game at finite alpha > 0 (alphaPF-VDS), alpha-fair programs (AlphaFair, CEEI) "
    "and lexicographic max-min over a pool or over servers (DRF, DRFH, TSF, asset fairness, ...)"
)


class ShareDerivative(NamedTuple):
    """Derivatives of log shares per task by log demands and log total capacities, (users, resources).

    `by_server` has derivatives by log capacities of servers, (users, servers, resources), or is None.
    """

    by_demand: Array
    by_pool: Array
    by_server: Array | None = None


def apportioned(largest: Mask) -> list[Array]:
    """List of arrays of weights (..., resources), of which the first is 1 for the first of the largest resources.

    If resources tie, a second array has random weights of the tied resources, with a sum of 1.
    """
    first = np.zeros(largest.shape)
    np.put_along_axis(first, largest.argmax(axis=-1)[..., None], 1.0, axis=-1)
    if not (largest.sum(axis=-1) > 1).any():
        return [first]
    random = np.where(largest, np.random.default_rng(0).random(largest.shape), first)
    return [first, random / random.sum(axis=-1, keepdims=True)]


def share_derivatives(cluster: Cluster, rule: ShareRule) -> list[ShareDerivative]:
    r"""Derivatives of log shares per task by log demands and capacities; two alternatives if resources tie.

    ========  ====================================  ================================================================
    rule      share per task                        derivatives
    ========  ====================================  ================================================================
    dominant  :math:`\max_r d_{nr}/C_r`             for the largest r, by log demand: 1; by log total capacity: -1
    asset     :math:`\sum_r d_{nr}/C_r`             by log demand: the fraction of r in the sum; by log total capacity:
                                                    minus this fraction
    alone     :math:`1 / \sum_i \gamma^0_{ni}`      by log demand: the fraction of servers where r determines
                                                    :math:`\gamma^0`; by log capacity there: minus the server's fraction
    demand    :math:`d_{n0}`                        by log demand for the first resource: 1
    constant  constant                              zero
    unknown   unknown                               zero, and random: as alternatives differ, no derivative exists
    ========  ====================================  ================================================================
    """
    none = np.zeros(cluster.demand.shape)
    share = cluster.share_per_task
    with np.errstate(divide="ignore", invalid="ignore"):
        if rule == "dominant":
            close = share >= share.max(axis=1, keepdims=True) * (1 - TIED)
            return [ShareDerivative(part, -part) for part in apportioned(close)]
        if rule == "asset":
            part = np.nan_to_num(share / share.sum(axis=1, keepdims=True))
            return [ShareDerivative(part, -part)]
        if rule == "alone":
            gamma = cluster.gamma0
            part = np.nan_to_num(gamma / gamma.sum(axis=1, keepdims=True))[:, :, None]
            room = np.where(cluster.demand[:, None] > 0, cluster.capacity / cluster.demand[:, None], np.inf)
            ways = apportioned((room <= gamma[:, :, None] * (1 + TIED)) & (part > 0))
            return [ShareDerivative((part * way).sum(axis=1), none, -part * way) for way in ways]
    if rule == "unknown":
        random = np.random.default_rng(0).random(none.shape)
        return [ShareDerivative(none, none), ShareDerivative(random, random)]
    if rule == "demand":
        return [ShareDerivative(none + (np.arange(cluster.shape[2]) == 0), none)]
    return [ShareDerivative(none, none)]


def inputs(equations: Equations) -> list[sp.csr_matrix]:
    r"""Matrices B (equations, data): derivatives by alpha and by logs of weights, demands, capacities, limits, shares.

    Let :math:`\vartheta_{nir}` be the share of resource r in the cost of a task of user n on server i, and
    :math:`A = \max(\alpha, 1)`, or 1 for max-min. B has

    ===================  =======================================================================================
    by                   in the equations of
    ===================  =======================================================================================
    :math:`\alpha`       pairs, :math:`\log(u_n x_n / \phi_n) / A`
    :math:`\log \phi_n`  pairs, :math:`-\alpha / A` (max-min: users, -1)
    :math:`\log d_{nr}`  pairs, :math:`\vartheta_{nir} / A`; rows, :math:`x_{ni} d_{nr} / c_{ir}`
    :math:`\log c_{ir}`  pairs, :math:`-\vartheta_{nir} / A`; rows, -1
    :math:`\log q_n`     limits, -1
    :math:`\log u_n`     pairs, :math:`(\alpha - 1) / A` (max-min: users, 1)
    ===================  =======================================================================================

    with the share per task :math:`u_n`. In the game it is :math:`1/\gamma_{ni}`, which increases in the demand for the
    resource that determines :math:`\gamma_{ni}`, and decreases in its capacity. If several resources determine
    :math:`\gamma_{ni}`, the result has two matrices, of which the second has random weights of these resources.
    """
    active, scale = equations.active, equations.scale
    polytope, criterion = active.polytope, active.criterion
    users, servers, resources = polytope.cluster.shape
    sizes = (1, users, users * resources, servers * resources, users, users)
    of_alpha, of_weight, of_demand, of_capacity, of_limit, of_share, size = np.cumsum((0, *sizes)).tolist()
    found: Entries = []
    ways = [found]
    whose, host = (each * resources for each in (polytope.users[equations.user], equations.server))

    def enter(entries: Entries, equation: Index, pairs: Index, value: Array) -> None:
        """Append derivatives `value`, (pairs, resources), by log demands, and `-value` by log capacities."""
        for first, sign in ((of_demand + whose[pairs], 1.0), (of_capacity + host[pairs], -1.0)):
            entries.append((equation, first[:, None] + np.arange(resources), sign * value))

    of_rows, use = equations.uses(equations.pairs)
    enter(found, of_rows, equations.pairs, use * active.part[equations.pairs, None])
    found.append((equations.of_limits, of_limit + polytope.users[equations.limits], -1.0))
    if not equations.slope:
        who = polytope.users[equations.users]
        found += [(equations.of_users, of_weight + who, -1.0), (equations.of_users, of_share + who, 1.0)]
    for k, (pairs, equation) in enumerate(zip(equations.cheap, equations.of_pairs, strict=True)):
        enter(found, equation[:, None], pairs, equations.shares(k) / scale)
        if not equations.slope:
            continue
        user = equations.user[pairs]
        who, power = polytope.users[user], (1 - criterion.alpha) / scale
        game = criterion.scope == "game"
        own = criterion.share[who, equations.server[pairs]] if game else criterion.share[who]
        found.append((equation, of_alpha, np.log(active.total[user] * own / criterion.weight[who]) / scale))
        found.append((equation, of_weight + who, -equations.slope))
        if not game:
            found.append((equation, of_share + who, -power))
        elif power:
            sets = apportioned(polytope.pair_use[pairs] >= 1 - TIED)
            ways = [[*found] for _ in sets]
            for way, value in zip(ways, sets, strict=True):
                enter(way, equation[:, None], pairs, -power * value)
    return [assembled(way, (equations.size, size)) for way in ways]


def _why(equations: Equations, stuck: Mask, most: int = 3) -> str:
    """Describe why derivatives do not exist: ties, and the parts of the equations, mask `stuck`, without a solution."""
    active, polytope, criterion = equations.active, equations.active.polytope, equations.active.criterion
    cluster, user, server = polytope.cluster, equations.user, equations.server
    names = [f"user {cluster.users[n]!r}" for n in polytope.users]
    here = stuck[equations.parts[1][polytope.users]]
    said = [f"{names[user[k]]} pays no more on server {cluster.servers[server[k]]!r}, where it has no tasks"
            for k in np.flatnonzero(active.weak_pairs & here[user])[:most]]  # fmt: skip
    if stuck.any():
        weak = np.flatnonzero(active.weak_rows)[:most]
        said += [f"{name} is exhausted, but its price is 0" for name in polytope.named(weak)]
    reached = np.flatnonzero((active.weak_limits | (active.limits & active.follows)) & here)
    said += [f"{names[n]} just reaches its task limit" for n in reached[:most]]
    for k in equations.cheap[0] if criterion.scope == "game" and criterion.alpha != 1 else ():
        close = np.flatnonzero(polytope.pair_use[k] >= 1 - TIED)
        if len(close) > 1:
            tied = " and ".join(repr(cluster.resources[r]) for r in close)
            said.append(f"{tied} tie for gamma of {names[user[k]]} on server {cluster.servers[server[k]]!r}")
    reasons = "; ".join(said[:most])
    if not stuck.any():
        unknown = "the mechanism does not state how shares depend on the data"
        tied = unknown if criterion.share_rule == "unknown" else "resources tie for a user's share"
        return reasons or f"{tied}, or tasks are not determined"
    whose = listed([name for name, one in zip(names, here, strict=True) if one], most)
    return f"cannot stay as it is: {whose}" + (f" ({reasons})" if reasons else "")


#: Kinds of data, in the order of rows, each with its field of the cluster and the levels of its index. Derivatives are
#: by logarithms, except for alpha. `counts` are the numbers of servers of each type.
DATA = {
    "alpha": ("alpha", ("parameter",)),
    "weights": ("weight", ("user",)),
    "demands": ("demand", ("user", "resource")),
    "capacities": ("capacity", ("server", "resource")),
    "max_tasks": ("max_tasks", ("user",)),
    "counts": ("capacity", ("server",)),
}


class Derivatives:
    """Derivatives by all data at a solution; `rows` has the slice of the data of each kind (`DATA`)."""

    def __init__(self, active: Active, merging: Merging, pooling: Pooling) -> None:
        self.equations, self.criterion = Equations(active), active.criterion
        self.merging, self.pooling, self.cluster = merging, pooling, merging.cluster
        self.linear = Factors(self.equations.matrix, self.equations.main)
        self.finite = bool(np.isfinite(self.criterion.alpha))
        users, types, resources = self.cluster.shape
        sizes = (1, users, users * resources, len(merging.server_of) * resources, users, types)
        ends = np.cumsum((0, *sizes)).tolist()
        self.rows = {name: slice(*pair) for name, pair in zip(DATA, pairwise(ends), strict=True)}
        #: Rule by which shares per task depend on the data; taken as "constant" in the game and at alpha = 1.
        rule = "constant" if self.criterion.scope == "game" or self.criterion.alpha == 1 else self.criterion.share_rule
        #: Alternative pairs of a matrix B and derivatives of shares; more than one pair if resources tie.
        self._ways = list(product(inputs(self.equations), share_derivatives(self.cluster, rule)))

    def of_tasks(self, gradient: Array) -> Array:
        """Derivatives (data, k) of k outputs with gradients by log tasks (all users, k); NaN where undefined."""
        equations = self.equations
        whose = equations.active.polytope.users[equations.user[equations.independent]]
        given = np.zeros((self.linear.matrix.shape[1], gradient.shape[1]))
        given[: len(whose)] = gradient[whose]
        adjoint, missed = self.linear.adjoint(given)
        found, *others = self._pulled(adjoint)
        part = equations.parts[1]
        concerned = summed(part, int(part.max()) + 1) @ (gradient != 0).astype(float) > 0
        undefined = self._inconsistent.astype(float) @ concerned.astype(float) > 0
        for other in others:
            undefined |= np.abs(found - other) > 1e-9
        found[undefined | (missed > ROUNDING)] = np.nan
        if not self.finite:
            found[self.rows["alpha"]] = np.nan
        return found

    def why(self, row: int) -> str:
        """Describe why the derivative by one datum does not exist."""
        return _why(self.equations, self._inconsistent[row])

    def _pulled(self, w: Array) -> list[Array]:
        """Products `-w' B`, (data, k), of w (equations, k) for each alternative, with the effect through shares."""
        merging, pools, found = self.merging, self.pooling, []
        users, _, resources = self.cluster.shape
        part = ratio(self.cluster.capacity, self.cluster.pooled_capacity)[:, :, None]
        cuts = np.cumsum((1 + users, users * resources, len(pools.first) * resources, users))
        for b, rule in self._ways:
            ahead, demand, of_pools, limit, share = np.split(0.0 - b.T @ w, cuts)
            of_types = of_pools.reshape(-1, resources, w.shape[1])[pools.pool_of] * pools.part[:, :, None]
            of_types += part * (rule.by_pool.T @ share)
            if rule.by_server is not None:
                of_types += np.einsum("nir,nk->irk", rule.by_server, share)
            of_servers = of_types[merging.server_of] * merging.server_part[:, None, None]
            demand += (rule.by_demand[:, :, None] * share[:, None]).reshape(demand.shape)
            tables = (ahead, demand, of_servers, limit, of_types.sum(axis=1))
            found.append(np.vstack([table.reshape(-1, w.shape[1]) for table in tables]))
        return found

    @cached_property
    def _inconsistent(self) -> Mask:
        r"""Mask (data, parts) of the parts whose linearised equations have no solution for a change of the datum.

        There is no solution if :math:`\nu^T B \ne 0` for a null vector :math:`\nu` of the part's equations.
        """
        part_of, null, pool_part = self.equations.parts[0], self.linear.null, self.pooling.part
        # The effect of a capacity is proportional to its fraction of the pool.
        scale = np.ones(self.rows["counts"].stop)
        scale[self.rows["counts"]] = pool_part.max(axis=1)
        of_servers = pool_part[self.merging.server_of] * self.merging.server_part[:, None]
        scale[self.rows["capacities"]] = of_servers.ravel()
        result = np.zeros((len(scale), int(self.equations.parts[1].max()) + 1), dtype=bool)
        for part in np.unique(part_of[np.abs(null).max(axis=1, initial=0.0) > 0]):
            null_of_part = np.where((part_of == part)[:, None], null, 0.0)
            for product_with_data in self._pulled(null_of_part):
                result[:, part] |= np.abs(product_with_data).max(axis=1) > ROUNDING * scale
        if self.finite:
            self._mark_single(result[self.rows["capacities"]].reshape(-1, self.cluster.shape[2], result.shape[1]))
        return result

    def _mark_single(self, capacity: Mask) -> None:
        r"""Mark capacities of single servers of a type, in the game, by which derivatives do not exist.

        After a change of its capacity the server is of another type. Users may then prefer or avoid it, unless its
        prices can compensate the change of :math:`\gamma_{ni}`. Prices always compensate changes of costs.
        """
        equations, sizes = self.equations, np.bincount(self.merging.server_of)
        if self.criterion.scope != "game" or self.criterion.alpha == 1:
            return
        pairs, share = equations.cheap[0], equations.shares(0)
        use = equations.active.polytope.pair_use[pairs]
        for s in np.flatnonzero(sizes > 1):
            mine = np.flatnonzero(equations.server[pairs] == s)
            # How log capacities, through the resource that determines gamma, and log prices change pairs' conditions.
            by_capacity, by_price = np.eye(use.shape[1])[use[mine].argmax(axis=1)], share[mine]
            left = by_capacity - by_price @ np.linalg.lstsq(by_price, by_capacity, rcond=1e-10)[0]
            parts = np.unique(equations.parts[0][equations.of_pairs[0][mine]])
            moved = np.flatnonzero(np.abs(left).max(axis=0, initial=0.0) > ROUNDING)
            capacity[np.ix_(np.flatnonzero(self.merging.server_of == s), moved, parts)] = True


def derivatives(cluster: Cluster, criterion: Criterion, tasks: Array | Split, log_prices: Array | None) -> Derivatives:
    """Derivatives of `tasks` (users, servers) under `criterion`, given log prices as in `Allocation.log_prices`.

    Raises
    ------
    DataError
        The criterion is not supported, no user can run tasks, or prices are missing at finite alpha.
    SolverError
        Tasks and prices are not accurate enough.
    """
    _check(cluster, criterion)
    split = Split.from_answer(cluster, tasks)
    if not isinstance(tasks, Split) and not split.matches(tasks, 1e-9):
        split = Split.from_table(unmerged(cluster), tasks)
    merging, table = split.merging, split.merged
    first = merging.first_server
    if criterion.scope == "game" and not merging.trivial:
        criterion = replace(criterion, share=virtual_share_per_task(merging.cluster))
    prices = None if log_prices is None else log_prices[..., first, :]
    pools = pooling(merging.cluster, criterion, table, prices)
    if prices is not None:
        prices = prices[..., pools.first, :]
    polytope = Polytope(pools.cluster, criterion.limits(cluster))
    table = np.asarray(table @ summed(pools.pool_of, len(pools.first)).T)
    if not len(polytope.users):
        raise DataError("no user can run anything, so that there are no derivatives")
    if np.isinf(criterion.alpha):
        with np.errstate(over="ignore"):
            proof = None if prices is None else np.exp(prices)
        active = leximin(polytope, criterion, table, hints(pools.cluster, proof))
    else:
        if prices is None:
            raise DataError("this allocation came without prices: certify it (allocation.certify()) or solve again")
        with np.errstate(divide="ignore"):
            rows = polytope.log_row_prices(prices)
        active = identified(polytope, criterion, table, rows)
    return Derivatives(active, merging, pools)


def _check(cluster: Cluster, criterion: Criterion) -> None:
    what = "PS-DSF" if criterion.scope == "game" else "servers that do not coordinate"
    steep = criterion.scope == "per_server" or (criterion.scope == "game" and np.isinf(criterion.alpha))
    for wrong, text in (
        (cluster.rated, "; not with rates of work. Differences of two solves are"),
        (type(criterion) is not Criterion, f"; not for {type(criterion).__name__}. Differences of two solves are"),
        (steep, f"; not for {what}: take a large finite alpha, such as AlphaPFVDS(64)"),
        (criterion.alpha == 0, "; at alpha = 0 tasks move by jumps: take a small alpha, such as 0.1"),
        (criterion.floor.any(), "; not with floors, which depend on the data in their own way"),
        (
            (criterion.cap < cluster.max_tasks).any(),
            "; not with a mechanism's own caps (MQDRF), which depend on the data",
        ),
        (
            not np.array_equal(criterion.weight, cluster.weight),
            ", where the criterion's weights are those of the cluster",
        ),
    ):
        if wrong:
            raise DataError(_SUPPORTED + text)
