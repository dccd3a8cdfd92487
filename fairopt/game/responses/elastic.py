r"""Elastic responses: servers foresee how the others' allocations answer to a change of a user's total.

Beside its tasks x each server tells, for each of its users, the total h that it foresaw when it acted, and its supply
slope k, by how much its own x falls as the total rises. The others respond to the sum of supply lines

.. math:: y_n(X) = \sum_j x_{jn} - k_{jn} (X - h_{jn})

in place of a constant, which is the same response with another gain and another constant (`_rounds.play`). Slopes are
cut at a cap. Fixed points are those of best responses: with caps every server's foresight error is at most the part
cap / (1 + cap) of the largest of the others', so it is 0.

Caps are set by the servers: twice as large where the last two steps were alike, a drift; a fourth where they turned.
A drift of all is jumped along.

Where that does not help there are plain rounds, which go on where the last plain rounds ended unless elastic ones
halved the least change since: so there is an equilibrium in the end wherever plain rounds come to one from every state.

Source: Moallemi and Van Roy, IEEE Trans. Inf. Theory 55 (2009), for trees and quadratic utilities, without caps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .rounds import State, Sweeps

Array = NDArray[np.float64]

#: Where caps begin, and the least.
_CAP = 4.0
#: Plain rounds at first: some games end in them.
_FIRST = 2


@dataclass(frozen=True)
class ElasticOptions:
    """When caps change, drifts are jumped along, and plain rounds stand in."""

    #: The largest cap.
    top: float = 8.0
    #: A drift has steps of a cosine above `onward` whose size is at least the part `steady` of the one before.
    onward: float = 0.95
    steady: float = 0.93
    #: Steps of a cosine below this turn.
    turns: float = 0.3
    #: Rounds a jump goes at first; twice as many after one that went on as before.
    reach: float = 20.0
    #: Rounds that have to halve the least change, or plain rounds stand in, as many at first.
    patience: int = 50
    #: Plain rounds become more by this factor.
    longer: float = 1.5


#: What is used unless a caller says otherwise.
OPTIONS = ElasticOptions()


class Elastic:
    """Rounds from a state, which they change."""

    def __init__(self, sweeps: Sweeps, state: State, options: ElasticOptions = OPTIONS) -> None:
        self._sweeps, self._state, self._options = sweeps, state, options
        self._user, self._server = sweeps.method.polytope.pair_user, sweeps.method.server
        self._top, self._reach = options.top, options.reach
        self._plain, self._phase = _FIRST, float(options.patience)
        self._kept: State | None = None
        self._least, self._since, self._turned = np.inf, 0, 0
        self._steps: tuple[Array, Array] | None = None
        self._jumped: tuple[float, State] | None = None

    def round(self) -> float:
        """All servers in turn; the largest change that a response asked for, relative to the user's tasks."""
        return self._plainly() if self._plain > 0 else self._elastically()

    def _plainly(self) -> float:
        change = self._sweeps.gauss_seidel(self._state)
        if self._kept is not None:  # the first round after elastic ones
            if change > self._least / 2:
                self._restore(self._kept)
            self._kept = None
        self._least = min(self._least, change)
        self._plain -= 1
        if self._plain == 0:
            self._kept = _copy(self._state)
            self._state.cap[:] = min(_CAP, self._top)
            self._best, self._since, self._turned = np.inf, 0, 0
            self._steps = self._jumped = None
        return change

    def _elastically(self) -> float:
        state, options = self._state, self._options
        tasks, foreseen = state.tasks.copy(), state.foreseen.copy()
        change = self._sweeps.gauss_seidel(state)
        self._since += 1
        if change < 0.5 * self._best:
            self._best, self._since = change, 0
        whole = np.maximum(state.total, np.finfo(float).tiny)[self._user]
        step, moved = (state.tasks - tasks) / whole, (state.foreseen - foreseen) / whole
        before, self._steps = self._steps, (step, moved)
        if self._jumped is not None and change > 30 * self._jumped[0]:
            self._restore(self._jumped[1])
            self._jumped, self._steps, self._reach = None, None, self._reach / 4
            return change
        if before is not None:
            self._adapt(step, before[0])
            self._jump(change, step, moved, before[0])
        if self._since >= options.patience:
            self._give_up()
        return change

    def _adapt(self, step: Array, last: Array) -> None:
        """Caps of the servers, by their last two steps."""
        options, cap, servers = self._options, self._state.cap, len(self._state.cap)
        both, size, old = (
            np.bincount(self._server, product, servers) for product in (step * last, step * step, last * last)
        )
        cosine = both / np.sqrt(np.maximum(size * old, 1e-300))
        drifts = (cosine > options.onward) & (size > options.steady**2 * old)
        cap *= np.where(drifts, 2.0, np.where(cosine < options.turns, 0.25, 0.95))
        np.clip(cap, min(_CAP, self._top), self._top, out=cap)

    def _jump(self, change: float, step: Array, moved: Array, last: Array) -> None:
        """Go on along a drift of all."""
        options, state = self._options, self._state
        size, old = float(np.linalg.norm(step)), float(np.linalg.norm(last))
        if self._jumped is not None:
            self._jumped = None
        if not np.linalg.norm(step - last) < 0.1 * size or size == 0:
            return
        ratio = size / old
        rounds = min(self._reach, 0.7 / max(float(np.abs(step).max()), 1e-300))
        if ratio < 1:
            rounds = min(rounds, ratio / (1 - ratio))
        if rounds < 2:
            return
        self._jumped = change, _copy(state)
        polytope, gamma = self._sweeps.method.polytope, self._sweeps.method.gamma
        whole = state.total[self._user]
        ahead = np.maximum(state.tasks + rounds * step * whole, 0.0)
        state.tasks[:] = polytope.inside(ahead / gamma) * gamma
        state.foreseen[:] = np.maximum(state.foreseen + rounds * moved * whole, 0.0)
        self._reach, self._steps = 2 * self._reach, None

    def _give_up(self) -> None:
        """Plain rounds from here."""
        state = self._state
        state.slope[:], state.foreseen[:], state.cap[:] = 0.0, 0.0, 0.0
        self._top = max(self._top / 8, 1.0)
        self._plain, self._phase = int(self._phase), self._options.longer * self._phase

    def _restore(self, kept: State) -> None:
        for now, then in zip(self._state, kept, strict=True):
            now[:] = then


def _copy(state: State) -> State:
    return State(*(array.copy() for array in state))
