"""The per-server game as programs that can be changed: one of CVXPY for every server, and best responses by them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import clock
from ...base.errors import DataError, NotConverged, SolverError
from ...base.libraries import cp, pd
from ...model import _frames, _validate
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...result.allocation import Allocation, Trace
from . import solvers

if TYPE_CHECKING:
    from .named_problem import NamedProblem

#: Tasks below this part of the most that a user could run count for nothing in changes from round to round.
_NOTHING = 1e-9
#: Tolerance of certificates, that of the declarative engine of the game.
_CERTIFIED = 1e-4


@dataclasses.dataclass(frozen=True)
class Game:
    r"""One convex program per server, over its column of tasks, given what the others give; servers take turns.

    .. math:: x_{\cdot i} \leftarrow \arg\max \{ U_i(x) : x_{\cdot i} \in X_i \}, \qquad i = 1, 2, \dots, 1, 2, \dots

    An allocation at which no server would change its column is a Nash equilibrium. That rounds come to one is observed
    for the mechanisms' programs, not proved, and for changed programs there may be none.

    Attributes
    ----------
    mechanism : whose servers they are
    cluster : where it is played
    problems : dict of str to NamedProblem
        The program of every server on which somebody can run, by its name.
    changed : bool
        Are there constraints that the mechanism's criterion does not know?

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]], users=["ann", "bob"], servers=["s1", "s2"])
    >>> game = fo.AlphaPFVDS(3).game(cluster).bounding("bob", "s2", most=0.4)
    >>> print(game.solve().tasks.round(3))
    [[0.6 0.2]
     [0.2 0.4]]
    """

    mechanism: Any
    cluster: Cluster
    problems: Mapping[str, NamedProblem]
    changed: bool = False

    def adding(self, server: str, **constraints: Callable[[NamedProblem], cp.Constraint]) -> Game:
        """The game with more constraints of a server, by name: functions of its program.

            game.adding("s2", cap=lambda p: p.tasks["ann", "s2"] + p.tasks["bob", "s2"] <= 5)

        `p.tasks`, (users, servers), has the other servers' tasks as they are when this one responds.

        Raises
        ------
        DataError
            There is no such server, nobody can run there, or the name is taken.
        """
        if server not in self.problems:
            raise DataError(f"no program of a server {server!r}; give one of {', '.join([*self.problems][:8])}")
        problem = self.problems[server]
        more = problem.adding(**{name: rule(problem) for name, rule in constraints.items()})
        return dataclasses.replace(self, problems={**self.problems, server: more}, changed=True)

    def bounding(self, user: str, server: str, *, least: float = 0.0, most: float = math.inf) -> Game:
        """The game in which a user has at least and at most so many tasks on a server."""
        rules: dict[str, Callable[[NamedProblem], cp.Constraint]] = {}
        if least > 0:
            rules[f"least of {user}"] = lambda p: p.tasks[user, server] >= least
        if most < math.inf:
            rules[f"most of {user}"] = lambda p: p.tasks[user, server] <= most
        return self.adding(server, **rules)

    def solve(
        self,
        order: Sequence[str] | None = None,
        *,
        tol: float = 1e-6,
        max_rounds: int = 200,
        start: Any = None,
        solver: str | None = None,
        throw: bool = True,
    ) -> Allocation:
        """Play best responses until no server changes anybody's tasks by more than `tol`.

        Parameters
        ----------
        order : names of servers, optional
            In which they respond in every round; by default that of the cluster. A name may come twice.
        tol : largest change of a round, relative to the user's tasks
        max_rounds : most rounds
        start : tasks (users, servers), or an allocation; by default nobody has anything
        solver : CLARABEL, HIGHS or SCS; by default what fits the programs
        throw : False: return a flagged allocation instead of raising where `max_rounds` do not do

        Returns
        -------
        Allocation
            Certified by the mechanism's criterion to 1e-4; a changed game, which has none, is certified to be feasible,
            as a note says. Its `trace` has a row per round, and `trace.frame.attrs["tasks"]` the tasks after
            each, (rounds, users, servers).

        Raises
        ------
        DataError
            The order names no server, or `start` does not fit.
        SolverError
            A program has no solution: constraints cannot be met beside what other servers give.
        NotConverged
            The last of `max_rounds` rounds still changed more than `tol`.
        """
        tol, max_rounds = _validate.tolerance(tol), _validate.whole(max_rounds, "max_rounds")
        names = [*self.problems] if order is None else [*order]
        if unknown := [name for name in names if name not in self.problems]:
            raise DataError(f"no program of a server {unknown[0]!r}; give some of {', '.join([*self.problems][:8])}")
        tasks = np.zeros(self.cluster.shape[:2])
        if start is not None:
            given = start.tasks if isinstance(start, Allocation) else start
            tasks = np.array(_frames.tasks(given, self.cluster.users, self.cluster.servers), dtype=float)
        rows: list[dict[str, float]] = []
        watch, rounds, residual = clock.Watch(), list[Array](), math.inf
        least = np.maximum(_NOTHING * self.cluster.gamma.sum(axis=1), np.finfo(float).tiny)
        while residual > tol and len(rows) < max_rounds:
            before = tasks.copy()
            for server in map(self.cluster.servers.index, names):
                tasks[:, server] = self._response(server, tasks, solver)
            whole = np.maximum.reduce([tasks.sum(axis=1), before.sum(axis=1), least])
            residual = float((np.abs(tasks - before) / whole[:, None]).max())
            rounds.append(tasks.copy())
            rows.append({"residual": residual, "exploitability": np.nan, "seconds": watch.cpu})
        frame = pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="round"))
        frame.attrs["tasks"] = np.array(rounds)
        reason = f"no response changed anything by more than tol={tol:g}" if residual <= tol else "max_rounds reached"
        trace = Trace(frame, reason, ", ".join(names) if order is not None else "cyclic")
        if throw and residual > tol:
            raise NotConverged(
                f"the game of {self.mechanism} by its programs: {trace!r}; allow more rounds, relax tol, try another "
                "order, or take it flagged with throw=False"
            )
        return self._allocation(tasks, trace, throw)

    def _response(self, server: int, tasks: Array, solver: str | None) -> Array:
        """Tasks (users,) of a server's best response, cut to capacities and limits, which solvers pass by a trifle."""
        problem, cluster = self.problems[self.cluster.servers[server]], self.cluster
        problem.program.give_others(tasks)
        try:
            if problem.levels is not None:
                problem.lexicographic(solver)
            else:
                solvers.first_success(problem, solver)
        except SolverError as error:
            name = cluster.servers[server]
            raise SolverError(
                f"the program of server {name!r} has no answer beside what other servers give ({error}). If there are "
                "added constraints, mend them"
            ) from None
        elsewhere = np.delete(tasks, server, axis=1).sum(axis=1)
        limits = problem.program.criterion.limits(cluster)
        column = np.clip(problem.tasks.value[:, server], 0.0, np.maximum(limits - elsewhere, 0.0))
        capacity = cluster.capacity[server]
        used = np.divide(column @ cluster.demand, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
        return np.asarray(column / max(1.0, float(used.max())))

    def _allocation(self, tasks: Array, trace: Trace, throw: bool) -> Allocation:
        notes: tuple[str, ...] = ()
        if self.changed:
            notes = ("a changed game, which no criterion judges: certified is that its tasks are feasible",)
        label, judge = (f"{self.mechanism}, changed", None) if self.changed else (str(self.mechanism), self.mechanism)
        origin = ("programs", trace.reason)
        found = Allocation._judged(self.cluster, tasks, label, judge, _CERTIFIED, throw, None, origin, *notes)
        object.__setattr__(found, "trace", trace)  # `replace` would ask for the criterion, of which there may be none
        return found


def game(mechanism: Any, cluster: Cluster, scaled: bool | None = None) -> Game:
    """Programs of all servers of a cluster on which somebody can run something."""
    nothing = np.zeros(cluster.shape[:2])
    criterion = mechanism.criterion(cluster)
    somebody = (cluster.usable & (criterion.limits(cluster) > 0)[:, None]).any(axis=0)
    names = [cluster.servers[i] for i in np.flatnonzero(somebody)]
    if not names:
        raise DataError("no user can run anything here, so that there is no game; give somebody a server to run on")
    return Game(mechanism, cluster, {n: mechanism.server_problem(cluster, n, nothing, scaled=scaled) for n in names})
