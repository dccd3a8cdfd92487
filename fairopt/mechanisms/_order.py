"""A problem in an order of its own, so that no answer hangs on the order in which users and servers were named.

Engines add in the order of rows: on clusters at the end of doubles one order of users was answered and another refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.ill_scaled import spread
from ..model._arrays import Array, Index
from ..model.canonical import canonical
from ..model.problem import Problem
from ._solvable import Solvable

#: Where numbers of one kind are less far apart rounding decides nothing, and rows stay as they are; but among many
#: allocations, as PS-DSF may have with zero demands, it decides digits, and at alpha = 0 in the game who is served.
HARD = 1e4


@dataclass(frozen=True)
class Order:
    """`problem` has row `users[n]` of the given one as its row n, and server `servers[i]` as its server i."""

    problem: Problem
    users: Index
    servers: Index

    @classmethod
    def of(cls, mechanism: Solvable, given: Problem, earlier: Order | None) -> Order | None:
        """The order by data alone, or that of an earlier problem of the size; `None` if it is the given one.

        Also `None` where users are not anonymous: if the mechanism's criterion does not follow them, or other things
        than the criterion may be judged.
        """
        rule = given.criterion
        linear, limit = rule.alpha == 0, np.isinf(rule.alpha) and not given.cluster.demand.all()
        several = rule.scope == "game" and (linear or limit)
        if not several and spread(given.cluster)[0] < HARD:
            return None
        users, servers = canonical(given.cluster)
        if earlier is not None:
            users = earlier.users if len(earlier.users) == len(users) else users
            servers = earlier.servers if len(earlier.servers) == len(servers) else servers
        if _kept(users) and _kept(servers):
            return None
        if not (mechanism.merges_users or mechanism.judged_by_criterion):
            return None
        problem = _reordered(mechanism, given, users, servers)
        return None if problem is None else cls(problem, users, servers)

    def tasks(self, found: Array) -> Array:
        """Tasks of `problem` as those of the given one."""
        result = np.empty_like(found)
        result[np.ix_(self.users, self.servers)] = found
        return result

    def prices(self, found: Array | None) -> Array | None:
        """Prices (..., servers, resources) of `problem` as those of the given one."""
        return None if found is None else np.asarray(found[..., np.argsort(self.servers), :])


def _kept(order: Index) -> bool:
    return bool((order[1:] > order[:-1]).all())


def _reordered(mechanism: Solvable, given: Problem, users: Index, servers: Index) -> Problem | None:
    """The problem with rows in these orders; `None` if the criterion of its cluster is another than its own."""
    cluster, rule = given.cluster, given.criterion
    changed = cluster.derived(
        capacity=cluster.capacity[servers],
        demand=cluster.demand[users],
        weight=cluster.weight[users],
        eligible=cluster.eligible[np.ix_(users, servers)] if cluster.constrained else None,
        max_tasks=cluster.max_tasks[users],
        users=[cluster.users[n] for n in users.tolist()],
        servers=[cluster.servers[i] for i in servers.tolist()],
    )
    found = mechanism.criterion(changed)
    share = rule.share[np.ix_(users, servers)] if rule.share.ndim == 2 else rule.share[users]
    wanted = (share, rule.weight[users], rule.cap[users], rule.floor[users])
    same = map(_same, (found.share, found.weight, found.cap, found.floor), wanted)
    return Problem(changed, found) if all(same) else None


def _same(some: Array, others: Array) -> bool:
    """True if numbers agree up to rounding."""
    with np.errstate(invalid="ignore"):
        return bool(((some == others) | (np.abs(some - others) <= 1e-9 * np.abs(others))).all())
