"""Base class of the mechanisms of the per-server game: the program of one server, and equilibria of all servers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base.errors import DataError, FairoptError, NotConverged
from ..base.libraries import cp
from ..core.game import chained, played
from ..core.game import engine as game_engine
from ..core.game.index import index_of_answer
from ..core.solution import Solution
from ..model._arrays import Array
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion, criterion, virtual_share_per_task
from ..model.problem import Problem
from ..result.allocation import Allocation
from ._base import Mechanism
from ._solve import within
from .reference import scaled as scaling
from .reference import server_problem as reference
from .reference.program import Program, Statement, maximise

if TYPE_CHECKING:
    from .reference.named_problem import NamedProblem
    from .reference.server_programs import Game


#: After a failure of the equilibrium engine, best responses are tried for up to `RESPONDING` (user, server) pairs, and
#: CVXPY for up to `DECLARED` pairs, each for up to `_FALLBACK_SECONDS` CPU seconds.
RESPONDING, DECLARED, _FALLBACK_SECONDS = 250_000, 500, 5.0
#: Largest number of rounds of these best responses for PS-DSF, for which the equilibrium engine has played many rounds:
#: answers that were certified after those took at most 153.
_PSDSF_ROUNDS = 250


def _potential(p: Program) -> Statement:
    """State the game at alpha = 1: proportional fairness of work, whose optimum is the unique equilibrium."""
    return maximise(p.weight @ cp.log(p.work), p.constraints)


@dataclasses.dataclass(frozen=True)
class GameMechanism(Mechanism):
    r"""Base class of the per-server games; `program` states the objective that one server maximises.

    An allocation is fair if it is a Nash equilibrium of the servers,

    .. math:: x_{\cdot i} \in \arg\max_y \{ U_i(y, x_{\cdot,-i}) : y \in \mathcal{X}_i(x_{\cdot,-i}) \}
        \quad \text{for every server i}

    where server i has the objective :math:`U_i` and the feasible columns :math:`\mathcal{X}_i`. Finite task limits
    :math:`q_n` couple the servers' feasible sets (a generalised Nash equilibrium): server i can run at most
    :math:`q_n - \sum_{j \ne i} x_{nj}` tasks of user n.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018, section 3 (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> issubclass(fo.PSDSF, fo.mechanisms.GameMechanism)
    True
    """

    merges_users: ClassVar[bool] = True

    def problem(self, cluster: Cluster, *, scaled: bool | None = None, parameters: bool = False) -> NamedProblem:
        """Formulate the game at alpha = 1 as one program: proportional fairness of work over all servers.

        `scaled` and `parameters` are parameters of `Mechanism.problem`.

        Raises
        ------
        DataError
            alpha is not 1, or the utility is user-defined: the game is then not one program. `server_problem` and
            `game` formulate a program per server.
        """
        from .reference.named_problem import cluster_problem

        self.check(cluster)
        rule = self.criterion(cluster)
        if rule.alpha != 1 or not rule.scale_free:
            has_alpha = any(field.name == "alpha" for field in dataclasses.fields(self))
            raise DataError(
                f"{self} is a game and no single program: use game(cluster), which has one for every server, or "
                f"{'choose alpha=1' if has_alpha else 'take AlphaPFVDS(1)'}, where the game is one"
            )
        potential = reference.proportional(cluster, rule)
        states = _potential, scaling.statement
        return cluster_problem(cluster, potential, *states, self.formula, scaled=scaled, parameters=parameters)

    def server_problem(
        self, cluster: Cluster, server: str | int, tasks: Array, *, scaled: bool | None = None
    ) -> NamedProblem:
        """Formulate the problem of one server, by name or index from 0, over its column of `tasks` (users, servers).

        All other columns are fixed. The server's own column does not change the problem, and is a solution at an
        equilibrium. `scaled` is the parameter of `Mechanism.problem`.

        Raises
        ------
        DataError
            There is no such server, no user can run tasks on it, or `tasks` are not a nonnegative (users, servers)
            array.
        """
        self.check(expected(cluster, "programs of single servers"))
        rule = self.criterion(cluster)
        return reference.server_problem(
            cluster, rule, server, tasks, self.program, self.scaled_program(rule), self.formula, scaled
        )

    def game(self, cluster: Cluster, *, scaled: bool | None = None) -> Game:
        """Formulate the game as one convex program per server, to modify and to play, for example::

            fo.AlphaPFVDS(3).game(cluster).bounding("ann", "s2", most=5).solve().trace

        `scaled` is the parameter of `Mechanism.problem`.

        Raises
        ------
        DataError
            The mechanism is not defined on this cluster, or no user can run a task there.
        """
        from .reference import server_programs

        self.check(expected(cluster, "programs of single servers"))
        return server_programs.game(self, cluster, scaled)

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        rule = self._ordinary() if criterion is None else criterion
        if rule is not None and rule.alpha == 0:
            return ("equilibrium", "declarative")  # independent linear programs of servers need no best responses
        return ("equilibrium", "best-response", "declarative")

    def tolerance(self, engine: str) -> float:
        return 1e-4 if engine == "declarative" else self.default_tol

    def virtual_criterion(self, cluster: Cluster, alpha: float) -> Criterion:
        r"""Alpha-fair criterion of the game with virtual dominant shares :math:`x_n / \gamma_{ni}`."""
        return criterion(cluster, partial(virtual_share_per_task, cluster), alpha, "game")

    def solutions(
        self,
        problem: Problem,
        engine: str,
        tol: float,
        solver: str | None,
        warm: object = None,
    ) -> Iterator[Solution]:
        self.check_statement(problem)
        if engine == "declarative":
            return reference.solutions(problem, tol, solver, self.scaled_program(problem.criterion))
        if engine == "best-response":
            return played.solutions(problem, tol)
        return self.equilibria(problem, tol, warm)

    def equilibria(self, problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
        """Candidate solutions of the engine `equilibrium`."""
        return game_engine.solutions(problem, tol, warm)

    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        """Candidates of best responses and CVXPY within a few CPU seconds, so that a failure is reported quickly.

        The result is None for clusters that are too large for this time.
        """
        pairs = int(np.count_nonzero(problem.cluster.eligible))
        if engine == "best-response" and pairs <= RESPONDING:
            # A response takes 0.1 to 40 microseconds per pair; at most 24 candidates are certified.
            most = _PSDSF_ROUNDS if np.isinf(problem.criterion.alpha) else np.inf
            offers = played.solutions(problem, tol, int(min(1e7 / max(pairs, 1), most)))
            return within(_FALLBACK_SECONDS, islice(offers, 24))
        if engine == "declarative" and pairs <= DECLARED:
            return within(_FALLBACK_SECONDS, self.solutions(problem, engine, tol, None))
        return None

    def index(self, problem: Problem, tasks: Array, log_prices: Array | None) -> int | None:
        return index_of_answer(problem, tasks, log_prices)

    def neighbours(self, problem: Problem, tol: float) -> Iterator[Solution]:
        """Yield the limit of best responses, continued in alpha from alpha = 1."""
        return chained.solutions(problem, tol)

    def complaint(self, best: Allocation, tol: float, tried: tuple[str, ...]) -> FairoptError:
        text = f"{self}: after {best.stats.rounds} steps {best.certificate} misses tol={tol:g} "
        text += f"(engines tried: {', '.join(tried)}){self.reason(best)}"
        return NotConverged(
            f"{text}. Relax tol (the declarative engine of the game is a reference for small clusters at 1e-4), try "
            "another engine, or take the answer flagged with throw=False"
        )
