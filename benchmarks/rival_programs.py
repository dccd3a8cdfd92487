"""The questions of the benchmark instances, as one would state them for a solver: nothing of fairopt is used.

An instance is what `fairopt bench export` writes: capacities `A y <= b`, tasks of users `x = U y`, shares per task and
weights. Unknowns are parts of what a pair (user, server) could have alone, and shares are near 1: solvers are given the
scaling that suits them. A criterion of alpha = infinity is a succession of linear programs, each raising the smallest
level and fixing those whose price says that they cannot rise. A game is played: servers respond in turn.
"""

from __future__ import annotations

import resource
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.io import mmread
from scipy.optimize import linprog

Array = NDArray[np.float64]
#: A level whose row has at least this part of the prices is fixed: it can rise in no optimum.
PRICED = 1e-5
#: In a game a level that is fixed may be missed by this part.
ROOM = 1e-8
#: A game has ended when no user's tasks change by more than this part of the most that anybody has.
SETTLED = 1e-9


class Late(Exception):
    """The time is up."""


class Wrong(Exception):
    """A solver says that it failed."""


def clock() -> float:
    """CPU seconds of this process; `time.process_time` counts in ticks where a process has a limit."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@dataclass
class Seconds:
    """CPU seconds by what they went to, and the clock that a rival may not overrun."""

    limit: float
    build: float = 0.0
    compile: float = 0.0
    solve: float = 0.0
    solves: int = 0
    begun: float = field(default_factory=clock)

    def left(self) -> float:
        """Seconds that are left; `Late` if there are none."""
        left = self.limit - (clock() - self.begun)
        if left <= 0:
            raise Late
        return left


@dataclass(frozen=True)
class Instance:
    """One instance: its matrices, what is asked, and the certified tasks of users."""

    name: str
    alpha: float
    scope: str
    use: sp.csr_array
    capacity: Array
    of_user: sp.csr_array
    share: Array
    weight: Array
    tasks: Array

    @classmethod
    def read(cls, folder: Path, row: dict[str, Any]) -> Instance:
        """From `NAME/*.mtx` and its row of `index.json`."""
        parts = {name: mmread(folder / row["name"] / f"{name}.mtx") for name in ("A", "b", "U", "share", "weight", "y")}
        flat = {name: np.asarray(parts[name], dtype=float).ravel() for name in ("b", "weight", "y")}
        of_user = sp.csr_array(parts["U"])
        share = np.asarray(parts["share"], dtype=float)
        return cls(row["name"], float(row["alpha"]), row["scope"], sp.csr_array(parts["A"]), flat["b"], of_user,
                   share, flat["weight"], np.asarray(of_user @ flat["y"]))  # fmt: skip

    def parts(self) -> list[Part]:
        """One program for all servers, or one for every server of a game."""
        if self.scope != "game":
            return [Part(self, np.arange(self.use.shape[1]), self.share.mean(axis=1))]
        servers = self.share.shape[1]
        rows_each = self.use.shape[0] // servers
        server = np.full(self.use.shape[1], -1)
        found = self.use.tocoo()
        server[found.col] = found.row // rows_each
        return [
            Part(self, np.flatnonzero(server == i), self.share[:, i]) for i in range(servers) if (server == i).any()
        ]


class Part:
    """The feasible set of some servers, scaled: `use @ fraction <= 1`, tasks = `reach @ fraction` of `users`."""

    def __init__(self, instance: Instance, pairs: NDArray[np.intp], share: Array) -> None:
        use = instance.use[:, pairs].tocsc()
        alone = np.array([self._alone(use, instance.capacity, k) for k in range(len(pairs))])
        kept = alone > 0
        use, pairs, alone = use[:, kept].tocsr(), pairs[kept], alone[kept]
        rows = np.flatnonzero(np.diff(use.indptr))
        self.pairs, self.alone = pairs, alone
        self.use = sp.csr_array(sp.diags_array(1 / instance.capacity[rows]) @ use[rows] @ sp.diags_array(alone))
        of_user = instance.of_user[:, pairs]
        self.users = np.flatnonzero(np.diff(of_user.tocsr().indptr))
        #: Tasks of users in units of what they could have alone.
        reach = sp.csr_array(of_user.tocsr()[self.users] @ sp.diags_array(alone))
        self.most = np.asarray(reach.sum(axis=1)).ravel()
        self.reach = sp.csr_array(sp.diags_array(1 / self.most) @ reach)
        self.weight = instance.weight[self.users]
        level = share[self.users] * self.most / self.weight
        #: Levels per unit of tasks, near 1 where everybody has an equal part.
        self.level = level / (np.median(level) / len(self.users))

    @staticmethod
    def _alone(use: sp.csc_array, capacity: Array, pair: int) -> float:
        rows = slice(use.indptr[pair], use.indptr[pair + 1])
        needed = use.data[rows] > 0
        return float((capacity[use.indices[rows]][needed] / use.data[rows][needed]).min()) if needed.any() else 0.0


class Response(Protocol):
    """What users of a part get there, given what they have elsewhere (both in parts of what they could have alone)."""

    def __call__(self, elsewhere: Array) -> Array: ...


def play(instance: Instance, make: Any, seconds: Seconds) -> Array:
    """The tasks of users that a rival comes to; `make(part)` states a part's program."""
    begun = clock()
    parts = instance.parts()
    responses = [make(part) for part in parts]
    seconds.build += clock() - begun
    held = np.zeros((len(parts), len(instance.weight)))
    while True:
        before = held.sum(axis=0)
        for part, respond, own in zip(parts, responses, held, strict=True):
            elsewhere = (held.sum(axis=0) - own)[part.users]
            own[part.users] = respond(np.maximum(elsewhere, 0.0) / part.most) * part.most
        after: Array = held.sum(axis=0)
        if len(parts) == 1 or np.abs(after - before).max() <= SETTLED * after.max():
            return after


class Stated:
    """A program in CVXPY, compiled once: what users have elsewhere is a parameter."""

    def __init__(self, part: Part, alpha: float, solver: str, options: dict[str, Any], seconds: Seconds) -> None:
        self.part, self.solver, self.options, self.seconds = part, solver, options, seconds
        count = len(part.users)
        self.fraction = cp.Variable(part.use.shape[1], nonneg=True)
        self.elsewhere = cp.Parameter(count, nonneg=True, value=np.zeros(count))
        self.gained = part.reach @ self.fraction
        level = cp.multiply(part.level, self.elsewhere + self.gained)
        rows = [part.use @ self.fraction <= 1]
        self.leximin = np.isinf(alpha)
        if self.leximin:
            self.rise, self.free = cp.Parameter(count, nonneg=True), cp.Parameter(count, nonneg=True)
            self.spare = cp.Parameter(count)
            lowest = cp.Variable()
            rows.append(cp.multiply(self.rise, self.gained) + self.spare >= cp.multiply(self.free, lowest))
            self.objective = lowest
        elif alpha == 1:
            self.objective = self._logarithms(level)
        else:
            self.objective = part.weight @ cp.power(level, 1 - alpha) / (1 - alpha)
        self.problem = cp.Problem(cp.Maximize(self.objective), rows)

    def _logarithms(self, level: cp.Expression) -> cp.Expression:
        """`sum_n phi_n log(level_n)`, or what has the same maximum where a solver knows no logarithm."""
        if self.solver in ("QOCO", "CVXOPT"):
            return cp.geo_mean(level, self.part.weight)
        return self.part.weight @ cp.log(level)

    def __call__(self, elsewhere: Array) -> Array:
        self.elsewhere.value = elsewhere
        if self.leximin:
            return levels_raised(self._raised, self.part, elsewhere)
        self._solve()
        return np.asarray(self.gained.value, dtype=float)

    def _raised(self, rise: Array, spare: Array, free: Array) -> tuple[Array, Array]:
        self.rise.value, self.spare.value, self.free.value = rise, spare, free
        self._solve()
        return np.asarray(self.gained.value), np.abs(np.asarray(self.problem.constraints[1].dual_value))

    def _solve(self) -> None:
        limit = {"CLARABEL": "time_limit", "SCS": "time_limit_secs", "OSQP": "time_limit"}.get(self.solver)
        options = self.options | ({limit: self.seconds.left()} if limit else {})
        self.seconds.left()
        begun = clock()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is inaccurate: its error will say so
                self.problem.solve(solver=self.solver, **options)
        except (cp.error.SolverError, ValueError, ArithmeticError, TypeError) as error:
            raise Wrong(str(error).partition(".")[0]) from None
        finally:
            called = clock() - begun
            stats = self.problem.solver_stats
            known = stats.solve_time if stats is not None else None
            compiling = float(self.problem.compilation_time or 0.0)
            solving = min(float(known), called) if known else max(called - compiling, 0.0)
            self.seconds.solve += solving
            self.seconds.compile += called - solving
            self.seconds.solves += 1
        if self.fraction.value is None or self.problem.status not in ("optimal", "optimal_inaccurate"):
            self.seconds.left()
            raise Wrong(str(self.problem.status))


class Linear:
    """The linear programs of a criterion of alpha = infinity, given to HiGHS by `scipy.optimize.linprog`."""

    def __init__(self, part: Part, options: dict[str, Any], seconds: Seconds) -> None:
        self.part, self.options, self.seconds = part, options, seconds
        count = part.use.shape[1]
        self.cost = np.append(np.zeros(count), -1.0)
        self.bounds = [(0, None)] * count + [(None, None)]
        self.of_capacity = sp.hstack([part.use, sp.csr_array((part.use.shape[0], 1))], format="csr")

    def __call__(self, elsewhere: Array) -> Array:
        return levels_raised(self._raised, self.part, elsewhere)

    def _raised(self, rise: Array, spare: Array, free: Array) -> tuple[Array, Array]:
        begun = clock()
        of_levels = sp.hstack([-sp.diags_array(rise) @ self.part.reach, sp.csr_array(free[:, None])], format="csr")
        matrix = sp.vstack([self.of_capacity, of_levels], format="csr")
        bound = np.append(np.ones(self.part.use.shape[0]), spare)
        self.seconds.build += clock() - begun
        begun = clock()
        options = self.options | {"time_limit": self.seconds.left()}
        found = linprog(self.cost, matrix, bound, bounds=self.bounds, method="highs", options=options)
        self.seconds.solve += clock() - begun
        self.seconds.solves += 1
        if found.status != 0:
            self.seconds.left()
            raise Wrong(found.message.splitlines()[0])
        price = -np.asarray(found.ineqlin.marginals)[self.part.use.shape[0] :]
        return np.asarray(self.part.reach @ found.x[:-1]), np.abs(price)


def levels_raised(solve: Any, part: Part, elsewhere: Array) -> Array:
    """Lexicographic max-min: raise the smallest level that is free, fix whom a price holds there, and go on.

    `solve(rise, spare, free)` maximises t with `rise gained + spare >= free t`. Rows are measured in what users have
    elsewhere, and t in the least of it: on a poor server that may be anything.
    """
    start = part.level * elsewhere
    size = np.maximum(start, 1.0)
    free, base = np.ones(len(part.users), dtype=bool), np.full(len(part.users), -np.inf)
    while free.any():
        unit = max(1.0, start[free].min())
        # What is fixed below what a user has elsewhere needs no row.
        bound = base > start
        rows = free | bound
        spare = np.where(bound, start - base, start)
        rise, ahead = np.where(rows, part.level / size, 0.0), np.where(free, unit / size, 0.0)
        gained, price = solve(rise, np.where(rows, spare / size, 0.0), ahead)
        worth = price * ahead
        level = part.level * (elsewhere + gained)
        lowest = level[free].min()
        held = free & (worth >= PRICED * max(float(worth.max()), 1e-300))
        base = np.where(held, lowest - (ROOM * lowest if elsewhere.any() else 0.0), base)
        free &= ~held
    return np.asarray(gained)
