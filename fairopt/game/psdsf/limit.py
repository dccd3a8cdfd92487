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
from itertools import islice

import numpy as np

from ...core.choices import Choices
from ...model._arrays import Array
from ..model._warnings import suppress_fp_warnings
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.elastic import elastic
from ..responses.rounds import Sweeps
from . import continuation

#: Temperatures of choices at which the greatest allocation is looked for.
_TRIES = (1e-5, 1e-7)
#: By what part the limit may change with weights that mean nothing, whatever the tolerance: seen were changes below
#: 1e-9 and above 1e-3; and by what part exact responses may move it.
_UNMOVED, _STAYS = 1e-7, 1e-5
#: Rounds of elastic responses between two looks.
_ROUNDS = (2, 48, 50, 100, 200, 400, 800, 1600, 3200, 6400)
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
def limit(method: EquilibriumSystem, tol: float, prices: continuation.PriceStart | None = None) -> Iterator[Found]:
    """The greatest where there is one; the limit followed; should neither be found, what best responses reach.

    alpha of the method counts where nothing is followed.
    """
    if method.positive:
        for exact in _greatest(method):
            yield exact
            # One round of exact responses takes away what the linear program's tolerance has left.
            rounded = Sweeps(method, np.inf)
            state = rounded.start(exact.tasks)
            rounded.gauss_seidel(state)
            yield replace(exact, tasks=state.tasks)
    ends, start = continuation.furthest(method, prices), Found(np.empty(0), "best responses", 0)
    if ends is None:
        start = replace(start, tasks=method.begin(0.3))
    else:
        place = ends.last
        offered = continuation.PriceStart.of(ends.first) if ends.first else None
        start = replace(start, tasks=place.here.tasks, steps=place.steps, prices=offered)
        tasks = continuation.solved(place, _UNMOVED)
        if tasks is not None:
            yield from _rounded(method, replace(start, tasks=tasks), tol)
    yield from _responses(method, start, _ROUNDS, tol)


def _greatest(method: EquilibriumSystem) -> Iterator[Found]:
    """The greatest PS-DSF allocation, once it is proved to be that, and if no task count binds there."""
    near = Choices(method)
    for tau in _TRIES:
        near.cool(tau)
        tasks, proved = near.greatest()
        if proved.all():
            if (np.add.reduceat(tasks, method.start[:-1]) < method.limit * (1 - 1e-9)).all():
                yield Found(tasks, "linear programs", near.steps)
            return


def _rounded(method: EquilibriumSystem, found: Found, tol: float) -> Iterator[Found]:
    """The limit as it was followed, then exact responses to it that stay there."""
    found = replace(found, by="equilibria followed to infinity")
    yield found
    for answer in _responses(method, found, (1, 1), tol):
        if _apart(method, answer.tasks, found.tasks) <= min(10 * tol, _STAYS):
            yield replace(answer, by=found.by, notes=())


def _responses(method: EquilibriumSystem, found: Found, looks: tuple[int, ...], tol: float) -> Iterator[Found]:
    """Elastic responses from a point: what each number of rounds in `looks` leads to."""
    sweeps = Sweeps(method, np.inf)
    state = sweeps.start(found.tasks)
    game = elastic(sweeps, state, highest=64.0)  # with zero demands larger caps take half as long again
    for rounds in looks:
        for change, _ in islice(game, rounds):
            if change < 0.1 * tol:
                break
        yield replace(found, tasks=state.tasks.copy(), notes=(_OTHER,), by="best responses")


def _apart(method: EquilibriumSystem, one: Array, other: Array) -> float:
    """Largest relative difference in anybody's tasks."""
    totals = [np.add.reduceat(tasks, method.start[:-1]) for tasks in (one, other)]
    return float(np.abs(totals[0] / totals[1] - 1).max())
