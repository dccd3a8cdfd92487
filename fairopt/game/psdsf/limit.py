"""PS-DSF as the limit of alphaPF-VDS for alpha to infinity.

PS-DSF allocations are not unique (catalogue item 41). Where demands are positive there is a greatest one, and it is the
limit (docs/psdsf.md): `psdsf` comes near it and `greatest` finds it, exactly and with a proof.

Otherwise (zero demands, task counts that bind) the limit is followed, and taken where it is well determined by prices
(`continuation`). Elsewhere it is not found, nor do equilibria for large alpha say what it is: their exploitability does
not see what decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...model.polytope import Polytope
from ..model._warnings import suppress_fp_warnings
from ..model.candidate import Candidate
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.acceleration import Drift
from ..responses.rounds import Sweeps
from . import continuation, positive
from .greatest import greatest
from .options import OPTIONS, LimitOptions

Array = NDArray[np.float64]

_OTHER = "PS-DSF found by best responses: not shown to be the limit of alphaPF-VDS, which it need not be"


@suppress_fp_warnings
def limit(
    polytope: Polytope,
    weight: Array,
    tol: float,
    options: LimitOptions = OPTIONS,
    prices: continuation.PriceStart | None = None,
) -> Iterator[tuple[EquilibriumSystem, Candidate]]:
    """The greatest where there is one; the limit followed; should neither be found, what best responses reach."""
    method = EquilibriumSystem(polytope, weight, options.large)
    start = Candidate(method.begin(0.3), np.nan, 0)
    if method.positive:
        for exact in _greatest(method, options):
            yield method, exact
            # One round of exact responses takes away what the linear program's tolerance has left.
            rounded = Sweeps.of(method, np.inf)
            state = rounded.start(exact.point.tasks)
            rounded.gauss_seidel(state)
            yield method, replace(exact, point=replace(exact.point, tasks=state.tasks))
    ends = continuation.furthest(method, options.continuation, prices)
    if ends is not None:
        place = ends.last
        offered = continuation.PriceStart.of(ends.first, options.continuation) if ends.first else None
        start = Candidate(replace(start.point, tasks=place.here.tasks), np.nan, place.steps, prices=offered)
        tasks = continuation.solved(place, options.unmoved, options.continuation)
        if tasks is not None:
            followed = replace(start, point=replace(start.point, tasks=tasks))
            for met in _rounded(method, followed, tol, options):
                yield method, met
    for answer in _responses(method, start, options.rounds, options.relax, tol, options):
        yield method, answer


def _greatest(method: EquilibriumSystem, options: LimitOptions) -> Iterator[Candidate]:
    """The greatest PS-DSF allocation, once it is proved to be that, and if no task count binds there."""
    tries = iter(options.tries)
    wanted = next(tries)
    for near in positive.follow(method, options.positive):
        if near.tau >= wanted:
            continue
        exact = greatest(method, near.log_price, near.part, near.tau, options.greatest)
        if exact is not None and exact.proved:
            if (np.add.reduceat(exact.tasks, method.start[:-1]) < method.limit * (1 - 1e-9)).all():
                point = replace(method.begin(0.3), tasks=exact.tasks)
                yield Candidate(point, np.nan, near.steps + exact.programs, by="linear programs")
            return
        wanted = next(tries, 0.0)


def _rounded(method: EquilibriumSystem, found: Candidate, tol: float, options: LimitOptions) -> Iterator[Candidate]:
    """The limit as it was followed, then exact responses to it that stay there."""
    found = replace(found, by="equilibria followed to infinity")
    yield found
    for answer in _responses(method, found, (1, 1, 1), 1.0, tol, options):
        if _apart(method, answer.point.tasks, found.point.tasks) <= min(10 * tol, options.stays):
            yield replace(answer, by=found.by, notes=())


def _responses(
    method: EquilibriumSystem, found: Candidate, looks: tuple[int, ...], relax: float, tol: float, options: LimitOptions
) -> Iterator[Candidate]:
    """Best responses from a point: what each number of rounds in `looks` leads to."""
    sweeps, drift = Sweeps.of(method, np.inf), Drift(options.drift)
    state = sweeps.start(found.point.tasks)
    for rounds in looks:
        for _ in range(rounds):
            if sweeps.gauss_seidel(state, relax=relax) < 0.1 * tol:
                break
            ahead = drift.ahead(state.tasks)
            if ahead is not None:
                state = replace(sweeps.start(ahead), log_price=state.log_price)
        point = replace(found.point, tasks=state.tasks.copy())
        yield replace(found, point=point, error=np.nan, notes=(_OTHER,), by="best responses")


def _apart(method: EquilibriumSystem, one: Array, other: Array) -> float:
    """Largest relative difference in anybody's tasks."""
    totals = [np.add.reduceat(tasks, method.start[:-1]) for tasks in (one, other)]
    return float(np.abs(totals[0] / totals[1] - 1).max())
