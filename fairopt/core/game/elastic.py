r"""Elastic best responses: servers anticipate how the tasks on other servers react to a change of a user's total.

Beside its tasks x each server j reports, for each of its users n, the total h that it anticipated when it responded,
and its supply slope k: by how much its own tasks decrease as the total increases. The other servers respond to the sum
of these linear supply functions,

.. math:: Y_n(X_n) = \sum_j x_{nj} - k_{nj} (X_n - h_{nj}),

in place of constant tasks elsewhere, which is a plain best response with another gain and another constant
(`rounds.play`). Slopes are bounded by caps, which servers adapt to their own last two steps; a common drift of all
servers is extrapolated by jumps. Near an equilibrium that is nearly singular both converge slowly: each elastic phase
ends with plain rounds under Anderson's acceleration.

Proved: fixed points are those of plain best responses, since with caps K the error of every anticipated total is at
most the fraction K / (1 + K) of the largest error, hence 0. And if plain rounds converge to an equilibrium from every
state, so do these: an elastic phase ends if it neither halves its least change nor serves half a percent fewer pairs
than ever in it; plain phases, each longer than the one before, continue from the end of the last one unless the elastic
phase halved their least change. All else is observed, not proved.

Sources: Moallemi and Van Roy, IEEE Trans. Inf. Theory 55 (2009), for trees and quadratic utilities, without caps;
Walker and Ni, SIAM J. Numer. Anal. 49 (2011), for the acceleration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from itertools import islice

import numpy as np

from ...model._arrays import Array
from ..accuracy import CONVERGED, NEGLIGIBLE, REFINED
from ..factors import TINY
from .rounds import State, Sweeps, compare

#: Number of plain rounds in the first phase (some games end in two rounds) and in the second, and growth factor of
#: later phases.
_FIRST, _NEXT, _LONGER = 2, 50.0, 1.5
#: Number of rounds that Anderson's acceleration combines (`_MIXED`), and largest number that a jump extrapolates.
_MIXED = 20
_REACH = float(_MIXED)
#: Numbers that are sent in a round along each edge of a tree of all servers. Elastic: up the largest change, the number
#: of pairs with tasks, three inner products of steps, the largest step and the round in which the first pair becomes
#: empty, down the length of the jump. Accelerated: up products of the step with earlier ones, down the coefficients.
_TREE, _MIXTURE = 7 + 1, 2 * _MIXED
#: Rounds make progress if the number of pairs with tasks falls below this fraction of the least one before: of
#: thousands of pairs one leaves in most rounds.
_FEWER_PAIRS = 0.995
#: A jump is undone if the next round changes tasks by more than `_JUMP_FAILED` times the change before; later jumps are
#: `_SHORTER_JUMP` times shorter.
_JUMP_FAILED, _SHORTER_JUMP = 30, 4
#: Cosine of successive steps of all servers above which the steps count as a common drift (`_DRIFT`), and below which
#: they count as no drift (`_NO_DRIFT`).
_DRIFT, _NO_DRIFT = 0.9, 0.3
#: A server drifts if the cosine of its successive steps is above `_SERVER_DRIFTS`, and the ratio of their lengths above
#: `_STEADY`; it turns if the cosine is below `_NO_DRIFT`.
_SERVER_DRIFTS, _STEADY = 0.95, 0.93
#: Factors of a server's cap after a drift (`_RAISED`), a turn (`_CUT`), and any other step (`_LOWERED`).
_RAISED, _CUT, _LOWERED = 2.0, 0.25, 0.95
#: Successive steps are extrapolated if their cosine is above `_ALIGNED`, and the ratio of their squared lengths is at
#: most `_MOST_GROWTH`.
_ALIGNED, _MOST_GROWTH = 0.995, 1.2
#: Largest relative change of a user's tasks on a server by a jump, least relative shrinkage of steps, and relative
#: change below which a pair does not decrease.
_MOST_JUMP, _LEAST_SHRINKAGE, _UNCHANGED = 0.7, NEGLIGIBLE, CONVERGED
#: Anderson's acceleration: least fraction of its tasks that a combination of states leaves to a pair, as only a
#: response decides which pairs are empty; relative size of singular values that count as zero in least squares; and
#: growth of the change, as when other pairs get tasks, after which earlier steps are discarded.
_LEFT, _RANK, _RESTART = 0.05, REFINED, 5


def elastic(sweeps: Sweeps, state: State, **options: float) -> Iterator[tuple[float, int, int]]:
    """Play rounds from a state, which is changed in place; `options` are those of `_phase`.

    Yields for each round the largest requested change, relative to the user's tasks; how many numbers two servers
    exchange for each common user, 1 in plain rounds and 3 in elastic rounds; and how many numbers are sent along each
    edge of a tree of all servers.
    """
    rounds, longer = _FIRST, _NEXT
    # The least change of plain rounds, and the state at the end of the last plain phase.
    least, kept, begins = np.inf, state, False
    while True:
        for left in reversed(range(rounds)):
            change = sweeps.gauss_seidel(state)
            if begins and change > least / 2:
                _restore(state, kept)
            begins, least = False, min(least, change)
            if not left:
                kept = deepcopy(state)
            yield change, 1, _TREE
        yield from _phase(sweeps, state, **options)
        rounds, longer, begins = int(longer), _LONGER * longer, True


def _phase(
    sweeps: Sweeps,
    state: State,
    *,
    cap: float = 4.0,
    least: float = 0.3,
    still: float = 8,
    top: float = 8.0,
    highest: float = 1000.0,
    patience: float = 100,
) -> Iterator[tuple[float, int, int]]:
    """Play elastic rounds until `patience` of them have made no progress, then as many accelerated plain rounds.

    Parameters
    ----------
    cap : initial cap of slopes, and lower bound for servers whose pairs have changed in the last `still` rounds
    least : lower bound for other servers
    still : number of rounds after which pairs, or a common drift, count as steady
    top, highest : upper bound of caps, which is doubled, up to `highest`, in each round of a steady common drift; it is
        `top` again in the second half of patience
    patience : number of rounds without progress after which the phase ends
    """
    state.cap[:] = cap
    most, reach, best, since, served = top, _REACH, np.inf, 0, len(state.tasks)
    same, step, change = np.zeros(len(state.cap)), np.zeros_like(state.tasks), np.inf
    ahead: State | None = None
    lowest, kept = np.inf, state.tasks
    while since < patience:
        tasks, foreseen, last, begun = state.tasks.copy(), state.foreseen.copy(), change, ahead
        change, ahead = sweeps.gauss_seidel(state), None
        since += 1
        now = int(np.count_nonzero(state.tasks))
        if change < best / 2 or now < _FEWER_PAIRS * served:
            best, served, since = min(best, change), min(served, now), 0
        if change < lowest:
            lowest, kept = change, state.tasks.copy()
        if begun is not None and change > _JUMP_FAILED * last:
            _restore(state, begun)
            reach, step[:] = reach / _SHORTER_JUMP, 0.0
        elif (products := compare(sweeps.game, state, tasks, step))[:, 2].any():
            # Caps by the servers' last two steps: doubled where they drift, divided by four where they turned.
            turn, whole = cosine(products), cosine(products.sum(axis=0))
            if whole > _DRIFT and since >= still:
                most = min(2 * most, highest)
            elif whole < _NO_DRIFT:  # rounds without a common drift count three times
                since += 2
            if 2 * since >= patience:
                most = top
            drifts = (turn > _SERVER_DRIFTS) & (products[:, 1] > _STEADY**2 * products[:, 2])
            state.cap[:] *= np.where(drifts, _RAISED, np.where(turn < _NO_DRIFT, _CUT, _LOWERED))
            same = np.where(products[:, 3] > 0, 0, same + 1)
            np.clip(state.cap, np.where(same > still, least, cap), most, out=state.cap)
            far = np.inf if since >= 2 * still else reach
            ahead = jump(sweeps, state, step, products.sum(axis=0), state.foreseen - foreseen, far)
        yield change, 3, _TREE
    state.tasks[:], state.slope[:], state.foreseen[:], state.cap[:] = kept, 0.0, 0.0, 0.0
    yield from islice(_anderson(sweeps, state), int(patience))


def _anderson(sweeps: Sweeps, state: State) -> Iterator[tuple[float, int, int]]:
    """Play plain rounds under Anderson's acceleration.

    Each begins at the affine combination of the last states whose step would be least if steps were linear in states.
    """
    user, polytope, gamma, last = sweeps.method.user, sweeps.method.polytope, sweeps.method.gamma, 0.0
    ends: list[Array] = []
    steps: list[Array] = []
    while True:
        if len(ends) > 2:
            # Of thousands of pairs hundreds have tasks: in all other columns the states are zero.
            some, ahead = np.flatnonzero(reduce(np.maximum, ends)), np.zeros_like(gamma)
            last_ends, last_steps = (np.array([each[some] for each in rows]) for rows in (ends, steps))
            served, end = last_ends[-1] > 0, last_ends[-1]
            mix = np.linalg.lstsq(np.diff(last_steps, axis=0)[:, served].T, last_steps[-1][served], rcond=_RANK)[0]
            ahead[some] = np.maximum(end - mix @ np.diff(last_ends, axis=0), _LEFT * end)
            state.tasks[:] = polytope.inside(ahead / gamma) * gamma
        begun, change = state.tasks.copy(), sweeps.gauss_seidel(state)
        if change > _RESTART * last:
            ends, steps = [], []
        last = change
        ends = [*ends, state.tasks.copy()][-_MIXED:]
        steps = [*steps, (state.tasks - begun) / np.maximum(state.total[user], TINY)][-_MIXED:]
        yield change, 1, _MIXTURE


def jump(sweeps: Sweeps, state: State, step: Array, products: Array, moved: Array, reach: float) -> State | None:
    """Extrapolate a common drift, steady or shrinking, by at most `reach` rounds, in place.

    Tasks are scaled down to capacities, and anticipated totals extrapolated. With an infinite `reach` the jump ends
    where the first pair becomes empty. Returns the state before the jump, None if there is no jump.

    Parameters
    ----------
    step : (pairs,), relative changes of tasks in the last round, in the order of servers; zero after a jump
    products : (4,), sums of `rounds.compare` over servers
    moved : (pairs,), changes of anticipated totals in the last round
    """
    _, size, old, _ = products
    # Growing steps are not extrapolated: with similar servers such jumps went too far, and doubled the rounds.
    if not (cosine(products) > _ALIGNED and size < _MOST_GROWTH * old):
        return None
    order, method = sweeps.pairs, sweeps.method
    here, whole = state.tasks[order], state.total[method.user[order]]
    if math.isinf(reach):
        falls = (step < -_UNCHANGED) & (here > 0)
        reach = float((here[falls] / (whole * -step)[falls]).min(initial=np.inf))
    shrinks = max(1 - math.sqrt(size / old), _LEAST_SHRINKAGE)
    rounds = min(reach, _MOST_JUMP / float(np.abs(step).max()), 1 / shrinks - 1)
    if rounds < 2:
        return None
    begun, ahead = deepcopy(state), state.tasks.copy()
    ahead[order] = np.maximum(here + rounds * step * whole, 0.0)
    state.tasks[:] = method.polytope.inside(ahead / method.gamma) * method.gamma
    state.foreseen[:] = np.maximum(state.foreseen + rounds * moved, 0.0)
    step[:] = 0.0
    return begun


def cosine(products: Array) -> Array:
    """Cosine of the angle between two steps, from their products; 0 where one of the steps vanishes."""
    turn, size, old, _ = products.T
    return np.asarray(turn / np.maximum(np.sqrt(size * old), TINY))


def _restore(state: State, kept: State) -> None:
    """Copy the arrays of `kept` into a state."""
    for now, then in zip(state, kept, strict=True):
        now[:] = then
