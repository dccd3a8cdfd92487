"""Dynamic DRF: users arrive sequentially, and shares are irrevocable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..base.errors import SolverError
from ..base.libraries import cp, pd
from ..mechanisms.reference import solvers
from ..model._arrays import Array
from ..model.cluster import Cluster, expected
from ._filling import highest, normalised, ordered, pool_of
from .workload import one_of

Engine = Literal["filling", "declarative"]


@dataclass(frozen=True, eq=False, repr=False)
class DynamicShares:
    """Dominant shares of users after every arrival; a share is 0 before the arrival of its user.

    Attributes
    ----------
    cluster : the pool, with users in the order of arrival
    level : (arrivals,), the level M of `dynamic_drf`, the smallest dominant share per weight of present users
    share : (arrivals, users), dominant shares
    """

    cluster: Cluster
    level: Array
    share: Array

    @property
    def tasks(self) -> pd.DataFrame:
        """Frame (arrivals, users) of tasks after every arrival, indexed by the name of the arriving user."""
        users = pd.Index(self.cluster.users, name="user")
        tasks = self.share / self.cluster.dominant_share_per_task
        return pd.DataFrame(tasks, index=users.rename("arrived"), columns=users)

    def __repr__(self) -> str:
        return f"DynamicShares of {len(self.level)} users\n{self.tasks}"


def dynamic_drf(cluster: Cluster, order: Sequence[str] | None = None, *, engine: Engine = "filling") -> DynamicShares:
    r"""Allocate a pool to users that arrive sequentially, without revoking shares.

    At the arrival of the k-th of N users, the dominant shares :math:`\sigma_n` are determined by

    .. math:: \max M \quad \text{s.t.} \quad \sigma_n \ge \phi_n M, \quad \sigma_n \ge \sigma_n^{\text{before}}, \quad
        \sum_{n \le k} \sigma_n D_{nr} \le \sum_{n \le k} \phi_n \ \text{ for every r}

    with the share :math:`D_{nr} = d_{nr} / (C_r u_n)` of resource r per unit of dominant share, where
    :math:`u_n = \max_r d_{nr} / C_r`, and with weights :math:`\phi` of sum 1. For equal weights the right-hand side is
    k/N, as in the paper (whose M is the M here divided by N). The remaining capacity is reserved for later users. The
    solution is :math:`\sigma_n = \max(\phi_n M, \sigma_n^{\text{before}})`, which the engine `filling` computes from
    piecewise linear functions of M, and `declarative` by CVXPY. Servers are pooled.

    For positive demands: sharing incentive (:math:`\sigma_n \ge \phi_n` from arrival on), dynamic envy-freeness (an
    envied user arrived before the envious one, and was allocated nothing since the arrival of the latter), dynamic
    Pareto optimality (within the capacity released by then), and strategy-proofness hold. With zero demands Pareto
    optimality need not hold.

    Parameters
    ----------
    cluster : Cluster
    order : sequence of str, optional
        User names by arrival. Default: the cluster's order.
    engine : str
        `filling` or `declarative`.

    Returns
    -------
    DynamicShares

    Raises
    ------
    DataError
        `order` is not a permutation of the users, `engine` is unknown, a user demands a missing resource, or users have
        task limits.
    SolverError
        HiGHS does not solve a step of the engine `declarative`.

    Source: Kash, Procaccia, Shah, "No Agent Left Behind: Dynamic Fair Division of Multiple Resources", JAIR 51 (2014),
    mechanism Dynamic DRF, extended by weights.

    >>> import fairopt as fo
    >>> found = fo.scheduling.dynamic_drf(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))
    >>> found.tasks.round(3).to_numpy().tolist()
    [[2.25, 0.0], [3.0, 2.0]]
    """
    expected(cluster, "shares over time")
    pool = pool_of(cluster.select(users=list(ordered(cluster, order, "order"))), "Dynamic DRF")
    one_of(engine, "engine", Engine)
    demand, weight = normalised(pool), pool.weight / pool.weight.sum()
    n = len(weight)
    level, share, have = np.zeros(n), np.zeros((n, n)), np.zeros(n)
    for k in range(n):
        there = slice(0, k + 1)
        part = float(weight[there].sum())
        if engine == "declarative":
            level[k] = _declared(demand[there], have[there], weight[there], part)
        else:
            level[k] = highest(demand[there], have[there], weight[there], part)
        have[there] = np.maximum(have[there], level[k] * weight[there])
        share[k] = have
    return DynamicShares(pool, level, share)


def _declared(demand: Array, before: Array, weight: Array, part: float) -> float:
    """Level M of one step by CVXPY; `before`, (users,), are the dominant shares before the step."""
    level, share = cp.Variable(name="M"), cp.Variable(len(before), name="x")
    problem = cp.Problem(cp.Maximize(level), [share >= weight * level, share >= before, demand.T @ share <= part])
    run = solvers.solve(problem, "HIGHS")
    if run.status != "optimal":
        raise SolverError(f"a step of Dynamic DRF: HiGHS reports {run.status!r}; take the engine 'filling'")
    return float(level.value)
