r"""Elastic best responses: servers anticipate how the tasks on other servers react to a change of a user's total.

Besides its tasks x each server j reports, for each of its users n, the total h that it anticipated when it responded,
and its supply slope k, the decrease of its own tasks per unit of increase of the total X. The other servers respond to
the sum of these linear supply functions,

.. math:: Y_n(X_n) = \sum_j x_{nj} - k_{nj} (X_n - h_{nj}),

instead of constant tasks on other servers, which is a plain best response with another gain and another constant
(`rounds.play`). Slopes are bounded by caps, which servers adapt to their own last two steps; a common drift of all
servers is extrapolated by jumps. Near a nearly singular equilibrium plain and elastic rounds converge slowly: each
elastic phase therefore ends with plain rounds under Anderson's acceleration.

Two properties are proved. Fixed points are those of plain best responses, since with caps K the error of every
anticipated total is at most the fraction K / (1 + K) of the largest error, hence 0. And if plain rounds converge to an
equilibrium from every state, so do elastic rounds: an elastic phase ends after a number of rounds in which neither its
least change was halved nor its least number of pairs with tasks decreased by half a percent; plain phases, of
increasing length, continue from the end of the previous plain phase unless the elastic phase in between has halved the
least change of all plain rounds. Any other property is observed, not proved.

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

#: Number of plain rounds in the first phase (`_FIRST`: some games end in two rounds) and in the second (`_NEXT`), and
#: ratio of the lengths of later phases (`_LONGER`).
_FIRST, _NEXT, _LONGER = 2, 50.0, 1.5
#: Number of rounds that Anderson's acceleration combines (`_MIXED`), and largest number of rounds by which a jump
#: extrapolates (`_REACH`).
_MIXED = 20
_REACH = float(_MIXED)
#: How many numbers are sent in a round along each edge of a tree of all servers. `_TREE`, in elastic rounds: up the
#: largest change, the number of pairs with tasks, three inner products of steps, the largest step and the round in
#: which the first pair becomes empty; down the length of the jump. `_MIXTURE`, in accelerated rounds: up the products
#: of the step with earlier steps, down the coefficients.
_TREE, _MIXTURE = 7 + 1, 2 * _MIXED
#: Rounds make progress if the number of pairs with tasks is less than this fraction of the least earlier number: of
#: thousands of pairs one becomes empty in most rounds.
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
#: Jumps: largest relative change of a user's tasks on a server (`_MOST_JUMP`), lower bound of the relative decrease of
#: successive steps (`_LEAST_SHRINKAGE`), and relative decrease up to which tasks count as constant (`_UNCHANGED`).
_MOST_JUMP, _LEAST_SHRINKAGE, _UNCHANGED = 0.7, NEGLIGIBLE, CONVERGED
#: Anderson's acceleration: least fraction of its tasks that a combination of states leaves to a pair, as only a
#: response decides which pairs are empty (`_LEFT`); relative size of singular values that count as zero in least
#: squares (`_RANK`); and growth factor of the change, as when other pairs get tasks, from which earlier steps are
#: discarded (`_RESTART`).
_LEFT, _RANK, _RESTART = 0.05, REFINED, 5


def elastic(sweeps: Sweeps, state: State, **options: float) -> Iterator[tuple[float, int, int]]:
    """Play rounds without end from a state, which is changed in place; `options` are those of `_phase`.

    Yields for each round the largest requested change, relative to the user's tasks; how many numbers two servers
    exchange for each common user, 1 in plain rounds and 3 in elastic rounds; and how many numbers are sent along each
    edge of a tree of all servers.
    """
    rounds, longer = _FIRST, _NEXT
    # `least` is the least change of plain rounds, and `kept` the state at the end of the last plain phase.
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

    Yields are those of `elastic`.

    Parameters
    ----------
    cap : initial cap of slopes, and lower bound for servers whose pairs have changed in the last `still` rounds
    least : lower bound for other servers
    still : number of rounds after which pairs, or a common drift, count as steady
    top, highest : initial upper bound of caps, and its largest value: it is doubled in each round of a steady common
        drift, and is `top` again when half of `patience` is used up
    patience : number of rounds without progress after which the phase ends
    """
    state.cap[:] = cap
    most, reach, since = top, _REACH, 0  # upper bound of caps, length of jumps, and rounds since the last progress
    best, fewest = np.inf, len(state.tasks)  # change, and number of pairs with tasks, that the next progress must beat
    same, step, change = np.zeros(len(state.cap)), np.zeros_like(state.tasks), np.inf
    after_jump: State | None = None  # the state before a jump that precedes the next round
    lowest, kept = np.inf, state.tasks  # least change of all rounds, and the tasks after that round
    while since < patience:
        tasks, foreseen, last_change, before_jump = state.tasks.copy(), state.foreseen.copy(), change, after_jump
        change, after_jump = sweeps.gauss_seidel(state), None
        since += 1
        served = int(np.count_nonzero(state.tasks))
        if change < best / 2 or served < _FEWER_PAIRS * fewest:
            best, fewest, since = min(best, change), min(fewest, served), 0
        if change < lowest:
            lowest, kept = change, state.tasks.copy()
        if before_jump is not None and change > _JUMP_FAILED * last_change:
            _restore(state, before_jump)
            reach, step[:] = reach / _SHORTER_JUMP, 0.0
        elif (products := compare(sweeps.game, state, tasks, step))[:, 2].any():
            # Caps follow each server's last two steps: they are doubled in a drift, and divided by four after a turn.
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
            after_jump = jump(sweeps, state, step, products.sum(axis=0), state.foreseen - foreseen, far)
        yield change, 3, _TREE
    state.tasks[:], state.slope[:], state.foreseen[:], state.cap[:] = kept, 0.0, 0.0, 0.0
    yield from islice(_anderson(sweeps, state), int(patience))


def _anderson(sweeps: Sweeps, state: State) -> Iterator[tuple[float, int, int]]:
    """Play plain rounds under Anderson's acceleration, without end; yields are those of `elastic`.

    Each round begins at the affine combination of the states after the last rounds (`ends`) whose step, the relative
    change of tasks in a round, would be least if steps were linear in states. Only pairs with tasks count in it.
    """
    user, polytope, gamma = sweeps.method.user, sweeps.method.polytope, sweeps.method.gamma
    ends: list[Array] = []
    steps: list[Array] = []
    last_change = 0.0
    while True:
        if len(ends) > 2:
            # Only some of the pairs have tasks; the states of all other pairs are zero.
            some, combined = np.flatnonzero(reduce(np.maximum, ends)), np.zeros_like(gamma)
            last_ends, last_steps = (np.array([each[some] for each in rows]) for rows in (ends, steps))
            served, end = last_ends[-1] > 0, last_ends[-1]
            mix = np.linalg.lstsq(np.diff(last_steps, axis=0)[:, served].T, last_steps[-1][served], rcond=_RANK)[0]
            combined[some] = np.maximum(end - mix @ np.diff(last_ends, axis=0), _LEFT * end)
            state.tasks[:] = polytope.inside(combined / gamma) * gamma
        begun, change = state.tasks.copy(), sweeps.gauss_seidel(state)
        if change > _RESTART * last_change:
            ends, steps = [], []
        last_change = change
        ends = [*ends, state.tasks.copy()][-_MIXED:]
        steps = [*steps, (state.tasks - begun) / np.maximum(state.total[user], TINY)][-_MIXED:]
        yield change, 1, _MIXTURE


def jump(sweeps: Sweeps, state: State, step: Array, products: Array, moved: Array, reach: float) -> State | None:
    """Extrapolate a common drift, of constant or decreasing steps, by at most `reach` rounds, in place.

    Tasks are scaled down to capacities, and anticipated totals extrapolated. With an infinite `reach` the jump ends
    where the first pair becomes empty. Returns the state before the jump, or None if there is no jump.

    Parameters
    ----------
    step : (pairs,), relative changes of tasks in the last round, in the order of servers; zero after a jump
    products : (4,), sums of `rounds.compare` over servers
    moved : (pairs,), changes of anticipated totals in the last round
    """
    _, size, old, _ = products
    # Growing steps are not extrapolated: with similar servers such jumps were too long, and doubled the rounds needed.
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
