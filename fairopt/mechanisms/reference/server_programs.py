"""The per-server game as modifiable CVXPY programs, one per server, and best responses with them."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import clock
from ...base.errors import DataError, NotConverged, SolverError
from ...base.libraries import cp, pd
from ...model import _frames, _validate
from ...model._arrays import Array
from ...model.cluster import Cluster
from ...result.allocation import Allocation, Trace
from . import server_problem, solvers

if TYPE_CHECKING:
    from .named_problem import NamedProblem

#: Changes are relative to a user's tasks, or to this fraction of its monopoly tasks if that is larger.
_NEGLIGIBLE = 1e-9
#: Tolerance of certificates, equal to the tolerance of the game's declarative engine.
_CERTIFIED = 1e-4

#: Largest number of different programs that the text of a game displays, and of servers that it names for a program.
_SHOWN = 3


@dataclasses.dataclass(frozen=True, repr=False)
class Game:
    r"""The per-server game as one convex program per server, over the server's column of tasks, given other columns.

    .. math:: x_{\cdot i} \leftarrow \arg\max \{ U_i(x) : x_{\cdot i} \in \mathcal{X}_i \}, \quad
        i = 1, 2, \dots, 1, 2, \dots

    with the objective :math:`U_i` of server i and its feasible columns :math:`\mathcal{X}_i`. An allocation at which no
    server can improve its objective is a Nash equilibrium. Convergence of best responses is observed for the
    mechanisms' programs, not proved, and modified programs need not have an equilibrium.

    Attributes
    ----------
    mechanism : Mechanism
    cluster : Cluster
    problems : dict of str to NamedProblem
        The program of every server on which a user can run tasks, by the server's name.
    changed : bool
        True if constraints were added that the mechanism's criterion does not express.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018, section 3 (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]], users=["ann", "bob"], servers=["s1", "s2"])
    >>> game = fo.AlphaPFVDS(3).game(cluster).bounding("bob", "s2", most=0.4)
    >>> print(game.problems["s2"].named["most of bob"])
    tasks[1, 1] <= 0.4
    >>> print(game.solve().tasks.round(3))
    [[0.6 0.2]
     [0.2 0.4]]
    """

    mechanism: Any
    cluster: Cluster
    problems: Mapping[str, NamedProblem]
    changed: bool = False

    def __repr__(self) -> str:
        alike: dict[str, list[str]] = {}
        for server, problem in self.problems.items():
            alike.setdefault(textwrap.indent(str(problem), "  "), []).append(server)
        programs = [f"{_few(servers)}:\n{text}" for text, servers in islice(alike.items(), _SHOWN)]
        more = len(alike) - len(programs)
        title = f"{self.mechanism}{', changed' * self.changed}: {len(self.cluster.users)} users, a program per server"
        return "\n".join([title, *programs, *([f"and {more} other programs"] * (more > 0))])

    def adding(self, server: str, **constraints: Callable[[NamedProblem], cp.Constraint]) -> Game:
        """Return a new game in which the program of `server` has additional named constraints.

        Each constraint is given as a function of the server's program, for example::

            game.adding("s2", cap=lambda p: p.tasks["ann", "s2"] + p.tasks["bob", "s2"] <= 5)

        `p.tasks`, (users, servers), contains the present tasks on other servers when `server` responds.

        Raises
        ------
        DataError
            There is no such server, no user can run tasks on it, or it has a constraint of the same name.
        """
        if server not in self.problems:
            raise DataError(f"no program of a server {server!r}; give one of {', '.join([*self.problems][:8])}")
        problem = self.problems[server]
        more = problem.adding(**{name: rule(problem) for name, rule in constraints.items()})
        return dataclasses.replace(self, problems={**self.problems, server: more}, changed=True)

    def bounding(self, user: str, server: str, *, least: float = 0.0, most: float = math.inf) -> Game:
        """Return a new game in which the tasks of a user on a server are at least `least` and at most `most`.

        Raises
        ------
        DataError
            There is no such user or server, no user can run tasks on the server, or the same bound was added before.
        """
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
        """Iterate best responses until no server changes a user's tasks by more than `tol`.

        Parameters
        ----------
        order : sequence of str, optional
            Names of servers in the order of their responses in every round; names may be repeated. Default: the order
            of the cluster.
        tol : float
            Largest accepted change of a user's tasks on a server in the last round, relative to the user's tasks.
        max_rounds : int
            Largest number of rounds.
        start : array (users, servers) or Allocation, optional
            Initial tasks, by default zero.
        solver : str, optional
            CLARABEL, HIGHS or SCS; by default a solver that supports the programs.
        throw : bool
            False: return a flagged allocation instead of raising after `max_rounds`.

        Returns
        -------
        Allocation
            Tasks, certified by the mechanism's criterion to 1e-4, or, for a changed game, for feasibility only, which a
            note states. `trace.frame` has a row per round, and `trace.frame.attrs["tasks"]` is an array (rounds, users,
            servers) of the tasks after every round.

        Raises
        ------
        DataError
            The order names a server without a program, or `start` has another shape.
        SolverError
            A program has no solution: its constraints are infeasible given the tasks on other servers.
        NotConverged
            The last of `max_rounds` rounds changed tasks by more than `tol`.
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
        least = np.maximum(_NEGLIGIBLE * self.cluster.gamma.sum(axis=1), np.finfo(float).tiny)
        order_of_servers = [self.cluster.servers.index(name) for name in names]
        played = server_problem.rounds(tasks, lambda server: self._response(server, tasks, solver), order_of_servers)
        for before in islice(played, max_rounds):
            whole = np.maximum.reduce([tasks.sum(axis=1), before.sum(axis=1), least])
            residual = float((np.abs(tasks - before) / whole[:, None]).max())
            rounds.append(tasks.copy())
            rows.append({"residual": residual, "exploitability": np.nan, "seconds": watch.cpu})
            if residual <= tol:
                break
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
        """Tasks (users,) of a server's best response, made exactly feasible for capacities and task limits.

        Raises `SolverError` if the server's program has no solution.
        """
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
        # `dataclasses.replace` would evaluate the criterion, which a changed game lacks.
        object.__setattr__(found, "trace", trace)
        return found


def _few(names: list[str]) -> str:
    return ", ".join(names if len(names) <= _SHOWN else [*names[:_SHOWN], f"{len(names) - _SHOWN} more"])


def game(mechanism: Any, cluster: Cluster, scaled: bool | None = None) -> Game:
    """Construct the game with the programs of all servers on which a user can run tasks.

    Raises `DataError` if no user can run a task.
    """
    nothing = np.zeros(cluster.shape[:2])
    criterion = mechanism.criterion(cluster)
    somebody = (cluster.usable & (criterion.limits(cluster) > 0)[:, None]).any(axis=0)
    names = [cluster.servers[i] for i in np.flatnonzero(somebody)]
    if not names:
        raise DataError("no user can run a task, so that there is no game; make a user eligible on a server")
    return Game(mechanism, cluster, {n: mechanism.server_problem(cluster, n, nothing, scaled=scaled) for n in names})
