r"""Elastic responses: servers foresee how the others' allocations answer to a change of a user's total.

Beside its tasks x each server tells, for each of its users, the total h that it foresaw when it acted, and its supply
slope k, by how much its own x falls as the total rises. The others respond to the sum of supply lines

.. math:: y_n(X) = \sum_j x_{jn} - k_{jn} (X - h_{jn})

in place of a constant, which is the same response with another gain and another constant (`rounds.play`). Slopes are
cut at caps, which servers set themselves; a drift of all is jumped along. Near an equilibrium that is nearly singular
neither ends in good time: each elastic phase closes with plain rounds under Anderson's acceleration.

Proved: fixed points are those of best responses, as by the caps K every server's error of foresight is at most the part
K / (1 + K) of the largest one, so it is 0. And if plain rounds come to an equilibrium from every state, so do these: an
elastic phase ends where it neither halves its least change nor serves half a percent fewer pairs than ever in it; plain
ones, each longer than the one before, go on where the last one ended unless it halved their least change. Observed: all
else.

Sources: Moallemi and Van Roy, IEEE Trans. Inf. Theory 55 (2009), for trees and quadratic utilities, without caps;
Walker and Ni, SIAM J. Numer. Anal. 49 (2011), for the acceleration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice

import numpy as np

from ...model._arrays import Array
from ..factors import TINY
from .rounds import State, Sweeps, compare

#: Plain rounds: at first, for games that end in two, in the next phase, and by which factor more in later ones.
_FIRST, _NEXT, _LONGER = 2, 50.0, 1.5
#: Rounds that a jump goes, a fourth once one was taken back; rounds that are mixed.
_REACH, _MIXED = 20.0, 20
#: What servers tell of a round to a tree of theirs, the largest change, pairs served, three products of steps, the
#: largest step, when the first pair will be empty, and hear from it, how far to jump; or products of the step and the
#: ones before, and their parts in the mixture.
_TREE, _MIXTURE = 7 + 1, 2 * _MIXED


def elastic(sweeps: Sweeps, state: State, **options: float) -> Iterator[tuple[float, int, int]]:
    """Play rounds from a state, which they change, servers in turn; `options` are those of `_phase`.

    Of each the largest change asked for, relative to the user's tasks; numbers sent of each user that two servers have
    in common, 1 of plain responses; and those along each edge of a tree of all servers.
    """
    rounds, longer = _FIRST, _NEXT
    # The least change of plain rounds; where their last phase ended.
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
    """Play elastic rounds until `patience` of them have made no progress, and as many accelerated ones.

    Caps begin at `cap`, and fall no lower, down to `least`, but for servers whose pairs have been the same ones for
    `still` rounds. The largest is `top`: twice as large, up to `highest`, after each round of a drift of all that has
    gone on for `still` rounds, and as at first in the second half of patience.
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
        if change < best / 2 or now < 0.995 * served:  # of thousands of pairs one goes in most rounds
            best, served, since = min(best, change), min(served, now), 0
        if change < lowest:
            lowest, kept = change, state.tasks.copy()
        if begun is not None and change > 30 * last:
            _restore(state, begun)
            reach, step[:] = reach / 4, 0.0
        elif (products := compare(sweeps.game, state, tasks, step))[:, 2].any():
            # Caps by the servers' last two steps: doubled where they drift, divided by four where they turned.
            turn, whole = cosine(products), cosine(products.sum(axis=0))
            if whole > 0.9 and since >= still:
                most = min(2 * most, highest)
            elif whole < 0.3:  # no drift: counted thrice
                since += 2
            if 2 * since >= patience:
                most = top
            drifts = (turn > 0.95) & (products[:, 1] > 0.93**2 * products[:, 2])
            state.cap[:] *= np.where(drifts, 2.0, np.where(turn < 0.3, 0.25, 0.95))
            same = np.where(products[:, 3] > 0, 0, same + 1)
            np.clip(state.cap, np.where(same > still, least, cap), most, out=state.cap)
            far = np.inf if since >= 2 * still else reach
            ahead = jump(sweeps, state, step, products.sum(axis=0), state.foreseen - foreseen, far)
        yield change, 3, _TREE
    state.tasks[:], state.slope[:], state.foreseen[:], state.cap[:] = kept, 0.0, 0.0, 0.0
    yield from islice(_anderson(sweeps, state), int(patience))


def _anderson(sweeps: Sweeps, state: State) -> Iterator[tuple[float, int, int]]:
    """Play plain rounds, each from the mixture of the last ones whose step, were steps linear, would be the least.

    A mixture leaves a twentieth of every pair: who is to go only a response can tell.
    """
    user, polytope, gamma, last = sweeps.method.user, sweeps.method.polytope, sweeps.method.gamma, 0.0
    ends: list[Array] = []
    steps: list[Array] = []
    while True:
        if len(ends) > 2:
            served = ends[-1] > 0
            mix = np.linalg.lstsq(np.diff(steps, axis=0)[:, served].T, steps[-1][served], rcond=1e-10)[0]
            ahead = np.maximum(ends[-1] - mix @ np.diff(ends, axis=0), 0.05 * ends[-1])
            state.tasks[:] = polytope.inside(ahead / gamma) * gamma
        begun, change = state.tasks.copy(), sweeps.gauss_seidel(state)
        if change > 5 * last:  # as where other pairs are served: earlier steps tell nothing of them
            ends, steps = [], []
        last = change
        ends = [*ends, state.tasks.copy()][-_MIXED:]
        steps = [*steps, (state.tasks - begun) / np.maximum(state.total[user], TINY)][-_MIXED:]
        yield change, 1, _MIXTURE


def jump(sweeps: Sweeps, state: State, step: Array, products: Array, moved: Array, reach: float) -> State | None:
    """Extrapolate a common drift, steady or shrinking: tasks, cut back to capacities, and foreseen totals.

    By `reach` rounds; an infinite one ends where a pair is empty. The state before, if there was a jump.
    """
    _, size, old, _ = products
    # Along steps that grow jumps go too far: where servers are alike games took twice as many rounds.
    if not (cosine(products) > 0.995 and size < 1.2 * old):
        return None
    order, method = sweeps.pairs, sweeps.method
    here, whole = state.tasks[order], state.total[method.user[order]]
    if math.isinf(reach):
        falls = (step < -1e-12) & (here > 0)
        reach = float((here[falls] / (whole * -step)[falls]).min(initial=np.inf))
    shrinks = max(1 - math.sqrt(size / old), 1e-9)
    rounds = min(reach, 0.7 / float(np.abs(step).max()), 1 / shrinks - 1)
    if rounds < 2:
        return None
    begun, ahead = deepcopy(state), state.tasks.copy()
    ahead[order] = np.maximum(here + rounds * step * whole, 0.0)
    state.tasks[:] = method.polytope.inside(ahead / method.gamma) * method.gamma
    state.foreseen[:] = np.maximum(state.foreseen + rounds * moved, 0.0)
    step[:] = 0.0
    return begun


def cosine(products: Array) -> Array:
    """Cosine of the angle between two steps, from their products; 0 where one of them vanishes."""
    turn, size, old, _ = products.T
    return np.asarray(turn / np.maximum(np.sqrt(size * old), TINY))


def _restore(state: State, kept: State) -> None:
    for now, then in zip(state, kept, strict=True):
        now[:] = then
