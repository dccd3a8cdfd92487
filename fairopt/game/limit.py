"""PS-DSF as the limit of alphaPF-VDS for alpha to infinity.

PS-DSF allocations are not unique (catalogue item 41). Where demands are positive there is a greatest one, and it is the
limit (docs/game.md): `psdsf` comes near it and `greatest` finds it, exactly and with a proof.

Otherwise (zero demands, task counts that bind) the limit is followed. Equilibria for finite alpha, as far as is known,
are unique, and settle like 1/alpha; the tasks of three alphas are extrapolated to 1/alpha = 0. `alone` comes to within
1e-7 of the equilibrium for alpha = 4096, from which it goes on to 8192, 16384 and 32768: two extrapolations that
agree to the tolerance are the limit. Where it does not get there: an equilibrium at 64, followed to larger alphas by
Newton's method with prices extrapolated (`alpha log v` and log X are smooth in 1/alpha as long as the same pairs and
resources bind). The selection does not depend on the order of users and servers, and merging servers or users, exact
for finite alpha, does not change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..polytope import Polytope
from . import alone, psdsf
from ._quiet import quiet
from .equations import Equations, Point
from .greatest import greatest
from .interior import ATTEMPTS, FOLLOW, Found, run
from .path import follow
from .polish import polish
from .sweeps import Sweeps

Array = NDArray[np.float64]

#: Followed from the first alpha, by this factor, to where three in a row extrapolate.
_FIRST, _FACTOR, _LAST = 64.0, 2.0, 4096.0
#: An equilibrium on the way is good enough to go on from below this error.
_GOOD = 2e-8

#: Places of `alone`: alpha, how cold to go and how cold to be of use, systems on the way, how many of them to try.
_HIGH, _COLD, _COOL, _SYSTEMS, _PLACES = 4096.0, 1e-7, 1e-6, 1200, 3
#: Rounds of best responses from there, where the alphas do not agree.
_FEW_ROUNDS = (20, 30, 50, 100)
#: With more pairs the way there takes longer than best responses.
_PAIRS = 20_000

#: Temperatures below which the greatest allocation is looked for.
_TRIES = (1e-5, 1e-7)

#: Best responses between looks at the answer; beyond the response they end long plateaus sooner.
_ROUNDS, _RELAX = (50, 50, 100, 200, 400, 800, 1600, 3200, 6400), 1.4

_SHORT = "PS-DSF near the limit of alphaPF-VDS: its equilibria were not followed far enough to settle the last digits"
_OTHER = "PS-DSF found by best responses: not the limit of alphaPF-VDS, and not unique"


@quiet
def limit(polytope: Polytope, weight: Array, tol: float) -> Iterator[tuple[Equations, Found]]:
    """The greatest where there is one; the extrapolated point; should it not be PS-DSF, best responses from there."""
    method = Equations(polytope, weight, _FIRST)
    if psdsf.applies(method):
        for exact in _greatest(method):
            yield method, exact
            # One round of exact responses takes away what the linear program's tolerance has left.
            rounded = Sweeps.of(method, np.inf)
            state = rounded.start(exact.point.tasks)
            rounded.gauss_seidel(state)
            yield method, replace(exact, point=replace(exact.point, tasks=state.tasks))
    else:
        for met in _climbed(method, tol):
            yield method, met
    last: Found | None = None
    kept: list[Array] = []
    guess: Array | None = None
    agreed = False
    for last in _path(polytope, weight):
        kept = [*kept[-2:], last.point.tasks]
        if len(kept) == 3:
            before, guess = guess, _extrapolated(kept)
            if before is not None and _apart(method, before, guess) < 1e-3 * tol:
                agreed = True
                break
    if last is not None and guess is not None:
        notes = () if agreed else (_SHORT,)
        yield (
            method,
            replace(
                last, point=replace(last.point, tasks=guess), error=np.nan, notes=notes, by="extrapolated equilibria"
            ),
        )
    tasks = guess if guess is not None else kept[-1] if kept else method.begin(0.3).tasks
    last = Found(method.begin(0.3), np.nan, 0) if last is None else last
    for answer in _responses(method, replace(last, point=replace(last.point, tasks=tasks)), _ROUNDS, _RELAX, tol):
        yield method, answer


def _greatest(method: Equations) -> Iterator[Found]:
    """The greatest PS-DSF allocation, once it is proved to be that, and if no task count binds there."""
    tries = iter(_TRIES)
    wanted = next(tries)
    for near in psdsf.follow(method):
        if near.tau >= wanted:
            continue
        exact = greatest(method, near.log_price, near.part, near.tau)
        if exact is not None and exact.proved:
            if (np.add.reduceat(exact.tasks, method.start[:-1]) < method.limit * (1 - 1e-9)).all():
                point = replace(method.begin(0.3), tasks=exact.tasks)
                yield Found(point, np.nan, near.steps + exact.programs, by="linear programs")
            return
        wanted = next(tries, 0.0)


def _climbed(method: Equations, tol: float) -> Iterator[Found]:
    """The limit extrapolated from four alphas, at places of `alone` that are all but equilibria; then one response.

    At a place tasks are wrong by about tau, and where ties share them depends on alpha tau, which is small as well. If
    the four do not agree: best responses from a place, which is near the limit all the same.
    """
    if len(method.server) > _PAIRS:
        return
    games = [Equations(method.polytope, method.weight, 2**doubled * _HIGH) for doubled in range(4)]
    places = [place for place in alone.follow(games[0], _COLD, _SYSTEMS) if place.tau < _COOL]
    for place in places[: -1 - _PLACES : -1]:
        at, tasks = place, [place.tasks(games[0])]
        for before, after in pairwise(games):
            onward = alone.onward(at, before, after)
            if onward is None:
                break
            at = onward
            tasks.append(at.tasks(after))
        if len(tasks) < len(games):
            continue
        one, guess = (_extrapolated(tasks[k : k + 3]) for k in (0, 1))
        if _apart(method, one, guess) > tol:
            continue
        found = Found(replace(at.point, tasks=guess), np.nan, at.steps, by="extrapolated equilibria")
        yield found
        for answer in _responses(method, found, (1, 1, 1), 1.0, tol):
            if _apart(method, answer.point.tasks, guess) <= 10 * tol:
                yield replace(answer, by=found.by, notes=())
        return
    if places:
        near = Found(replace(places[-1].point, tasks=places[-1].tasks(games[0])), np.nan, places[-1].steps)
        yield from _responses(method, near, _FEW_ROUNDS, _RELAX, tol)


def _responses(method: Equations, found: Found, looks: tuple[int, ...], relax: float, tol: float) -> Iterator[Found]:
    """Best responses from a point, after so many rounds each."""
    sweeps = Sweeps.of(method, np.inf)
    state = sweeps.start(found.point.tasks)
    for rounds in looks:
        for _ in range(rounds):
            if sweeps.gauss_seidel(state, relax=relax) < 0.1 * tol:
                break
        point = replace(found.point, tasks=state.tasks.copy())
        yield replace(found, point=point, error=np.nan, notes=(_OTHER,), by="best responses")


def _extrapolated(tasks: list[Array]) -> Array:
    """From three alphas, each twice the one before: errors in 1/alpha and 1/alpha^2 cancel."""
    return np.asarray(np.maximum((8 * tasks[2] - 6 * tasks[1] + tasks[0]) / 3, 0.0))


def _apart(method: Equations, one: Array, other: Array) -> float:
    """Largest relative difference in anybody's tasks."""
    totals = [np.add.reduceat(tasks, method.start[:-1]) for tasks in (one, other)]
    return float(np.abs(totals[0] / totals[1] - 1).max())


def _path(polytope: Polytope, weight: Array) -> Iterator[Found]:
    """Equilibria for alpha doubling from the first, each followed from those before or found anew."""
    done: list[tuple[float, Found]] = []
    alpha = _FIRST
    while alpha <= _LAST:
        method = Equations(polytope, weight, alpha)
        reached = polish(method, _predicted(done, alpha)) if len(done) > 1 else None
        if reached is None or reached.error > _GOOD:
            reached = _anew(method, done[-1][1].warm if done else None)
        if reached.error > _GOOD:
            return
        done.append((alpha, reached))
        yield reached
        alpha *= _FACTOR


def _anew(method: Equations, warm: Point | None) -> Found:
    """From a point of the alpha before, or from nothing."""
    best: Found | None = None
    for attempt in ATTEMPTS[:2] if warm is None else (FOLLOW, ATTEMPTS[0]):
        for answer in run(method, attempt, 1e-9, warm if attempt is FOLLOW else None):
            if best is None or answer.error < best.error:
                best = answer
        assert best is not None
        best = polish(method, replace(best, warm=answer.warm))
        if best.error <= _GOOD:
            return best
    assert best is not None
    for answer in follow(method, 0.5 * _GOOD, budget=500):
        best = answer if answer.error < best.error else best
    return best


def _predicted(done: list[tuple[float, Found]], alpha: float) -> Found:
    """The next point by the last two: alpha log v is linear in alpha up to 1/alpha; X and x in 1/alpha."""
    (one, first), (two, second) = done[-2:]
    a, b = first.point, second.point
    price = two * b.log_price + (two * b.log_price - one * a.log_price) * (alpha - two) / (two - one)
    bend = (1 / alpha - 1 / two) / (1 / two - 1 / one)
    return Found(
        replace(
            b,
            log_price=price / alpha,
            tasks=np.maximum(b.tasks + bend * (b.tasks - a.tasks), 0.0),
            log_level=b.log_level + bend * (b.log_level - a.log_level),
        ),
        1e-2,
        second.steps,
        second.warm,
    )
