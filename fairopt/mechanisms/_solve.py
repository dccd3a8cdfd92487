"""Compute a certified allocation: candidates of engines are certified in turn until a residual is within tolerance."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ..base import clock
from ..base.errors import DataError, EngineWarning, FairoptError, NotConverged, SolverError
from ..certificates import Certificate, advice, feasibility
from ..certificates.backward import backward_error
from ..certificates.ill_scaled import beyond_doubles
from ..core import refinement
from ..core.engines import sparse_pool
from ..core.engines.maxmin import check_floors
from ..core.solution import REFINEMENT, Run, Solution
from ..model import _validate
from ..model._arrays import Array, deferred, frozen
from ..model._same import unfit_start
from ..model.cluster import Cluster, SparseCluster, expected
from ..model.criterion import ConcaveWelfare, Criterion, FairnessEfficiency
from ..model.merging import Merging, Split, merge, unmerged
from ..model.problem import Problem
from ..result.allocation import Allocation, Stats, idle
from ._earlier import Earlier, OtherUsers
from ._order import Order
from ._solvable import Solvable
from .reference import solvers


def within(seconds: float, offers: Iterator[Solution]) -> Iterator[Solution]:
    """Truncate an engine's candidates after `seconds` of CPU time, certification included.

    Compilation of loops is not counted, so that results do not depend on what was compiled before. The limit is
    checked between candidates: at least one candidate is produced, and the last candidate may exceed the limit.
    """
    end = clock.cpu() + seconds
    for offer in offers:
        yield offer
        if clock.cpu() > end:
            return


#: On clusters of up to `_SMALL` pairs, candidates with a residual above `_FINE` are refined although they are within
#: the tolerance.
_FINE, _SMALL = 1e-10, 500
#: Number of pairs above which a candidate is certified before refinement, which may take longer than the engine.
_MANY = 5_000
#: Bound on the residual of a solver's solution if the formulation is correct.
_FORMULATED = 5e-3
#: A linear program replaces Newton steps that stall at a residual of at most `_STALLED`, if the number of pairs is in
#: the interval `_VERTEX`; on smaller clusters other algorithms are more accurate.
_VERTEX, _STALLED = (2_000, 20_000), 1e-3
#: CPU seconds for conic solvers on data beyond the range of doubles, where they rarely succeed.
BEYOND_RANGE_SECONDS = 1.0


def with_refinement(problem: Problem, offer: Solution) -> Solution | None:
    """Refine a candidate by Newton steps on its active set.

    The result is None without prices, for an unsuitable criterion, or if refinement fails.
    """
    return _moved(problem, offer, REFINEMENT, partial(refinement.refined, aim=1e-12))


def at_vertex(problem: Problem, offer: Solution) -> Solution | None:
    """Candidate from a linear program, near an equilibrium of the game at which Newton steps stall.

    None outside the game at finite alpha > 0, and for clusters with task limits, where equilibria may form a continuum
    and a vertex may be another equilibrium; also None without prices, or if the linear program fails.
    """
    criterion = problem.criterion
    if criterion.scope != "game" or len(problem.polytope.limited) or not 0 < criterion.alpha < np.inf:
        return None
    return _moved(problem, offer, "HiGHS", refinement.vertex)


def _moved(
    problem: Problem, offer: Solution, by: str, find: Callable[..., refinement.Refined | None]
) -> Solution | None:
    polytope, criterion, begun = problem.polytope, problem.criterion, clock.cpu()
    unfit = isinstance(criterion, FairnessEfficiency) or criterion.floor.any() or len(polytope.timed) > 0
    if offer.log_prices is None or unfit:
        return None
    log_rows = polytope.log_row_prices(offer.log_prices)
    if offer.log is None:  # prices of a conic solver may be scaled differently on every server
        log_rows = backward_error(polytope, criterion, offer.tasks, log_rows).every_row
    found = find(polytope, criterion, polytope.gamma * polytope.fractions(offer.tasks), log_rows)
    if found is None:
        return None
    return replace(
        offer,
        tasks=polytope.allocation(polytope.inside(found.tasks / polytope.gamma)),
        prices=None,
        log=polytope.log_unit_prices(found.log_rows),
        runs=(*offer.runs, Run(by, clock.cpu() - begun)),
        rounds=offer.rounds + found.steps,
    )


def broken(name: str, error: Exception) -> SolverError:
    """Warn of an unexpected exception of an engine, and wrap it as `SolverError`, with the exception as its cause."""
    failure = SolverError(f"the {name} engine broke down ({type(error).__name__}: {error})")
    failure.__cause__ = error
    warnings.warn(f"{failure}: please report it with the cluster (cluster.save(...))", EngineWarning, stacklevel=2)
    return failure


@dataclass
class Candidates:
    """Search over the candidates of a mechanism's engines on one (merged) cluster.

    The candidate of smallest residual is kept in `best`, with its certificate and log prices in `verdict`.
    """

    mechanism: Solvable
    problem: Problem
    tol: float
    refine: bool = True  # if False, candidates with a residual up to `_FINE` are accepted without refinement
    best: Solution | None = None
    verdict: tuple[Certificate, Array | None] | None = None
    answered: str = ""
    tried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failure: SolverError | None = None
    build: float = 0.0  # seconds for the construction of the feasible set
    seconds: float = 0.0  # seconds of certification

    @property
    def residual(self) -> float:
        """Residual of the best candidate; infinite without a candidate."""
        return np.inf if self.verdict is None else self.verdict[0].residual

    def search(self, engines: tuple[str, ...], solver: str | None, warm: object) -> Solution | None:
        """Return the first candidate within the tolerance, or else the candidate of the smallest residual.

        The result is None if no engine has a candidate, and has zero tasks if no user can run a task.
        """
        begun, polytope = clock.cpu(), self.problem.polytope
        self.build = clock.cpu() - begun
        if not len(polytope.users):
            shape, free = self.problem.cluster.shape, np.full(self.problem.cluster.capacity.shape, -np.inf)
            log = free if np.isfinite(self.problem.criterion.alpha) else None
            status = "no user can run a task"
            self._certified(Solution(np.zeros(shape[:2]), None, engines[0], status=status, log=log), engines[0])
            self.tried = engines[:1]
            return self.best
        for name in engines:
            try:
                first = name == engines[0]
                offers = (
                    self.mechanism.solutions(self.problem, name, self.tol, solver, warm)
                    if first
                    else self._stand_in(name)
                )
                if offers is None:
                    self.notes += (f"on such a cluster {name} is not tried unasked; engine={name!r} does",)
                    continue
                self.tried += (name,)
                if any(self.reaches(offer, name) for offer in offers):
                    break
            except SolverError as error:
                self._failed(error)
            except MemoryError:
                users, servers, resources = self.problem.cluster.shape
                size = f"{users} users x {servers} servers x {resources} resources, {self.eligible} pairs"
                self._failed(SolverError(f"the {name} engine ran out of memory on {size}"))
            except (FairoptError, Warning):  # warnings are exceptions under an "error" filter
                raise
            except Exception as error:  # after a defect of one engine the next engine is tried
                failure = broken(name, error)
                self._failed(failure)
                self.notes += (f"{failure}: please report it with the cluster (cluster.save(...))",)
        if self.best is not None and self.answered != engines[0]:
            note = f"the {engines[0]} engine did not reach the tolerance: this is the {self.answered} one's answer"
            self.notes += (note,)
        return self.best

    def partitioned(self, why: str) -> Solution:
        """Partition by weight, the flagged result for throw=False if all engines fail; `why` becomes its note."""
        polytope, server = self.problem.polytope, self.problem.polytope.pair_server
        weight = self.problem.criterion.weight[polytope.users][polytope.pair_user]
        tasks = polytope.allocation(polytope.inside(weight / np.bincount(server, weight)[server]))
        best = Solution(tasks, None, "none", status="a partition by weight", notes=(why,))
        self._certified(best, "none")
        return best

    def _failed(self, error: SolverError) -> None:
        """Record a failure; the message of `failure` contains the messages of all failures."""
        earlier, self.failure = self.failure, error
        if earlier is not None:
            self.failure = SolverError(f"{earlier}; {error}")
            self.failure.__cause__ = error.__cause__ or earlier.__cause__

    def _stand_in(self, name: str) -> Iterator[Solution] | None:
        """Candidates of a fallback engine, with a short time limit if the data exceed the range of solvers.

        The result is None if the engine would take too long.
        """
        offers = self.mechanism.stand_in(self.problem, name, self.tol)
        far = name == "declarative" and beyond_doubles(self.problem.cluster, self.problem.criterion)
        if offers is None or not far:
            return offers
        return within(BEYOND_RANGE_SECONDS, offers) if self.eligible <= 100 else None

    @cached_property
    def unmerged(self) -> Merging:
        """Trivial merging, as the cluster has been merged before."""
        return unmerged(self.problem.cluster)

    @property
    def eligible(self) -> int:
        """Number of eligible (user, server) pairs."""
        return int(np.count_nonzero(self.problem.cluster.eligible))

    def reaches(self, offer: Solution, name: str) -> bool:
        """Certify a candidate; True if it is within the tolerance, possibly after linear programs (`at_vertex`)."""
        found, before = offer, np.inf
        large = name != "declarative" and _VERTEX[0] < self.eligible <= _VERTEX[1] and self.mechanism.met_by_criterion
        while not self._met(found, name):
            stalls = large and self.residual <= min(_STALLED, 0.5 * before)
            nearer, before = at_vertex(self.problem, found) if stalls else None, self.residual
            if nearer is None:
                return False
            found = nearer
        return True

    def _met(self, offer: Solution, name: str) -> bool:
        """Certify a candidate; True if it is within the tolerance, by itself or after refinement.

        Refinement comes first on small clusters, where it takes a millisecond, and on medium clusters for candidates
        that the engine marks as rough; otherwise it is applied only if the candidate itself misses the tolerance.
        Solutions of a stated program are always certified first, since refinement uses the criterion and would conceal
        that the program states a different objective.
        """
        if not self.refine and self._certified(offer, name) <= min(_FINE, self.tol):
            return True
        small = self.eligible <= _SMALL
        first = name != "declarative" and not offer.fine and (small or (offer.rough and self.eligible <= _MANY))
        if first and (better := self._refined(offer, name, np.inf)) is not None:
            both = (offer, better) if self._other_equilibrium(offer, better) else (better, offer)
            return any(self._certified(one, name) <= self.tol for one in both)
        residual = self._certified(offer, name)
        if residual > self.tol and np.isinf(self.problem.criterion.alpha):
            filled = self.problem.polytope.filled(offer.tasks, self.tol, residual)
            if filled is not None:
                residual = self._certified(replace(offer, tasks=filled), name)
        again = not first and (residual > self.tol or (residual > _FINE and small))
        if again and (better := self._refined(offer, name, residual)) is not None:
            self._certified(better, name)
        if name == "declarative" and small and self.residual > self.tol:
            # For steep welfare, a solver's tasks may be accurate although its prices are not.
            self._certified(replace(offer, prices=None, log=None), name)
        return self.residual <= self.tol

    def _refined(self, offer: Solution, name: str, residual: float) -> Solution | None:
        """Refined candidate; None if refinement does not apply, or fails.

        Inaccurate solutions of a stated program are refined only if the tasks change little, since refinement uses the
        criterion and would conceal that the program states a different objective.
        """
        if np.isinf(self.problem.criterion.alpha) or not self.mechanism.met_by_criterion:
            return None
        # Newton steps evaluate a concave utility in CVXPY, which takes seconds far from an equilibrium.
        if name == "best-response" and isinstance(self.problem.criterion, ConcaveWelfare):
            return None
        better = with_refinement(self.problem, offer)
        formulated = name == "declarative" and residual > _FORMULATED
        return None if better is None or (formulated and self._change(offer, better) > _FORMULATED) else better

    def _other_equilibrium(self, offer: Solution, better: Solution) -> bool:
        """True if refinement led to another equilibrium, as is possible in a continuum due to task limits."""
        # Refinement towards the same equilibrium changes tasks by less than this bound.
        return self.problem.criterion.scope == "game" and self._change(offer, better) > 1e-3

    def _change(self, offer: Solution, better: Solution) -> float:
        """Mean relative change of work, weighted by marginal welfare `U'(x) x`; in the game the largest change.

        Users without work in either candidate are left out; the mean is 0 if marginal welfare is 0 for all users.
        """
        before, after = map(self.problem.cluster.work, (offer.tasks, better.tasks))
        runs = (before > 0) & (after > 0)
        change = np.abs(np.log(after[runs] / before[runs]))
        if self.problem.criterion.scope == "game":
            return float(change.max(initial=0.0))
        part = self.problem.criterion.restrict(np.flatnonzero(runs)).log_marginal(after[runs]) + np.log(after[runs])
        most = part.max(initial=-np.inf)  # -inf where a utility is flat for all users
        return float(np.average(change, weights=np.exp(part - most))) if np.isfinite(most) else 0.0

    def _certified(self, candidate: Solution, name: str) -> float:
        """Certify a candidate, keep it if it is the best so far, and return its residual."""
        begun = clock.cpu()
        found = self.mechanism.certified(self.problem, Split(self.unmerged, candidate.tasks), candidate.log_prices)
        self.seconds += clock.cpu() - begun
        if self.best is None or found[0].residual < self.residual:
            self.best, self.verdict, self.answered = candidate, found, name
        return found[0].residual


_LEFT = "the engine came to an equilibrium of index -1, which best responses leave: another, of index +1, was taken"
_STAYS = "an equilibrium of index -1: best responses leave it, and there are at least two others (fo.game.equilibria)"
_LOOSE = "index 0: users' tasks are not locally unique here, as equilibria are a continuum or two of them meet"


def indexed(mechanism: Solvable, problem: Problem, found: Candidates, leave: bool) -> tuple[Solution, int | None]:
    """Final solution and its index, which may be deferred; `leave` replaces an unstable by a stable equilibrium.

    The index is None outside the game, and for residuals above 1e-7.
    """
    assert found.best is not None
    assert found.verdict is not None
    best, verdict = found.best, found.verdict
    # The index is the sign of a determinant, which a larger residual leaves undetermined.
    if problem.criterion.scope != "game" or verdict[0].residual > 1e-7:
        return best, None
    # The index requires a dense determinant, which for more than 500 (user, server) pairs is evaluated on demand.
    if found.eligible > 500:
        return best, deferred(partial(mechanism.index, problem, best.tasks, verdict[1]))
    index = mechanism.index(problem, best.tasks, verdict[1])
    if index == -1 and leave and _left(mechanism, problem, found):
        found.notes += (_LEFT,)
        return found.best, 1
    if index == -1:
        found.notes += (_STAYS,)
    elif index == 0:
        found.notes += (_LOOSE,)
    return best, index


def _left(mechanism: Solvable, problem: Problem, found: Candidates) -> bool:
    """Replace an unstable equilibrium by a certified equilibrium of index +1; True on success."""
    for offer in mechanism.neighbours(problem, found.tol):
        other = Candidates(mechanism, problem, found.tol)
        try:
            reached = other.reaches(offer, found.answered)
        except SolverError:
            continue
        if not reached or other.best is None or other.verdict is None:
            continue
        if mechanism.index(problem, other.best.tasks, other.verdict[1]) == 1:
            found.best, found.verdict = other.best, other.verdict
            return True
    return False


def _checked(
    mechanism: Solvable,
    cluster: Cluster,
    problem: Problem,
    tol: float | None,
    engine: str | None,
    solver: str | None,
    start: Allocation | OtherUsers | None,
) -> tuple[tuple[str, ...], float, str | None, Earlier | None]:
    """Return engines in order, tolerance, solver and warm start; raise `DataError` for invalid arguments of `solve`."""
    known = mechanism.engines(problem.criterion)
    if engine is not None and engine not in known:
        raise DataError(f"{mechanism} has no engine {engine!r}; it has {', '.join(known)}")
    game = problem.criterion.scope == "game" and problem.criterion.alpha > 0
    if problem.cluster.rated and game and len(problem.polytope.timed):
        known = ("declarative",)
        if engine not in (None, *known):
            raise DataError(
                f"the {engine} engine knows no task limits of users whose rates differ between servers; the "
                "declarative one does, and answers unless another is chosen"
            )
    engines = known if engine is None else (engine,)
    if solver is not None:
        solver = solvers.known(solver)
        if engine not in (None, "declarative"):
            raise DataError(
                f"the {engine} engine of {mechanism} takes no solver; choose engine='declarative' with {solver!r}"
            )
        engines = ("declarative",)
    tol = mechanism.tolerance(engines[0]) if tol is None else _validate.tolerance(tol)
    if isinstance(start, OtherUsers):
        return engines, tol, solver, start.earlier
    if start is not None and not isinstance(start, Allocation):
        raise DataError(f"start is of type {type(start).__name__}; it must be an allocation of solve, or None")
    if start is not None and (unfit := unfit_start(start.cluster, cluster)):
        raise DataError(f"start is of another cluster: {unfit}; solve without it")
    earlier = start.warm if start is not None and isinstance(start.warm, Earlier) else None
    return engines, tol, solver, earlier


def solve(
    mechanism: Solvable,
    cluster: Cluster,
    tol: float | None = None,
    *,
    throw: bool = True,
    engine: str | None = None,
    solver: str | None = None,
    start: Allocation | OtherUsers | None = None,
) -> Allocation:
    """Solve as documented in `Mechanism.solve`."""
    watch = clock.Watch()
    mechanism.check(expected(cluster))
    seen, notes = mechanism.prepare(cluster)
    problem = Problem(seen, mechanism.criterion(seen))
    engines, tol, solver, earlier = _checked(mechanism, cluster, problem, tol, engine, solver, start)
    if isinstance(seen, SparseCluster):
        return _of_sparse(mechanism, problem, notes, tol, throw, watch)
    merging = _merged(mechanism, problem, earlier)
    reduced = problem if merging.trivial else Problem(merging.cluster, mechanism.criterion(merging.cluster))
    check_floors(reduced)
    order = Order.of(mechanism, reduced, None if earlier is None else earlier.order)
    reduced = reduced if order is None else order.problem
    # Candidates are certified on the merged cluster, which may be smaller by orders of magnitude.
    found = Candidates(mechanism, reduced, tol, getattr(start, "refine", True))
    best = found.search(engines, solver, None if earlier is None else earlier.engine)
    if best is None:
        text = f"{found.failure or f'{mechanism}: no answer'} (engines tried: {', '.join(found.tried)})"
        text += advice(seen, problem.criterion)
        if throw:
            ended = found.failure is None and problem.criterion.scope == "game"
            raise (NotConverged if ended else SolverError)(text) from found.failure
        best = found.partitioned(text)
    best, index = indexed(mechanism, reduced, found, leave=engine in (None, engines[0]) and solver is None)
    allocation = _expanded(mechanism, problem, merging, order, found, best, index, notes + _idle(merging), watch)
    if allocation.flagged and throw:
        raise mechanism.complaint(allocation, tol, found.tried)
    return allocation


def _of_sparse(
    mechanism: Solvable, problem: Problem, notes: tuple[str, ...], tol: float, throw: bool, watch: clock.Watch
) -> Allocation:
    """Certified allocation of a pool with a sparse demand matrix, by water filling.

    Raises `DataError` for other criteria than max-min without floors, and `SolverError`, with `throw`, for a
    certificate above `tol`.
    """
    cluster, rule, begun = problem.cluster, problem.criterion, clock.cpu()
    assert isinstance(cluster, SparseCluster)
    if (
        type(rule) is not Criterion
        or rule.alpha < np.inf
        or cluster.gamma.shape != (*rule.share.shape, 1)
        or rule.floor.any()
    ):
        cluster.demand  # noqa: B018 - raises an error that names what accepts a sparse demand
    tasks = frozen(sparse_pool.filled(cluster, rule, problem.limits)[:, None])
    run, begun = Run("water filling", clock.cpu() - begun), clock.cpu()
    certificate = mechanism.certify(cluster, tasks)[0]
    found = Solution(tasks, None, "native", (run,), rounds=1, status="exact")
    stats = _stats(found, 0.0, clock.cpu() - begun, watch.loops)
    notes += idle([cluster.users[n] for n in np.flatnonzero(~cluster.runnable)])
    judge = mechanism.certify
    allocation = Allocation(str(mechanism), cluster, tasks, certificate, rule, None, stats, notes, tol, judge)
    if allocation.flagged and throw:
        raise SolverError(f"{mechanism}: {certificate} misses tol={tol:g}")
    return allocation


#: Number of users above which merging proportional users saves more time than the search for them takes.
_USERS = 2_000


def _merged(mechanism: Solvable, problem: Problem, earlier: Earlier | None) -> Merging:
    """Merge proportional servers, unless the criterion depends on scale, and proportional users where permitted."""
    cluster, users = problem.cluster, _merges_users(mechanism, problem)
    if not problem.criterion.scale_free:
        return unmerged(cluster)
    return merge(cluster, users=users) if earlier is None else earlier.merged(cluster, users)


def _merges_users(mechanism: Solvable, problem: Problem) -> bool:
    r"""True if users with proportional demands may be merged: the mechanism permits it, or shares scale with demands.

    The latter case applies to many users (`_USERS`). Proportional users then have equal levels at an optimum. For given
    sums :math:`\sigma` of their shares :math:`\sigma_n` and :math:`\phi` of their weights :math:`\phi_n`, both welfare
    :math:`\sum_n \phi_n f(\sigma_n / \phi_n)` and the least level are largest for shares proportional to weights
    (Jensen's inequality), and welfare is then :math:`\phi f(\sigma / \phi)`. This requires alpha > 0: at alpha = 0
    every division of :math:`\sigma` is optimal.
    """
    cluster, rule = problem.cluster, problem.criterion
    if mechanism.merges_users or len(cluster.users) < _USERS or not mechanism.judged_by_criterion:
        return mechanism.merges_users
    grows = rule.share_rule in ("dominant", "asset", "alone", "demand") and rule.weight is cluster.weight
    free = not rule.floor.any() and bool(np.isinf(rule.cap).all())
    return type(rule) is Criterion and rule.scope in ("pool", "servers") and rule.alpha > 0 and grows and free


def _expanded(
    mechanism: Solvable,
    problem: Problem,
    merging: Merging,
    order: Order | None,
    found: Candidates,
    best: Solution,
    index: int | None,
    notes: tuple[str, ...],
    watch: clock.Watch,
) -> Allocation:
    """Expand the best candidate to an allocation of the original cluster, certified there."""
    assert found.verdict is not None
    begun, tasks, prices, verdict = clock.cpu(), best.tasks, best.log_prices, found.verdict
    if order is not None:
        tasks, prices = order.tasks(tasks), order.prices(prices)
    tasks = frozen(tasks)
    if order is not None or not merging.trivial:  # sums over other rows, or in another order, differ by rounding
        split, prices = Split.of(merging, tasks), merging.split_prices(prices)
        if mechanism.judged_by_criterion and not merging.trivial:
            proof = merging.split_prices(verdict[1] if order is None else order.prices(verdict[1]))
            known = order is None and len(merging.cluster.users) == len(problem.cluster.users)
            verdict = _of_everyone(mechanism, problem, merging, split, verdict[0], proof, known), proof
        else:
            verdict = mechanism.certified(problem, split, prices)
        tasks = deferred(split)
    certificate, prices = verdict
    return Allocation(
        str(mechanism),
        problem.cluster,
        tasks,
        certificate,
        problem.criterion,
        prices,
        _stats(best, found.build, found.seconds + clock.cpu() - begun, watch.loops),
        notes + found.notes + best.notes,
        found.tol,
        mechanism.certify,
        warm=Earlier(merging, _merges_users(mechanism, problem), best.warm, order),
        index=index,
    )


def _of_everyone(
    mechanism: Solvable, problem: Problem, merging: Merging, split: Split, merged: Certificate,
    prices: Array | None, known: bool,
) -> Certificate:  # fmt: skip
    """Extend the certificate of a merged cluster to the original: feasibility is recomputed, optimality carries over.

    Original users that were merged have the same level, since tasks are split by weight, and the same cost and marginal
    utility per unit of demand. Their relative gains and errors therefore equal those of the merged user, and usage and
    welfare are sums. The problem of an original server is the problem of the merged server up to scale. Condition
    numbers depend on each user's own data: they are computed on demand, unless they are `known`, as no users were
    merged.
    """
    cluster = problem.cluster
    violation, worst = feasibility(cluster, split, problem.limits, problem.criterion.floor)
    if violation <= merged.optimality:
        worst = _renamed(merged.worst, merging)
    again = partial(_conditions, mechanism, problem, split, prices)
    conditions = deferred(partial(getattr, merged, "conditions") if known else again)
    return Certificate(violation, merged.optimality, merged.measure, worst, merged.gap, conditions)


def _conditions(mechanism: Solvable, problem: Problem, split: Split, prices: Array | None) -> Array | None:
    return mechanism.certified(problem, split, prices)[0].conditions


def _renamed(text: str, merging: Merging) -> str:
    """Replace labels of merged users and servers in a text, each by the name of its first original user or server."""
    before, merged = merging.original, merging.cluster
    for labels, names, first, *kinds in (
        (merged.users, before.users, merging.first_user, "user"),
        (merged.servers, before.servers, merging.first_server, "server", "of"),
    ):
        for label, k in zip(labels, first.tolist(), strict=True):
            for kind in kinds if label != names[k] else ():
                text = text.replace(f"{kind} {label!r}", f"{kind} {names[k]!r}")
    return text


def _idle(merging: Merging) -> tuple[str, ...]:
    somewhere = np.asarray(merging.cluster.usable.any(axis=1))[merging.user_of]
    return idle([merging.original.users[n] for n in np.flatnonzero(~somewhere)])


def _stats(solution: Solution, build: float, certify: float, loops: float) -> Stats:
    return Stats(
        engine=solution.engine,
        solver=next((run.solver for run in reversed(solution.runs) if run.solver != REFINEMENT), "none"),
        status=solution.status,
        rounds=solution.rounds,
        build=build + solution.build,
        compile=sum(run.compile for run in solution.runs),
        solve=sum(run.solve for run in solution.runs),
        certify=certify,
        versions=dict(solvers.versions()),
        loops=loops,
    )
