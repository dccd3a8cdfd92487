"""`solve_many`: one mechanism on thousands of small clusters, by stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .. import mechanisms
from .._progress import tqdm
from ..engines.small import Kind, kind_of, small_enough
from ..errors import DataError, FairoptError
from ..mechanisms import Mechanism
from ..model import _validate
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..model.problem import Problem
from . import kernels, problems
from .allocations import Allocations, Failure

#: So many problems are stacked at a time: what an interruption loses, and how often the bar moves.
_CHUNK = 1000


def solve_many(
    mechanism: Mechanism | str,
    capacity: ArrayLike | Sequence[Cluster],
    demand: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    eligible: ArrayLike | None = None,
    max_tasks: ArrayLike | None = None,
    *,
    tol: float | None = None,
    fallback: bool = False,
    progress: bool = False,
) -> Allocations:
    """Share many small clusters with one mechanism.

    For thousands of clusters of a few users and servers, where `Mechanism.solve` spends its time in Python. The
    mechanism says what is fair on every cluster (`Mechanism.criterion`); stacks of one
    shape are solved and judged together.

    Parameters
    ----------
    mechanism : a mechanism, or its name, such as `"alpha-fair(alpha=3)"`
    capacity : (problems, servers, resources)
        In resource units; or a list of clusters, of any shapes, instead of all arrays.
    demand : (problems, users, resources)
        In resource units per task.
    weight, max_tasks : (problems, users), optional
    eligible : (problems, users, servers) of bool, optional
        As in `Cluster`. An array without the axis of problems, or with one of length 1, counts for all problems.
    tol : float, optional
        What every certificate must reach, as in `Mechanism.solve`. Default: the mechanism's, 1e-6.
    fallback : bool
        Hand problems whose certificate misses `tol` to `Mechanism.solve`. Default: they are among `failed`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Allocations
        `user_tasks` (problems, users), `tasks` (problems, users, servers), `certificate` (problems,), `failed` with
        the number and the reason of every problem that has no answer, `to_frame()`.

    Raises
    ------
    DataError
        The arrays do not fit together, or the mechanism is none. What is wrong with one problem (NaN, a user who
        demands nothing, a mechanism that is not defined there) is its reason in `failed`; the others are answered.

    Notes
    -----
    Kernels cover criteria of the alpha-fair family without floors: lexicographic max-min over a pool, over servers and
    inside every server, alpha in [0, infinity) over a pool and over servers, alpha > 0 in the per-server game, and
    PS-DSF where demands are positive and no task count binds. Others (floors, FDS, bottleneck fairness, concave
    utilities) go to `Mechanism.solve` one by one, as do problems so large that it is faster
    (`engines.small.LARGEST`).
    Allocations that are not unique (PS-DSF, equilibria of the game, optima at alpha = 0, how a user's tasks are split
    over servers) need not be those of `Mechanism.solve`: what is judged is the same. Every certificate is that of
    `Mechanism.certify`, computed from the tasks and the prices found.
    """
    chosen = mechanisms.one(mechanism)
    tol = chosen.default_tol if tol is None else _validate.tolerance(tol)
    given = problems.of(capacity, demand, weight, eligible, max_tasks)
    found = _Found(chosen, given, tol, fallback)
    with tqdm(total=len(given), disable=None if progress else True, unit="problem", leave=False) as bar:
        for first in range(0, len(given), _CHUNK):
            numbers = range(first, min(first + _CHUNK, len(given)))
            found.add(numbers)
            bar.update(len(numbers))
    return found.allocations()


class _Found:
    """Answers as they come in."""

    def __init__(self, mechanism: Mechanism, given: problems.Problems, tol: float, fallback: bool) -> None:
        self.mechanism, self.given, self.tol, self.fallback = mechanism, given, tol, fallback
        self.tasks: list[Array | None] = [None] * len(given)
        self.users: list[tuple[str, ...]] = [()] * len(given)
        self.certificate = np.full(len(given), np.nan)
        self.fell_back = np.zeros(len(given), dtype=bool)
        self.failed: list[Failure] = []

    def add(self, numbers: Iterable[int]) -> None:
        """Solve some problems: stacks of one kind and shape, and those one by one that no kernel covers."""
        stacks: defaultdict[tuple[Kind, tuple[int, ...]], list[tuple[int, Problem]]] = defaultdict(list)
        single = []
        for p in numbers:
            try:
                cluster = self.given[p]
                self.users[p] = cluster.users
                self.mechanism.check(cluster)
                seen, _ = self.mechanism.prepare(cluster)
                rule = self.mechanism.criterion(seen) if self.mechanism.judged_by_criterion else None
            except DataError as error:
                self.failed.append(Failure(p, str(error)))
                continue
            kind = None if rule is None else kind_of(rule)
            if rule is None or kind is None or not small_enough(kind, seen.shape[0] * seen.shape[1], rule.alpha):
                single.append(p)
            else:
                stacks[kind, seen.shape].append((p, Problem(seen, rule)))
        for (kind, _), stack in stacks.items():
            self.mechanism.check_statement(stack[0][1])  # remembered: once for a mechanism
            single += self._stacked(kind, stack)
        for p in single:
            self._alone(p)

    def _stacked(self, kind: Kind, stack: list[tuple[int, Problem]]) -> list[int]:
        """Solve problems together; which are to be solved one by one?"""
        answer, alone = kernels.answer(kind, [problem for _, problem in stack], self.tol), []
        for k, (p, _) in enumerate(stack):
            certificate = float(answer.certificate[k])
            if certificate > self.tol and (self.fallback or kind == "psdsf"):
                alone.append(p)
                continue
            self.certificate[p] = certificate
            if certificate <= self.tol:
                self.tasks[p] = answer.tasks[k]
            else:
                text = f"its certificate {certificate:.1e} misses tol={self.tol:g}"
                self.failed.append(Failure(p, f"{text}; relax tol, or hand it to solve with fallback=True"))
        return alone

    def _alone(self, p: int) -> None:
        """One problem by `Mechanism.solve`."""
        self.fell_back[p] = True
        try:
            found = self.mechanism.solve(self.given[p], self.tol)
        except FairoptError as error:
            self.failed.append(Failure(p, f"{type(error).__name__}: {error}"))
            return
        self.tasks[p], self.certificate[p] = found.tasks, found.certificate.residual

    def allocations(self) -> Allocations:
        """All of them as arrays."""
        shapes = [tasks.shape for tasks in self.tasks if tasks is not None]
        users = max([1, *map(len, self.users), *(shape[0] for shape in shapes)])
        tasks = np.full((len(self.tasks), users, max([1, *(shape[1] for shape in shapes)])), np.nan)
        user_tasks = np.full(tasks.shape[:2], np.nan)
        for p, own in enumerate(self.tasks):
            if own is not None:
                tasks[p, : own.shape[0], : own.shape[1]] = own
                user_tasks[p, : own.shape[0]] = own.sum(axis=1)
        return Allocations(
            str(self.mechanism),
            user_tasks,
            tasks,
            self.certificate,
            tuple(sorted(self.failed)),
            self.fell_back,
            self.tol,
            tuple(self.users),
        )
