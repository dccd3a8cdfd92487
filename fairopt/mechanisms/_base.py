"""Base class of mechanisms: a criterion and a program. Solving, certifying and wrapping are inherited."""

from __future__ import annotations

import dataclasses
import itertools
import math
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from ..base.errors import CertificateError, DataError, FairoptError, SolverError
from ..base.registry import Registry
from ..certificates import advice
from ..core.engines import native
from ..core.solution import Solution
from ..model import polytope
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..model.problem import Problem
from ..result.allocation import Allocation
from . import _solve as solving
from ._claim import Claim
from ._earlier import OtherUsers
from ._label import label
from ._solvable import Solvable
from .reference import scaled as scaling
from .reference import solvers
from .reference.program import Program, Statement, check_expressed, f_alpha, lexmaxmin, maximise

if TYPE_CHECKING:
    from .reference.named_problem import NamedProblem


#: Parameters that a mechanism's label always shows.
_SHOWN = ("alpha", "beta", "utility")

#: Alphas that are hard for numerics, around 1 and far out, for the laws.
ALPHAS = (0.0, 0.5, 0.9999, 1.0, 1.0001, 3.0, 50.0, 500.0, math.inf)
#: Every mechanism by its name; a subclass that states a `name` is in it by being defined.
REGISTRY: Registry[type[Mechanism]] = Registry(__package__, Path(__file__).parent, "mechanism", "mechanisms")


@dataclasses.dataclass(frozen=True)
class Mechanism(Solvable):
    """A way to share a cluster. Subclasses are frozen dataclasses whose fields are the mechanism's parameters.

    A subclass states `name`, `title` and `source`, and defines `criterion`, of the pool if its `scope` is "pool", and
    `program`, the same in CVXPY; what criteria do not express takes a `certify` of its own. That is all: it then
    solves, compares, and takes part in the generic tests.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""
    #: What is to be said of it in short beyond its `claims`.
    properties: ClassVar[str] = ""
    claims: ClassVar[tuple[Claim, ...]] = ()
    #: What laws ask, and hold to the criterion. Is there one answer, in tasks of users?
    unique: ClassVar[bool] = True
    #: Does a user gain by calling two of its tasks one?
    counts_tasks: ClassVar[bool] = False
    #: Do weights count, and only their ratios?
    uses_weights: ClassVar[bool] = True
    relative_weights: ClassVar[bool] = True
    #: Do only ratios of a user's shares on several servers count? Proportional servers of a game then act as one.
    relative_shares: ClassVar[bool] = True
    #: Is everybody guaranteed `part` of what it could run alone with its weight's part of every server?
    has_floors: ClassVar[bool] = False

    def __new__(cls, *arguments: object, **more: object) -> Self:
        if cls.__abstractmethods__:
            raise DataError(
                f"{cls.__name__} lacks criterion(cluster), what fair means there, by which answers are judged; a rule "
                "that is a function from a cluster to tasks is a mechanism by @fairopt.mechanism('name')"
            )
        return super().__new__(cls)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        REGISTRY.defined(cls)

    @classmethod
    def variants(cls) -> tuple[Mechanism, ...]:
        """The instances that comparisons show by default."""
        return (cls(),)

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        """Instances with other parameters, for the laws to try beside the variants."""
        return ()

    def prepare(self, cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
        scope = getattr(self, "scope", "servers")  # a parameter of some, a constant of others
        if scope not in ("pool", "servers"):
            raise DataError(f"scope is {scope!r}; it must be 'pool' or 'servers'")
        if scope == "servers" or len(cluster.servers) == 1:
            return cluster, ()
        note = f"{len(cluster.servers)} servers pooled into one"
        if cluster.constrained:
            note += "; placement constraints ignored"
        return cluster.pool(), (note,)

    def program(self, p: Program) -> Statement:
        """State the convex program over the tasks of `p`; by default that of the criterion, if it is alpha-fair."""
        rule = p.criterion
        if type(rule) is not Criterion:
            raise DataError(f"{self} states no program; define program(p), with the objective that its criterion has")
        if rule.share.ndim == 1:
            levels, weight = p.share(rule.share) / p.weight, p.weight
        elif rule.scope == "game":
            levels, weight = p.virtual_share / p.weight, p.weight
        else:
            levels, weight = p.server_share / p.pair_weight, p.pair_weight
        if rule.alpha == math.inf:
            return lexmaxmin(levels, p.constraints)
        return maximise(weight @ f_alpha(levels, rule.alpha), p.constraints)

    def problem(self, cluster: Cluster, *, scaled: bool | None = None, parameters: bool = False) -> NamedProblem:
        r"""The mechanism as a convex program on `cluster`, to print, change, read duals of, and solve with any solver.

        Unknowns are the tasks `x`, (users, servers), of those who can run anything; constraints and tasks are there by
        name (`NamedProblem`). Lexicographic max-min is a sequence of programs: this is the first, which maximises the
        least level. No server or user is merged.

        Parameters
        ----------
        scaled : bool, optional
            True: shares in units near 1, fractions of servers as unknowns, and power cones, as the declarative engine
            solves it; the objective is the mechanism's but for a constant and a positive factor. False: as printed in
            papers, where solvers lose users from alpha = 5 on, within 0.01 of alpha = 1, and where data span many
            decades. Default: True for such alphas.
        parameters : bool
            Make capacity, demand, weight and shares per task `cp.Parameter`s, for DPP: the problem is compiled once and
            has derivatives by them. Values of shares per task follow from capacity and demand; who changes these sets
            them anew.

        Raises
        ------
        DataError
            The mechanism is not defined on this cluster, or nobody can run anything there.
        """
        from .reference.named_problem import cluster_problem

        self.check(expected(cluster))
        seen, _ = self.prepare(cluster)
        rule = self.criterion(seen)
        states = self.program, self.scaled_program(rule)
        return cluster_problem(seen, rule, *states, self.formula, scaled=scaled, parameters=parameters)

    @property
    def formula(self) -> str:
        """The definition in LaTeX, as the docstring of the class has it; '' if it has none."""
        text = textwrap.dedent("    " + (type(self).__doc__ or "").partition(".. math::")[2])
        return "\n".join(itertools.takewhile(lambda line: not line[:1].strip(), text.splitlines())).strip()

    def check_statement(self, problem: Problem) -> None:
        """`DataError` unless program and criterion say the same, at the first solve of this mechanism.

        Engines read the criterion alone. Not of the package's own: tests check these, and users need not wait for
        CVXPY.
        """
        kind = type(self)
        own = kind.__module__.startswith(f"{__package__}.") or kind.program is Mechanism.program
        if own or not self.judged_by_criterion or "_stated" in vars(self):
            return
        if len(problem.polytope.users):
            check_expressed(self, self.program, problem.cluster, problem.criterion)
            vars(self)["_stated"] = True  # no field: nothing that tells mechanisms apart

    def scaled_program(self, criterion: Criterion) -> Callable[[Program], Statement]:
        """What the declarative engine solves: the criterion's program, or `program` where the criterion is not all."""
        criterions = self.met_by_criterion or type(self).program is Mechanism.program
        return scaling.statement if criterions and scaling.expressible(criterion) else self.program

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        """Engines that can run this mechanism, the default first.

        On a cluster: with its criterion there, as `solve` asks. Without one: on an ordinary cluster.
        """
        rule = self._ordinary() if criterion is None else criterion
        native_too = self.met_by_criterion and (rule is None or native.handles(rule))
        return ("native", "declarative") if native_too else ("declarative",)

    def _ordinary(self) -> Criterion | None:
        """The criterion on one server with two users; None if the parameters are for other users or resources."""
        try:
            return self.criterion(self.prepare(Cluster([[9, 18]], [[1, 4], [3, 1]]))[0])
        except DataError:
            return None

    def solutions(
        self,
        problem: Problem,
        engine: str,
        tol: float,
        solver: str | None,
        warm: object = None,
    ) -> Iterator[Solution]:
        """Candidate answers of an engine, best guess first. The seam where a fast engine comes in.

        `warm` is what an earlier solution of the same engine offered to start from.
        """
        self.check_statement(problem)
        if engine == "native":
            return self._native(problem, tol, warm)
        from .reference import declarative

        return declarative.solutions(problem, solver, self.scaled_program(problem.criterion))

    def _native(self, problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
        """The native engines; where one unit of welfare does not fit all users, the game's, which has none."""
        found = None
        for found in native.solutions(problem, tol, warm):
            yield found
        rule = problem.criterion
        if not 0 < rule.alpha < np.inf or type(rule) is not Criterion:
            return
        from ..core.engines.welfare import fixed_at_floors
        from ..core.game import equilibria

        more = equilibria.solutions(problem, tol)
        if rule.floor.any():  # which the game does not know; nobody else finds last digits
            more = fixed_at_floors(problem, found, lambda limited: self._native(limited, min(tol, 1e-11), None))
        for found in more:
            yield dataclasses.replace(found, engine="native", warm=None)

    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        """Candidates of an engine tried after others failed; `None` where it would take too long unasked."""
        conic = 0 < problem.criterion.alpha < np.inf  # solvers of power cones take minutes of more pairs
        if np.count_nonzero(problem.cluster.eligible) > (5_000 if conic else polytope.LARGE):
            return None
        return self.solutions(problem, engine, tol, None)

    def solve(
        self,
        cluster: Cluster,
        tol: float | None = None,
        *,
        throw: bool = True,
        engine: str | None = None,
        solver: str | None = None,
        start: Allocation | OtherUsers | None = None,
    ) -> Allocation:
        """Share the cluster.

        Parameters
        ----------
        tol : float, optional
            What the certificate must reach, in feasibility and in optimality. Default: 1e-6; 1e-4 for the declarative
            engine of the per-server game.
        throw : bool
            False: return a flagged allocation instead of raising when the certificate misses `tol`.
        engine, solver : str, optional
            One of `engines()`, by default the first, and the next ones where that misses `tol` and they are affordable
            (`stand_in`); one of CLARABEL, HIGHS, SCS for the declarative engine, which is then the default.
        start : Allocation, optional
            An answer to a similar problem (the same users, servers and resources): an engine that can starts there.
            One for other users on the same servers as `fairopt.mechanisms._earlier.OtherUsers(answer)`.

        Raises
        ------
        DataError
            The mechanism is not defined on this cluster; the message says what to change.
        SolverError, NotConverged, CertificateError
            No answer reached `tol`; see `fairopt.errors` for the remedies.
        """
        return solving.solve(self, cluster, tol, throw=throw, engine=engine, solver=solver, start=start)

    def reason(self, best: Allocation) -> str:
        """Why an answer may miss the tolerance though nothing is wrong with engines: a sentence after '. ', or ''."""
        return advice(best.cluster, best.criterion)

    def complaint(self, best: Allocation, tol: float, tried: tuple[str, ...]) -> FairoptError:
        """The error for a best answer whose certificate misses `tol`, after some engines were tried."""
        said = f"{best.stats.solver} says {best.stats.status!r}; " if best.stats.status else ""
        text = f"{self}: {best.certificate} misses tol={tol:g} ({said}engines tried: {', '.join(tried)})"
        why = self.reason(best)
        found = best.certificate
        # Users of tiny welfare may be far off where a solver is short of accuracy: that is no bug.
        residual = found.residual if found.gap is None else min(found.residual, max(found.gap, found.feasibility))
        # Missing the tolerance by so much is not a matter of accuracy.
        if not why and best.stats.status == "optimal" and residual > 1e4 * tol:
            others = tuple(name for name in self.engines(best.criterion) if name not in tried)
            claim = (
                solvers.wrong_claim(best.stats.solver, others, best.criterion.alpha in (0, np.inf)) or "This is a bug: "
            )
            return CertificateError(f"{text}. {claim}please report it with the cluster (cluster.save(...))")
        return SolverError(f"{text}{why}. Relax tol, try another solver or engine, or take it flagged with throw=False")

    def __str__(self) -> str:
        return label(self.title, self, _SHOWN)
