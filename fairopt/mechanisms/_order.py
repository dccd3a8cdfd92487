"""Canonical order of users and servers, so that solutions do not depend on the order in which they are listed.

Floating-point sums depend on the order of their terms: some clusters near the range of doubles were solved in one order
of users and not in another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificates.ill_scaled import spread
from ..model._arrays import Array, Index
from ..model.canonical import canonical
from ..model.problem import Problem
from ._solvable import Solvable

#: Dynamic range of the data below which rounding has no effect and the given order is kept. Where solutions are not
#: unique (PS-DSF with zero demands, the game at alpha = 0) rounding selects among them, and rows are always reordered.
HARD = 1e4


@dataclass(frozen=True)
class Order:
    """Reordered problem: its user n is user `users[n]` of the given problem, and its server i is `servers[i]`."""

    problem: Problem
    users: Index
    servers: Index

    @classmethod
    def of(cls, mechanism: Solvable, given: Problem, earlier: Order | None) -> Order | None:
        """Reorder a problem canonically, or in the order of an earlier problem of the same size.

        The result is None if the order would not change, if rounding is harmless (`HARD`), or if users are not
        anonymous: the mechanism's criterion is not equivariant under permutations, or its certificate depends on more
        than the criterion.
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
        """Permute tasks (users, servers) of `problem` back to the given order."""
        result = np.empty_like(found)
        result[np.ix_(self.users, self.servers)] = found
        return result

    def prices(self, found: Array | None) -> Array | None:
        """Permute prices (..., servers, resources) of `problem` back to the given order; None without prices."""
        return None if found is None else np.asarray(found[..., np.argsort(self.servers), :])


def _kept(order: Index) -> bool:
    return bool((order[1:] > order[:-1]).all())


def _reordered(mechanism: Solvable, given: Problem, users: Index, servers: Index) -> Problem | None:
    """Permute a problem's users and servers; None unless the criterion of the new cluster is the permuted criterion."""
    cluster, rule = given.cluster, given.criterion
    changed = cluster.derived(
        capacity=cluster.capacity[servers],
        demand=cluster.demand[users],
        weight=cluster.weight[users],
        eligible=cluster.eligible[np.ix_(users, servers)] if cluster.constrained else None,
        max_tasks=cluster.max_tasks[users],
        users=[cluster.users[n] for n in users.tolist()],
        servers=[cluster.servers[i] for i in servers.tolist()],
        rate=cluster.rate[np.ix_(users, servers)] if cluster.rated else None,
    )
    found = mechanism.criterion(changed)
    share = rule.share[np.ix_(users, servers)] if rule.share.ndim == 2 else rule.share[users]
    wanted = (share, rule.weight[users], rule.cap[users], rule.floor[users])
    same = map(_same, (found.share, found.weight, found.cap, found.floor), wanted)
    return Problem(changed, found) if all(same) else None


def _same(some: Array, others: Array) -> bool:
    """True if two arrays agree up to rounding."""
    with np.errstate(invalid="ignore"):
        return bool(((some == others) | (np.abs(some - others) <= 1e-9 * np.abs(others))).all())
