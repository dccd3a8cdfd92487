"""Games whose `x_n` are unique for a proved reason, so that nothing need be chosen (docs/equilibria.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.problem import Problem


@dataclass(frozen=True)
class UniqueOptions:
    """Which games have one equilibrium."""

    #: Logarithms of gamma that are sums of a user's and a server's number to this accuracy.
    exact: float = 1e-12


#: What is used unless a caller says otherwise.
OPTIONS = UniqueOptions()


def unique(problem: Problem) -> bool:
    """Is gamma of rank one on usable pairs, so that the game has a potential, or everybody bound by one row a server?

        gamma_ni = a_n b_i    for all usable pairs (n, i),    or    D[n,i,rho_i] = 1 for some rho_i on every server

    One server, one resource, servers that are proportional; with one binding resource on every server prices do not
    know alpha. False where that is not known. With placement constraints pairs are compared along a spanning forest of
    users and servers.
    """
    gamma = problem.cluster.gamma[problem.polytope.users]
    if gamma.shape[1] == 1 or len(gamma) <= 1:
        return True
    if np.isfinite(problem.limits).any():
        return False  # a limit makes equilibria many
    bound = problem.cluster.normalised_demand[problem.polytope.users] >= 1 - OPTIONS.exact
    if (bound | (gamma == 0)[:, :, None]).all(axis=0).any(axis=1).all():
        return True
    if (gamma > 0).all():
        log = np.log(gamma)
        off = log - log[:, :1] - log[:1] + log[0, 0]
        return bool(np.abs(off).max() <= OPTIONS.exact * max(1.0, float(np.abs(log).max())))
    return _along_forest(gamma)


def _along_forest(gamma: np.ndarray) -> bool:
    """The same with pairs left out: factors are carried from one user or server to the next."""
    usable = gamma > 0
    with np.errstate(divide="ignore"):
        log = np.where(usable, np.log(gamma), 0.0)
    of_user, of_server = np.full(len(gamma), np.nan), np.full(gamma.shape[1], np.nan)
    while np.isnan(of_user).any():
        if np.isnan(of_user[usable[:, ~np.isnan(of_server)].any(axis=1)]).sum() == 0:
            of_user[np.flatnonzero(np.isnan(of_user))[0]] = 0.0  # another component
        for i in np.flatnonzero(np.isnan(of_server) & usable[~np.isnan(of_user)].any(axis=0)):
            n = np.flatnonzero(usable[:, i] & ~np.isnan(of_user))[0]
            of_server[i] = log[n, i] - of_user[n]
        for n in np.flatnonzero(np.isnan(of_user) & usable[:, ~np.isnan(of_server)].any(axis=1)):
            i = np.flatnonzero(usable[n] & ~np.isnan(of_server))[0]
            of_user[n] = log[n, i] - of_server[i]
    with np.errstate(invalid="ignore"):
        off = np.where(usable, log - of_user[:, None] - of_server, 0.0)
    return bool(np.abs(off).max() <= OPTIONS.exact * max(1.0, float(np.abs(log).max())))
