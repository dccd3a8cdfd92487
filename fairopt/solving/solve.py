"""Solve a mechanism on a cluster: a certified allocation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import _clock
from ..certificates import advice
from ..engines.base import LAST_DIGITS, Solution
from ..engines.maxmin import check_floors
from ..engines.reference import solvers
from ..errors import DataError, SolverError
from ..model import _validate
from ..model._frozen import deferred, frozen
from ..model._same import unfit_start
from ..model.cluster import Cluster, expected
from ..model.merging import Merging, merge, unmerged
from ..model.problem import Problem
from ..model.split import Split
from ..result.allocation import Allocation, Stats, idle
from .candidates import Candidates
from .earlier import Earlier, OtherUsers
from .order import Order
from .solvable import Solvable

_LEFT = "the engine came to an equilibrium of index -1, which best responses leave: another, of index +1, was taken"
_STAYS = "an equilibrium of index -1: best responses leave it, and there are at least two others (fo.game.equilibria)"
_LOOSE = "index 0: users' tasks are not locally unique here, as equilibria are a continuum or two of them meet"


def indexed(mechanism: Solvable, problem: Problem, found: Candidates, leave: bool) -> tuple[Solution, int | None]:
    """The answer, perhaps a stable neighbour of the one that was found, and its index, perhaps deferred."""
    assert found.best is not None
    assert found.verdict is not None
    best, verdict = found.best, found.verdict
    # Tasks that are less certain than this have no index.
    if problem.criterion.scope != "game" or verdict[0].residual > 1e-7:
        return best, None
    # Up to this number of usable pairs (user, server) an answer has its index at once.
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
    """True if a neighbour of index +1 reaches the tolerance; it becomes the best candidate."""
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


@dataclass(frozen=True)
class Request:
    """Checked request: engines in their order, tolerance, and start."""

    engines: tuple[str, ...]
    tol: float
    solver: str | None
    earlier: Earlier | None

    @classmethod
    def of(
        cls,
        mechanism: Solvable,
        cluster: Cluster,
        problem: Problem,
        tol: float | None,
        engine: str | None,
        solver: str | None,
        start: Allocation | OtherUsers | None,
    ) -> Request:
        """Check the arguments of `Mechanism.solve`; `DataError` names a wrong one."""
        known = mechanism.engines(problem.criterion)
        if engine is not None and engine not in known:
            raise DataError(f"{mechanism} has no engine {engine!r}; it has {', '.join(known)}")
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
            return cls(engines, tol, solver, start.earlier)
        if start is not None and not isinstance(start, Allocation):
            raise DataError(f"start is of type {type(start).__name__}; it must be an allocation of solve, or None")
        if start is not None and (unfit := unfit_start(start.cluster, cluster)):
            raise DataError(f"start is of another cluster: {unfit}; solve without it")
        earlier = start.warm if start is not None and isinstance(start.warm, Earlier) else None
        return cls(engines, tol, solver, earlier)


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
    """See `Mechanism.solve`."""
    watch = _clock.Watch()
    mechanism.check(expected(cluster))
    seen, notes = mechanism.prepare(cluster)
    problem = Problem(seen, mechanism.criterion(seen))
    request = Request.of(mechanism, cluster, problem, tol, engine, solver, start)
    merging = _merged(mechanism, problem, request.earlier)
    reduced = problem if merging.trivial else Problem(merging.cluster, mechanism.criterion(merging.cluster))
    check_floors(reduced)
    order = Order.of(mechanism, reduced, None if request.earlier is None else request.earlier.order)
    reduced = reduced if order is None else order.problem
    # Candidates are compared on the merged cluster, which may be a thousand times smaller.
    found = Candidates(mechanism, reduced, request.tol)
    best = found.search(request.engines, request.solver, None if request.earlier is None else request.earlier.engine)
    if best is None or found.verdict is None:
        text = f"{found.failure or f'{mechanism}: no answer'} (engines tried: {', '.join(found.tried)})"
        raise SolverError(f"{text}{advice(seen, problem.criterion)}") from found.failure
    best, index = indexed(mechanism, reduced, found, leave=engine in (None, request.engines[0]) and solver is None)
    allocation = _expanded(mechanism, problem, merging, order, found, best, index, notes + _idle(merging), watch)
    if allocation.flagged and throw:
        raise mechanism.complaint(allocation, request.tol, found.tried)
    return allocation


def _merged(mechanism: Solvable, problem: Problem, earlier: Earlier | None) -> Merging:
    """Proportional servers are one, unless sizes of shares matter, and where the mechanism allows it users."""
    cluster, users = problem.cluster, mechanism.merges_users
    if not problem.criterion.scale_free:
        return unmerged(cluster)
    return merge(cluster, users=users) if earlier is None else earlier.merged(cluster, users)


def _expanded(
    mechanism: Solvable,
    problem: Problem,
    merging: Merging,
    order: Order | None,
    found: Candidates,
    best: Solution,
    index: int | None,
    notes: tuple[str, ...],
    watch: _clock.Watch,
) -> Allocation:
    """The best candidate as an allocation of the original cluster, certified for that."""
    assert found.verdict is not None
    begun, tasks, prices, verdict = _clock.now(), best.tasks, best.log_prices, found.verdict
    if order is not None:
        tasks, prices = order.tasks(tasks), order.prices(prices)
    tasks = frozen(tasks)
    if order is not None or not merging.trivial:  # sums of other rows, or in another order, round otherwise
        split = Split.of(merging, tasks)
        verdict = mechanism.certified(problem, split, merging.split_prices(prices))
        tasks = deferred(split)
    certificate, prices = verdict
    return Allocation(
        str(mechanism),
        problem.cluster,
        tasks,
        certificate,
        problem.criterion,
        prices,
        _stats(best, found.seconds + _clock.now() - begun, watch.loops),
        notes + found.notes + best.notes,
        found.tol,
        mechanism.certify,
        warm=Earlier(merging, mechanism.merges_users, best.warm, order),
        index=index,
    )


def _idle(merging: Merging) -> tuple[str, ...]:
    somewhere = np.asarray(merging.cluster.usable.any(axis=1))[merging.user_of]
    return idle([merging.original.users[n] for n in np.flatnonzero(~somewhere)])


def _stats(solution: Solution, certify: float, loops: float) -> Stats:
    return Stats(
        engine=solution.engine,
        solver=next((run.solver for run in reversed(solution.runs) if run.solver != LAST_DIGITS), "none"),
        status=solution.status,
        rounds=solution.rounds,
        build=solution.build,
        compile=sum(run.compile for run in solution.runs),
        solve=sum(run.solve for run in solution.runs),
        certify=certify,
        versions=dict(solvers.versions()),
        loops=loops,
    )
