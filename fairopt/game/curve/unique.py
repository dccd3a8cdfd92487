"""Games whose `x_n` are unique for a proved reason, so that nothing need be chosen (docs/uniqueness.md)."""

from __future__ import annotations

import numpy as np

from ...model._arrays import Array, Index
from ...model.problem import Problem

#: Logarithms of gamma are sums of a user's and a server's number to this accuracy.
_EXACT = 1e-12


#: A user who lacks less than this part of its tasks has them all.
_LACKING = 1e-9


def everybody(problem: Problem, tasks: Array) -> bool:
    """True if tasks (users, servers) give every user its count, so that the curve is constant."""
    polytope = problem.polytope
    return bool((tasks[polytope.users].sum(axis=1) >= (1 - _LACKING) * polytope.limit).all())


def unique(problem: Problem) -> bool:
    """True if equilibria are unique: gamma has rank one on usable pairs (a potential), or one row binds per server.

        gamma_ni = a_n b_i    for all usable pairs (n, i),    or    D[n,i,rho_i] = 1 for some rho_i on every server

    One server, one resource, servers that are proportional; with one binding resource on every server prices do not
    know alpha. Also of two users, whose ratio is unique, but at isolated alphas (where the index is 0). False where
    that is not known. With placement constraints factors are carried from users to servers and back.
    """
    polytope, cluster = problem.polytope, problem.cluster
    users, servers, gamma = len(polytope.users), cluster.shape[1], polytope.gamma
    if servers == 1 or users <= 1:
        return True
    if np.isfinite(problem.limits).any():
        return False  # a limit makes equilibria many
    if users == 2:
        return True
    user, server = polytope.pair_user, polytope.pair_server
    demand, capacity = cluster.demand[polytope.users[user]], cluster.capacity[server]
    need = np.divide(demand * gamma[:, None], capacity, out=np.zeros_like(demand), where=demand > 0)
    least = np.full((servers, demand.shape[1]), np.inf)
    np.minimum.at(least, server, need)
    if (least >= 1 - _EXACT).any(axis=1).all():
        return True
    log = np.log(gamma)
    off = log - sum(_factors(user, server, log))
    return bool(np.abs(off).max() <= _EXACT * max(1.0, float(np.abs(log).max())))


def _factors(user: Index, server: Index, log: Array) -> tuple[Array, Array]:
    """Summands of users and servers whose sums on pairs are `log`, if any; one server of each component has 0."""
    a, b = np.full(int(user.max()) + 1, -np.inf), np.full(int(server.max()) + 1, -np.inf)
    while (unknown := b[server] == -np.inf).any():
        b[server[unknown.argmax()]], known = 0.0, -1
        while known < (known := int(np.count_nonzero(b > -np.inf))):
            np.maximum.at(a, user, log + np.where(b > -np.inf, -b, -np.inf)[server])
            np.maximum.at(b, server, log + np.where(a > -np.inf, -a, -np.inf)[user])
    return a[user], b[server]
