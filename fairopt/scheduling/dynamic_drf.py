"""Dynamic DRF: users arrive one after the other, none leaves, and nobody loses what it has."""

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
    """Shares of users after every arrival (rows); a user who is yet to come has 0.

    Attributes
    ----------
    cluster : the pool, its users in the order of their arrival
    level : (arrivals,), M: the least share over weight of those who are there
    share : (arrivals, users), dominant shares x, in parts of the whole capacity
    """

    cluster: Cluster
    level: Array
    share: Array

    @property
    def tasks(self) -> pd.DataFrame:
        """Tasks after every arrival: a row per arrival, by the name of who arrived, a column per user."""
        users = pd.Index(self.cluster.users, name="user")
        tasks = self.share / self.cluster.dominant_share_per_task
        return pd.DataFrame(tasks, index=users.rename("arrived"), columns=users)

    def __repr__(self) -> str:
        return f"DynamicShares of {len(self.level)} users\n{self.tasks}"


def dynamic_drf(cluster: Cluster, order: Sequence[str] | None = None, *, engine: Engine = "filling") -> DynamicShares:
    """Share one pool with users who arrive one after the other.

    As the k-th of n users arrives, with dominant shares x and `D_ir = d_ir / (C_r u_i)`, `u_i = max_r d_ir / C_r`:

        max M   s.t.  x_i >= w_i M,   x_i >= what i had before,   sum_{i<=k} x_i D_ir <= sum_{i<=k} w_i   for every r

    with `w = phi / sum phi`; equal weights give the paper's `k/n` (its M is ours over n). So much of every resource is
    released, and the rest is kept for those who are yet to come. Hence `x_i = max(w_i M, x_i before)`, which the engine
    `filling` finds exactly but for rounding: every resource is used by a convex function of M with straight pieces.
    `declarative` solves the program in CVXPY. Several servers are pooled.

    With positive demands: sharing incentive (`x_i >= w_i` from arrival on), dynamic envy-freeness (who is envied came
    before, and has got nothing since the other came), dynamic Pareto optimality (nobody can have more of what is
    released without another having less), strategy-proofness. Zero demands are allowed, as in the program; Pareto
    optimality need not hold then.

    Parameters
    ----------
    order : user names by arrival; default: the cluster's order

    Raises
    ------
    DataError
        `order` does not name every user once, a user needs what nobody has, or users have task counts.

    Source: Kash, Procaccia, Shah, "No Agent Left Behind: Dynamic Fair Division of Multiple Resources", JAIR 51 (2014),
    mechanism Dynamic DRF. Weights are ours.
    """
    expected(cluster)
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
    """M of one step, from the program as it is written; `before` (users,) is what they have."""
    level, share = cp.Variable(name="M"), cp.Variable(len(before), name="x")
    problem = cp.Problem(cp.Maximize(level), [share >= weight * level, share >= before, demand.T @ share <= part])
    run = solvers.solve(problem, "HIGHS")
    if run.status != "optimal":
        raise SolverError(f"a step of Dynamic DRF: HiGHS says {run.status!r}; take the engine 'filling'")
    return float(level.value)
