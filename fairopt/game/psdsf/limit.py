"""PS-DSF as the limit of alphaPF-VDS for alpha to infinity.

PS-DSF allocations are not unique (catalogue item 41). Where demands are positive there is a greatest one, and it is the
limit (docs/psdsf.md): `core.choices` finds it, exactly and with a proof.

Otherwise (zero demands, task counts that bind) the limit is followed, and taken where it is well determined by prices
(`continuation`). Elsewhere it is not found, nor do equilibria for large alpha say what it is: their exploitability does
not see what decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...core.choices import Choices
from ...model._arrays import Array
from ...model.polytope import Polytope
from ..model._warnings import suppress_fp_warnings
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.elastic import Elastic, ElasticOptions
from ..responses.rounds import Sweeps
from . import continuation
from .options import OPTIONS, LimitOptions

_OTHER = "PS-DSF found by best responses: not shown to be the limit of alphaPF-VDS, which it need not be"


@dataclass(frozen=True)
class Found:
    """Tasks of pairs in the user's largest gamma, what found them in how many steps, and where others may start."""

    tasks: Array
    by: str
    steps: int
    notes: tuple[str, ...] = ()
    prices: continuation.PriceStart | None = None


@suppress_fp_warnings
def limit(
    polytope: Polytope,
    weight: Array,
    tol: float,
    options: LimitOptions = OPTIONS,
    prices: continuation.PriceStart | None = None,
) -> Iterator[tuple[EquilibriumSystem, Found]]:
    """The greatest where there is one; the limit followed; should neither be found, what best responses reach."""
    method = EquilibriumSystem(polytope, weight, options.large)
    for found in _found(method, tol, options, prices):
        yield method, found


def _found(
    method: EquilibriumSystem, tol: float, options: LimitOptions, prices: continuation.PriceStart | None
) -> Iterator[Found]:
    """As `limit`."""
    if method.positive:
        for exact in _greatest(method, options):
            yield exact
            # One round of exact responses takes away what the linear program's tolerance has left.
            rounded = Sweeps.of(method, np.inf)
            state = rounded.start(exact.tasks)
            rounded.gauss_seidel(state)
            yield replace(exact, tasks=state.tasks)
    ends, start = continuation.furthest(method, options.continuation, prices), Found(np.empty(0), "best responses", 0)
    if ends is None:
        start = replace(start, tasks=method.begin(0.3))
    else:
        place = ends.last
        offered = continuation.PriceStart.of(ends.first, options.continuation) if ends.first else None
        start = replace(start, tasks=place.here.tasks, steps=place.steps, prices=offered)
        tasks = continuation.solved(place, options.unmoved, options.continuation)
        if tasks is not None:
            yield from _rounded(method, replace(start, tasks=tasks), tol, options)
    yield from _responses(method, start, options.rounds, tol)


def _greatest(method: EquilibriumSystem, options: LimitOptions) -> Iterator[Found]:
    """The greatest PS-DSF allocation, once it is proved to be that, and if no task count binds there."""
    near = Choices(method)
    for tau in options.tries:
        near.cool(tau)
        tasks, proved = near.greatest()
        if proved.all():
            if (np.add.reduceat(tasks, method.start[:-1]) < method.limit * (1 - 1e-9)).all():
                yield Found(tasks, "linear programs", near.steps)
            return


def _rounded(method: EquilibriumSystem, found: Found, tol: float, options: LimitOptions) -> Iterator[Found]:
    """The limit as it was followed, then exact responses to it that stay there."""
    found = replace(found, by="equilibria followed to infinity")
    yield found
    for answer in _responses(method, found, (1, 1), tol):
        if _apart(method, answer.tasks, found.tasks) <= min(10 * tol, options.stays):
            yield replace(answer, by=found.by, notes=())


def _responses(method: EquilibriumSystem, found: Found, looks: tuple[int, ...], tol: float) -> Iterator[Found]:
    """Elastic responses from a point: what each number of rounds in `looks` leads to."""
    sweeps = Sweeps.of(method, np.inf)
    state = sweeps.start(found.tasks)
    game = Elastic(sweeps, state, ElasticOptions(highest=64.0))  # with zero demands larger caps take half as long again
    for rounds in looks:
        for _ in range(rounds):
            if game.round() < 0.1 * tol:
                break
        yield replace(found, tasks=state.tasks.copy(), notes=(_OTHER,), by="best responses")


def _apart(method: EquilibriumSystem, one: Array, other: Array) -> float:
    """Largest relative difference in anybody's tasks."""
    totals = [np.add.reduceat(tasks, method.start[:-1]) for tasks in (one, other)]
    return float(np.abs(totals[0] / totals[1] - 1).max())
