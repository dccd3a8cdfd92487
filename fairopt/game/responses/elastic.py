r"""Elastic responses: servers foresee how the others' allocations answer to a change of a user's total.

Beside its tasks x each server tells, for each of its users, the total h that it foresaw when it acted, and its supply
slope k, by how much its own x falls as the total rises. The others respond to the sum of supply lines

.. math:: y_n(X) = \sum_j x_{jn} - k_{jn} (X - h_{jn})

in place of a constant, which is the same response with another gain and another constant (`_rounds.play`). Slopes are
cut at caps, which servers set themselves; a drift of all is jumped along.

Proved: fixed points are those of best responses, as by the caps K every server's error of foresight is at most the part
K / (1 + K) of the largest one, so it is 0. And if plain rounds come to an equilibrium from every state, so do these: an
elastic phase ends where it neither halves its least change nor serves fewer pairs than ever in it; phases of other
rounds, each longer than the one before, go on where the last one ended that was plain or halved the least change; one
that did not, plain or damped, is followed by one of the other kind, for games in which plain rounds cycle. Observed:
all else.

Source: Moallemi and Van Roy, IEEE Trans. Inf. Theory 55 (2009), for trees and quadratic utilities, without caps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...model._arrays import Array
from ._rounds import State, compare
from .rounds import Sweeps


class ElasticOptions(NamedTuple):
    """Options of caps, jumps and plain phases; rounds are counted since the last progress of a phase."""

    #: Caps begin here, and fall no lower but for servers whose pairs have been the same ones for `still` rounds.
    cap: float = 4.0
    least: float = 0.3
    still: int = 8
    #: The largest cap; twice as large after each round of a drift of all that has gone on for `still` rounds, and as at
    #: first in the second half of patience.
    top: float = 8.0
    highest: float = 1000.0
    #: Rounds that a jump goes, a fourth once one was taken back; after twice `still` rounds without progress it ends
    #: where a pair is empty.
    reach: float = 20.0
    #: Rounds without progress until others take over, plain or damped: how many at first, by which factor more later.
    patience: int = 150
    plain: int = 50
    longer: float = 1.5


#: What is used.
OPTIONS = ElasticOptions()


class Elastic:
    """Rounds from a state, which they change."""

    def __init__(self, sweeps: Sweeps, state: State, options: ElasticOptions = OPTIONS) -> None:
        self._sweeps, self._state, self._options = sweeps, state, options
        self._top, self._reach = options.top, options.reach
        #: Plain rounds to go, at first for games that end in two, and of the next phase; how far they go.
        self._plain, self._next, self._part = 2, float(options.plain), 1.0
        #: The least change of plain rounds, now and at the end of their last phase, where that ended, if it is of use.
        self._least, self._before = np.inf, np.inf
        self._kept, self._begins = state, False

    @property
    def plain(self) -> bool:
        """True if the next round is one of plain responses."""
        return self._plain > 0

    def round(self) -> float:
        """Play one round, servers in turn; the largest change asked for, relative to the user's tasks."""
        return self._plainly() if self.plain else self._elastically()

    def _plainly(self) -> float:
        change = self._sweeps.gauss_seidel(self._state, None, self._part)
        if self._begins and change > self._least / 2:
            _restore(self._state, self._kept)
        self._begins, self._least, self._plain = False, min(self._least, change), self._plain - 1
        if not self.plain:
            gained = self._least <= self._before / 2
            if gained or self._part == 1:
                self._kept = _copy(self._state)
            if not gained:
                self._part = 1.5 - self._part
            self._before, self._best, self._since = self._least, np.inf, 0
            self._state.cap[:] = self._options.cap
            self._served, self._still = len(self._state.tasks), np.zeros(len(self._state.cap))
            self._step = np.zeros_like(self._state.tasks)
            self._jumped: tuple[float, State] | None = None
        return change

    def _elastically(self) -> float:
        state = self._state
        tasks, foreseen = state.tasks.copy(), state.foreseen.copy()
        change = self._sweeps.gauss_seidel(state)
        self._since += 1
        served = int(np.count_nonzero(state.tasks))
        if change < self._best / 2 or served < self._served:
            self._best, self._served, self._since = min(self._best, change), min(self._served, served), 0
        jumped, self._jumped = self._jumped, None
        if jumped is not None and change > 30 * jumped[0]:
            _restore(state, jumped[1])
            self._reach, self._step[:] = self._reach / 4, 0.0
        else:
            products = compare(self._sweeps.game, state, tasks, self._step)
            if products[:, 2].any():
                self._set_caps(products)
                self._jump(change, products.sum(axis=0), state.foreseen - foreseen)
        if self._since >= self._options.patience:
            state.slope[:], state.foreseen[:], state.cap[:] = 0.0, 0.0, 0.0
            self._top, self._reach = self._options.top, self._options.reach
            self._plain, self._next, self._begins = int(self._next), self._options.longer * self._next, True
        return change

    def _set_caps(self, products: Array) -> None:
        """Set caps by the servers' last two steps: doubled where they drift, divided by four where they turned."""
        options, cap = self._options, self._state.cap
        turn, whole = cosine(products), cosine(products.sum(axis=0))
        if whole > 0.9 and self._since >= options.still:
            self._top = min(2 * self._top, options.highest)
        elif whole < 0.3:  # no drift: counted thrice
            self._since += 2
        if 2 * self._since >= options.patience:
            self._top = options.top
        drifts = (turn > 0.95) & (products[:, 1] > 0.93**2 * products[:, 2])
        cap *= np.where(drifts, 2.0, np.where(turn < 0.3, 0.25, 0.95))
        self._still = np.where(products[:, 3] > 0, 0, self._still + 1)
        np.clip(cap, np.where(self._still > options.still, options.least, options.cap), self._top, out=cap)

    def _jump(self, change: float, products: Array, moved: Array) -> None:
        """Extrapolate a common drift, steady or shrinking: tasks, cut back to capacities, and foreseen totals."""
        state, sweeps, step = self._state, self._sweeps, self._step
        _, size, old, _ = products
        # Along steps that grow jumps go too far: where servers are alike games took twice as many rounds.
        if not (cosine(products) > 0.995 and size < 1.2 * old):
            return
        order, method = sweeps.pairs, sweeps.method
        whole, reach = state.total[method.user[order]], self._reach
        if self._since >= 2 * self._options.still:
            falls = (step < -1e-12) & (state.tasks[order] > 0)
            reach = float((state.tasks[order][falls] / (whole * -step)[falls]).min(initial=np.inf))
        shrinks = max(1 - math.sqrt(size / old), 1e-9)
        rounds = min(reach, 0.7 / float(np.abs(step).max()), 1 / shrinks - 1)
        if rounds >= 2:
            self._jumped = change, _copy(state)
            ahead = state.tasks.copy()
            ahead[order] = np.maximum(ahead[order] + rounds * step * whole, 0.0)
            state.tasks[:] = method.polytope.inside(ahead / method.gamma) * method.gamma
            state.foreseen[:] = np.maximum(state.foreseen + rounds * moved, 0.0)
            step[:] = 0.0


def cosine(products: Array) -> Array:
    """Cosine of the angle between two steps, from their products; 0 where one of them vanishes."""
    turn, size, old, _ = products.T
    return np.asarray(turn / np.maximum(np.sqrt(size * old), 1e-300))


def _copy(state: State) -> State:
    return State(*(array.copy() for array in state))


def _restore(state: State, kept: State) -> None:
    for now, then in zip(state, kept, strict=True):
        now[:] = then
