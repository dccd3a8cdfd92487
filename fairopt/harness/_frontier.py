"""Where stated tasks are: outside the feasible set, inside, or on its frontier, and which prices support them there.

Tasks X can be given by some weights of an alpha-fair criterion with alpha in (0, infinity], over a pool or over
servers, if and only if X > 0 is Pareto efficient in the polytope T of all feasible tasks:

- a maximum of a function that rises in every X_n is efficient;
- at an efficient point of a polytope some normal w > 0 supports it (Arrow, Barankin and Blackwell 1953), so that X
  maximises welfare for `phi_n = (w_n u_n^(alpha-1) X_n^alpha)^(1/alpha)`, whose marginal utility at X is w;
- for max-min take `phi_n = u_n X_n`: all levels are 1, and whoever has lexicographically better ones has levels >= 1,
  so at least X_n tasks for every n, and X is efficient.

Normals are `w_n = min_i sum_r lambda[i,r] d[n,r] + nu_n`, with prices lambda >= 0 of rows that are used up, nu >= 0 of
task limits that bind; budgets are `b_n = w_n X_n`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import optimize, sp
from ..certificates import _linear
from ..errors import SolverError
from ..model.polytope import Polytope

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class FrontierOptions:
    """What is zero at a vertex."""

    #: Fractions and idle parts up to this are zero: linear programs end at vertices.
    zero: float = 1e-9
    #: Limits that are missed by less than this part bind.
    at_limit: float = 1e-7


#: What is used unless a caller says otherwise.
OPTIONS = FrontierOptions()


@dataclass(frozen=True)
class Frontier:
    """Stated tasks beside the frontier, all in the order of `polytope.users`.

    Attributes
    ----------
    scale : the largest t such that everybody can have t times its tasks; task limits do not count
    short : the rows that stand in the way of more
    tasks : efficient tasks: `min(t, 1)` times the stated ones, and `rises` on top
    rises : what users can have more than that at the same time, relatively
    fractions : (pairs,), an allocation with these tasks
    """

    polytope: Polytope
    scale: float
    short: Index
    tasks: Array
    rises: Array
    fractions: Array

    @cached_property
    def normals(self) -> Normals:
        """The normals of the feasible set at `tasks`."""
        return Normals(self.polytope, self.tasks, self.fractions)


def frontier(polytope: Polytope, stated: Array) -> Frontier:
    """Two linear programs: how far tasks (users,) > 0 can be scaled, and who can rise from there.

    Raises
    ------
    SolverError
        A linear program was not solved.
    """
    pairs, users, rows = len(polytope.gamma), len(polytope.users), polytope.use.shape[0]
    scale, short = scaled(polytope, stated)
    base = np.minimum(stated * min(scale, 1.0), polytope.limit)
    relative = sp.diags(1 / base) @ polytope.tasks
    blocks = [
        sp.hstack([polytope.use, sp.csr_matrix((rows, users))]),
        sp.hstack([-relative, sp.identity(users)]),
    ]
    bounds = [np.ones(rows), np.full(users, 1e-10 - 1.0)]  # slack for rounding
    if len(polytope.limited):
        blocks.append(sp.hstack([polytope.use_of_limit, sp.csr_matrix((len(polytope.limited), users))]))
        bounds.append(np.ones(len(polytope.limited)))
    solved = _linear.maximise(np.concatenate([np.zeros(pairs), np.ones(users)]), blocks, bounds)
    if solved is None:
        raise SolverError("the linear program that looks for more tasks was not solved; give them in fewer digits")
    fractions = np.maximum(solved[0][:pairs], 0.0)
    rises = np.maximum(solved[0][pairs:], 0.0)
    return Frontier(polytope, scale, short, base * (1 + rises), rises, fractions)


def scaled(polytope: Polytope, stated: Array) -> tuple[float, Index]:
    """The largest t such that t times all tasks (users,) > 0 is feasible, and the rows in the way; no task limits.

    Raises
    ------
    SolverError
        The linear program was not solved.
    """
    rows, users = polytope.use.shape[0], len(polytope.users)
    relative = sp.diags(1 / stated) @ polytope.tasks
    solved = _linear.maximise(
        np.append(np.zeros(len(polytope.gamma)), 1.0),
        [sp.hstack([polytope.use, sp.csr_matrix((rows, 1))]), sp.hstack([-relative, np.ones((users, 1))])],
        [np.ones(rows), np.zeros(users)],
    )
    if solved is None:
        raise SolverError("the linear program that scales the stated tasks was not solved; give them in fewer digits")
    return float(solved[0][-1]), np.flatnonzero(solved[1][0] > OPTIONS.zero)


class Normals:
    """The cone of normals at efficient tasks, as budgets b (users,): what of it is extreme, by linear programs."""

    def __init__(self, polytope: Polytope, tasks: Array, fractions: Array) -> None:
        self.users = len(tasks)
        rows = np.flatnonzero(1 - polytope.use @ fractions <= OPTIONS.zero)
        self.limited = np.flatnonzero(tasks >= polytope.limit * (1 - OPTIONS.at_limit))
        user = polytope.pair_user
        cost = sp.diags(tasks[user] / polytope.gamma) @ polytope.use[rows].T
        pairs = np.arange(len(user))
        own = sp.csr_matrix((np.ones(len(user)), (pairs, user)), shape=(len(user), self.users))
        whole = sp.hstack([cost, own[:, self.limited], -own], format="csr")
        paying = fractions > OPTIONS.zero
        self._equal, self._least = whole[paying], whole[~paying]
        self._others = whole.shape[1] - self.users

    def nearest(self, budgets: Array) -> Array | None:
        """Budgets b, one of them as given and the others at least, of which the largest multiple of these is least."""
        one = sp.csr_matrix(budgets[:, None])
        identity = sp.identity(self.users)
        more = [
            sp.hstack([sp.csr_matrix((self.users, self._others)), -identity, one]),
        ]
        low = np.concatenate([np.zeros(self._others), budgets, [0.0]])
        cost = np.append(np.zeros(self._others + self.users), 1.0)
        found = self._minimise(cost, more, [np.zeros(self.users)], low, np.full(len(cost), np.inf))
        return None if found is None else found[self._others : -1]

    def least(self, user: int, reference: int) -> float:
        """The least budget of a user in normals in which the reference's is 1; infinite where that has none."""
        low, high = self._bounds()
        low[self._others + reference] = high[self._others + reference] = 1.0
        cost = np.zeros(len(low))
        cost[self._others + user] = 1.0
        found = self._minimise(cost, [], [], low, high)
        return np.inf if found is None else max(float(found[self._others + user]), 0.0)

    def without(self, user: int) -> NDArray[np.bool_]:
        """Who has a budget in some normal in which this user has none, (users,)."""
        low, high = self._bounds()
        high[self._others + user] = 0.0
        cost = np.concatenate([np.zeros(self._others + self.users), -np.ones(self.users)])
        size = sp.csr_matrix((self.users, self._others))
        more = [sp.hstack([size, sp.identity(self.users), -sp.identity(self.users)])]
        low = np.concatenate([low, np.zeros(self.users)])
        high = np.concatenate([high, np.ones(self.users)])
        found = self._minimise(cost, more, [np.zeros(self.users)], low, high)
        return np.zeros(self.users, dtype=bool) if found is None else np.asarray(found[-self.users :] > 0.5)

    def _bounds(self) -> tuple[Array, Array]:
        size = self._others + self.users
        return np.zeros(size), np.full(size, np.inf)

    def _minimise(self, cost: Array, more: list[Any], least: list[Array], low: Array, high: Array) -> Array | None:
        extra = len(cost) - self._others - self.users

        def wide(block: Any) -> Any:
            return sp.hstack([block, sp.csr_matrix((block.shape[0], extra))]) if extra else block

        lower = sp.vstack([wide(self._least), *more], format="csr")
        solved = optimize.linprog(
            cost,
            A_ub=-lower if lower.shape[0] else None,
            b_ub=-np.concatenate([np.zeros(self._least.shape[0]), *least]) if lower.shape[0] else None,
            A_eq=wide(self._equal),
            b_eq=np.zeros(self._equal.shape[0]),
            bounds=np.column_stack([low, high]),
            method="highs",
            options=_linear.highs(),
        )
        return np.asarray(solved.x) if solved.status == 0 else None
