"""Base class of mechanisms, whose subclasses define a criterion and a program, and inherit the rest."""

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

#: Values of alpha for the generic tests. Values near 1 and extreme values are numerically difficult.
ALPHAS = (0.0, 0.5, 0.9999, 1.0, 1.0001, 3.0, 50.0, 500.0, math.inf)
#: Mechanisms by name. A subclass with a `name` is registered when it is defined.
REGISTRY: Registry[type[Mechanism]] = Registry(__package__, Path(__file__).parent, "mechanism", "mechanisms")


@dataclasses.dataclass(frozen=True)
class Mechanism(Solvable):
    r"""Base class of allocation mechanisms. Subclasses are frozen dataclasses whose fields are the parameters.

    A mechanism maps a cluster to tasks `x`, (users, servers), that are optimal for its criterion, typically

    .. math:: \max_{x \in \mathcal{X}} \sum_n \phi_n f_\alpha(\sigma_n / \phi_n)

    with shares :math:`\sigma_n`, weights :math:`\phi_n` and the feasible set :math:`\mathcal{X}`. A subclass states
    `name`, `title` and `source`, and defines `criterion` (on the pool if its `scope` is "pool") and `program`, the same
    optimisation problem in CVXPY. A mechanism whose fairness no `Criterion` expresses overrides `certify`. Solving,
    comparison and the generic tests are inherited.

    >>> import fairopt as fo
    >>> class Equal(fo.mechanisms.Mechanism):
    ...     name = "equal-tasks"
    ...     def criterion(self, cluster):
    ...         return fo.TaskMaxMin().criterion(cluster)
    >>> Equal().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks.tolist()
    [2.25, 2.25]
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""
    #: Remark for tables of properties, beyond the formal `claims`.
    properties: ClassVar[str] = ""
    claims: ClassVar[tuple[Claim, ...]] = ()
    # The generic tests verify the following facts against the criterion.
    #: True if the number of tasks of every user is the same in all optima.
    unique: ClassVar[bool] = True
    #: True if a user gains by merging two tasks into one task of twice the demand.
    counts_tasks: ClassVar[bool] = False
    #: True if the allocation depends on weights.
    uses_weights: ClassVar[bool] = True
    #: True if the allocation depends on weights only through their ratios.
    relative_weights: ClassVar[bool] = True
    #: True if the allocation depends on a user's shares per task at the servers only through their ratios. Servers of
    #: proportional capacity then act as one server of the game.
    relative_shares: ClassVar[bool] = True
    #: True if every user is guaranteed the fraction `part` of its tasks under a partition of all servers by weight.
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
        """Instances that comparisons include by default."""
        return (cls(),)

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        """Instances with further parameters, which the generic tests run in addition to the variants."""
        return ()

    def prepare(self, cluster: Cluster) -> tuple[Cluster, tuple[str, ...]]:
        scope = getattr(self, "scope", "servers")  # a field of some mechanisms, a class variable of others
        if scope not in ("pool", "servers"):
            raise DataError(f"scope is {scope!r}; it must be 'pool' or 'servers'")
        if scope == "servers" or len(cluster.servers) == 1:
            return cluster, ()
        note = f"{len(cluster.servers)} servers pooled into one"
        if cluster.constrained:
            note += "; placement constraints ignored"
        return cluster.pool(), (note,)

    def program(self, p: Program) -> Statement:
        """State the convex program in the tasks of `p`; by default, the program of an alpha-fair criterion.

        The default raises `DataError` for a criterion of another kind.
        """
        rule = p.criterion
        if type(rule) is not Criterion:
            raise DataError(f"{self} states no program; define program(p), with the objective that its criterion has")
        if rule.share.ndim == 1:
            levels, weight = p.work_share(rule.share) / p.weight, p.weight
        elif rule.scope == "game":
            levels, weight = p.virtual_share / p.weight, p.weight
        else:
            levels, weight = p.server_share / p.pair_weight, p.pair_weight
        if rule.alpha == math.inf:
            return lexmaxmin(levels, p.constraints)
        return maximise(weight @ f_alpha(levels, rule.alpha), p.constraints)

    def problem(self, cluster: Cluster, *, scaled: bool | None = None, parameters: bool = False) -> NamedProblem:
        r"""Formulate the mechanism on `cluster` as a CVXPY problem, to print, to modify, and to solve with any solver.

        Variables are the tasks `x`, (users, servers), of users that can run a task; constraints and expressions are
        accessible by name (`NamedProblem`). Lexicographic max-min is a sequence of programs, of which the result is the
        first: it maximises the least level. No server or user is merged.

        Parameters
        ----------
        scaled : bool, optional
            True: the form that the declarative engine solves, with shares normalised to about 1, fractions of servers
            as variables, and power cones. Its objective is an increasing affine function of the mechanism's objective.
            False: the form printed in papers, which is ill-conditioned for alpha >= 5, for alpha within 0.01 of 1
            (except at 1), and for data that span many orders of magnitude. Default: True for such alphas.
        parameters : bool
            Make capacity, demand, weight and shares per task parameters of CVXPY. The problem then satisfies the rules
            of disciplined parametrized programming (DPP): it is compiled once, and its solution is differentiable with
            respect to the parameters. Shares per task are functions of capacity and demand, and must be updated with
            them.

        Raises
        ------
        DataError
            The mechanism is not defined on this cluster, no user can run a task there, or both `scaled` and
            `parameters` are requested.
        """
        from .reference.named_problem import cluster_problem

        self.check(expected(cluster))
        seen, _ = self.prepare(cluster)
        rule = self.criterion(seen)
        states = self.program, self.scaled_program(rule)
        return cluster_problem(seen, rule, *states, self.formula, scaled=scaled, parameters=parameters)

    @property
    def formula(self) -> str:
        """LaTeX source of the first formula in the docstring of the class; '' if there is no formula."""
        text = textwrap.dedent("    " + (type(self).__doc__ or "").partition(".. math::")[2])
        return "\n".join(itertools.takewhile(lambda line: not line[:1].strip(), text.splitlines())).strip()

    def check_statement(self, problem: Problem) -> None:
        """Raise `DataError` unless program and criterion agree, at the first solve with this instance.

        The native engines read only the criterion. Mechanisms of the package are exempt: the tests check them, and
        users need not wait for the import of CVXPY.
        """
        kind = type(self)
        own = kind.__module__.startswith(f"{__package__}.") or kind.program is Mechanism.program
        if own or not self.judged_by_criterion or "_stated" in vars(self):
            return
        if len(problem.polytope.users):
            check_expressed(self, self.program, problem.cluster, problem.criterion)
            vars(self)["_stated"] = True  # not a field, so that mechanisms with equal parameters compare equal

    def scaled_program(self, criterion: Criterion) -> Callable[[Program], Statement]:
        """Function that states the declarative engine's program: the criterion's scaled program, or else `program`.

        `program` is used if optima of the criterion need not be certified, or CVXPY cannot express the criterion.
        """
        criterions = self.met_by_criterion or type(self).program is Mechanism.program
        return scaling.statement if criterions and scaling.expressible(criterion) else self.program

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        """Names of the engines that support this mechanism, the default first.

        `criterion` is the criterion on the cluster to solve; by default the criterion on a small example cluster.
        """
        rule = self._ordinary() if criterion is None else criterion
        native_too = self.met_by_criterion and (rule is None or native.handles(rule))
        return ("native", "declarative") if native_too else ("declarative",)

    def _ordinary(self) -> Criterion | None:
        """Criterion on a cluster of one server and two users; None if the parameters require other dimensions."""
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
        """Candidate solutions of an engine, in the order in which to certify them; subclasses add engines here.

        `warm` is the warm start that an earlier solution of the same engine provides.
        """
        self.check_statement(problem)
        if engine == "native":
            return self._native(problem, tol, warm)
        from .reference import declarative

        return declarative.solutions(problem, solver, self.scaled_program(problem.criterion))

    def _native(self, problem: Problem, tol: float, warm: object) -> Iterator[Solution]:
        """Candidates of the native engine, then of the game's engine, whose prices need no common unit of welfare.

        The game's engine follows only for alpha-fair criteria at finite alpha > 0. For crowds of users it comes before
        the interior-point method of the native engine.
        """
        from ..core.engines.welfare import crowded, fixed_at_floors
        from ..core.game import crowd, equilibria

        rule, found = problem.criterion, None
        more: Iterator[Solution] = iter(())
        finite = 0 < rule.alpha < np.inf and type(rule) is Criterion and not len(problem.polytope.timed)
        if finite:
            more = (dataclasses.replace(one, engine="native", warm=None) for one in equilibria.solutions(problem, tol))
        many = not rule.floor.any() and crowded(problem)
        if many:
            yield from crowd.solutions(problem, tol, "native")
        for found in native.solutions(problem, tol, warm, more if many else iter(())):
            yield found
        if finite and rule.floor.any():  # the game's engine has no floors: users at their floors are fixed
            more = fixed_at_floors(problem, found, lambda limited: self._native(limited, min(tol, 1e-11), None))
            more = (dataclasses.replace(one, engine="native", warm=None) for one in more)
        yield from more

    def stand_in(self, problem: Problem, engine: str, tol: float) -> Iterator[Solution] | None:
        """Candidates of a fallback engine, after other engines failed; None if the engine would take minutes."""
        conic = 0 < problem.criterion.alpha < np.inf  # power cones are far slower than linear programs of equal size
        if np.count_nonzero(problem.cluster.eligible) > (5_000 if conic else polytope.LARGE):
            return None
        # SCS takes ten seconds to a minute for a thousand pairs with power cones, and is then used only on request.
        power = conic and type(problem.criterion) is Criterion
        return self.solutions(problem, engine, tol, "CLARABEL" if power else None)

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
        """Compute a certified allocation of the cluster.

        Parameters
        ----------
        cluster : Cluster
        tol : float, optional
            Bound on the residual of the certificate, in feasibility and in optimality (dimensionless). Default: 1e-6;
            1e-4 for the declarative engine of the per-server game.
        throw : bool
            False: return a flagged allocation instead of raising when the certificate misses `tol`.
        engine : str, optional
            One of `engines()`. Default: the first engine. If it misses `tol`, the other engines follow, except engines
            whose expected time is too long (`stand_in`).
        solver : str, optional
            CLARABEL, HIGHS or SCS; selects the declarative engine with this solver.
        start : Allocation, optional
            Warm start: the solution of a similar problem with the same users, servers and resources. A solution for
            other users on the same servers is given as `fairopt.mechanisms._earlier.OtherUsers(answer)`.

        Returns
        -------
        Allocation
            Tasks (users, servers), with certificate, prices and statistics.

        Raises
        ------
        DataError
            The mechanism is not defined on this cluster; the message says what to change.
        SolverError, NotConverged, CertificateError
            No solution has a certificate within `tol`; see `fairopt.errors` for remedies.
        """
        return solving.solve(self, cluster, tol, throw=throw, engine=engine, solver=solver, start=start)

    def reason(self, best: Allocation) -> str:
        """Explanation of a missed tolerance by properties of the data: '. ' and a sentence, or ''."""
        return advice(best.cluster, best.criterion)

    def complaint(self, best: Allocation, tol: float, tried: tuple[str, ...]) -> FairoptError:
        """Build the error for a best solution whose certificate misses `tol`, after the engines `tried`.

        It is a `CertificateError` if the solver claims an optimum that the residual refutes, otherwise a `SolverError`.
        """
        said = f"{best.stats.solver} reports {best.stats.status!r}; " if best.stats.status else ""
        text = f"{self}: {best.certificate} misses tol={tol:g} ({said}engines tried: {', '.join(tried)})"
        why = self.reason(best)
        found = best.certificate
        # A solver of limited accuracy may have large errors for users of tiny welfare. The duality gap is then small.
        residual = found.residual if found.gap is None else min(found.residual, max(found.gap, found.feasibility))
        # The solver's accuracy does not explain a residual that exceeds the tolerance by four orders of magnitude.
        if not why and best.stats.status == "optimal" and residual > 1e4 * tol:
            others = tuple(name for name in self.engines(best.criterion) if name not in tried)
            claim = (
                solvers.wrong_claim(best.stats.solver, others, best.criterion.alpha in (0, np.inf)) or "This is a bug: "
            )
            return CertificateError(f"{text}. {claim}please report it with the cluster (cluster.save(...))")
        return SolverError(f"{text}{why}. Relax tol, try another solver or engine, or take it flagged with throw=False")

    def __str__(self) -> str:
        return label(self.title, self, _SHOWN)
