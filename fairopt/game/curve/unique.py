"""Games whose `x_n` are unique for a proved reason, so that nothing need be chosen (docs/uniqueness.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._libraries import csgraph, sp
from ...model.problem import Problem

Array = NDArray[np.float64]
Index = NDArray[np.intp]


#: Logarithms of gamma are sums of a user's and a server's number to this accuracy.
_EXACT = 1e-12


def unique(problem: Problem) -> bool:
    """Is gamma of rank one on usable pairs, so that the game has a potential, or everybody bound by one row a server?

        gamma_ni = a_n b_i    for all usable pairs (n, i),    or    D[n,i,rho_i] = 1 for some rho_i on every server

    One server, one resource, servers that are proportional; with one binding resource on every server prices do not
    know alpha. Also of two users, whose ratio is unique, but at isolated alphas (where the index is 0). False where
    that is not known. With placement constraints pairs are compared along a spanning forest of users and servers.
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
    near = _EXACT * max(1.0, float(np.abs(log).max()))
    if len(log) == users * servers:
        table = log.reshape(users, servers)
        off = table - table[:, :1] - table[:1] + table[0, 0]
    elif _between_servers(user, server, log) > 4 * near:  # so most games end
        return False
    else:
        off = _along_forest(user, server, log)
    return bool(np.abs(off).max() <= near)


def _between_servers(user: Index, server: Index, log: Array) -> float:
    """By how much users differ, of those with the same two servers next to each other."""
    both = np.flatnonzero(user[1:] == user[:-1])
    step = server[both] * (int(server.max()) + 1) + server[both + 1]
    order = np.argsort(step, kind="stable")
    step, change = step[order], (log[both + 1] - log[both])[order]
    return float(np.abs(np.diff(change)[step[1:] == step[:-1]]).max(initial=0.0))


def _along_forest(user: Index, server: Index, log: Array) -> Array:
    """What logs of pairs miss of sums, where factors are carried from one user or server to the next."""
    users = int(user.max()) + 1
    size = users + int(server.max()) + 1
    graph = sp.csr_matrix((np.ones(len(log)), (user, users + server)), shape=(size, size))
    between = dict(zip(zip(user.tolist(), (users + server).tolist(), strict=True), log.tolist(), strict=True))
    factor = [0.0] * size
    component = csgraph.connected_components(graph, directed=False)[1]
    for first in np.unique(component, return_index=True)[1]:
        order, known = csgraph.breadth_first_order(graph, first, directed=False)
        for at, other in zip(order[1:].tolist(), known[order[1:]].tolist(), strict=True):
            factor[at] = between[min(at, other), max(at, other)] - factor[other]
    carried = np.array(factor)
    return np.asarray(log - carried[user] - carried[users + server])
