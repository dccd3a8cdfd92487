"""Newton's equations of one level of max-min (`level_interior`): users are eliminated, prices and t remain.

What is left for prices and t is `S dlam - b dt = rhs, b.dlam + c dt = of_sum`. S is all but singular along the prices
themselves, whose scale means nothing to it. So t is eliminated, not the prices: `S + b b^T/c` has no such direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg import _pairs, structured
from ..linalg.conjugate_residuals import reduced
from .level_point import LevelPoint
from .options import OPTIONS, LevelNewtonOptions

Array = NDArray[np.float64]

_TINY = 1e-300


class Steps(NamedTuple):
    """Changes of a point, with what those of y come to."""

    y: Array  # (pairs,)
    z: Array  # (pairs,)
    lam: Array  # (servers, resources)
    w: Array  # (servers, resources)
    p: Array  # (users,)
    v: Array  # (users,)
    t: float
    sums: Array  # (users,)
    use: Array  # (servers, resources)


class LevelNewton:
    """Newton's equations at one point, factorised."""

    def __init__(self, at: LevelPoint, rough: bool = True, options: LevelNewtonOptions = OPTIONS.newton) -> None:
        self.at, self.options = at, options
        self.ratio = at.y / at.z
        loose = at.v / at.p
        self.loose = loose
        self.lam = np.maximum(at.lam, _TINY)
        self.idle = np.where(at.row, at.w / self.lam, 1.0)
        self.whole = np.add.reduceat(self.ratio, at.start[:-1]) + loose
        #: b and c.
        self.border = at.priced(self.ratio * (at.tau / self.whole)[at.user])
        self.corner = float((at.tau / self.whole).sum())
        self._factorise(rough)

    def _factorise(self, rough: bool) -> None:
        """`rough`: in single precision, without pairs of little weight off the diagonal."""
        at, self.rough = self.at, rough
        least = self.options.least_weight * self.whole if rough else 0.0
        given = at.start, at.server, self.ratio, at.use, self.loose, self.idle
        border = self.border / np.sqrt(self.corner)
        factors = self.options.factors
        self.factors = structured.factor_symmetric(*given, least, single=rough, border=border, options=factors)

    def _solve(self, rhs: Array) -> Array:
        row = self.at.row
        return np.where(row, self.factors.solve(np.where(row, rhs, 0.0).ravel()).reshape(rhs.shape), 0.0)

    def direction(self, ry: Array, rw: Array, rv: Array) -> Steps:
        """Steps that change products by `ry`, `rw`, `rv` to the first order and remove all residuals."""
        at = self.at
        return self._once(ry, rw, rv, at.dual, at.short, at.excess, at.sum)

    def corrected(self, steps: Steps, ry: Array, rw: Array, rv: Array) -> Steps:
        """Steps that change products by so much more."""
        users, rows = np.zeros(len(rv)), np.zeros(rw.shape)
        return plus(steps, self._once(ry, rw, rv, np.zeros(len(ry)), users, rows, 0.0))

    def refined(self, steps: Steps, sufficient: float) -> Steps:
        """Steps without what factors and rounding left of the residuals; `sufficient` may be left by rough factors.

        By conjugate residuals: where factors are wrong in a few directions only (parts of a cluster hang together by
        next to nothing, and the damping shows), each of those takes one correction, not hundreds.
        """
        for rough in (self.rough, False):
            if rough != self.rough:
                self._factorise(rough)
            steps, done = self._reduced(steps, sufficient if rough else 0.0)
            if done or not rough:
                break
        return steps

    def _reduced(self, steps: Steps, sufficient: float) -> tuple[Steps, bool]:
        """Steps refined by the factors there are, and whether they leave at most `sufficient`."""
        return reduced(steps, self.left, self.undone, self._effect, plus, sufficient, self.options.refinement)

    def undone(self, left: Array) -> Steps:
        """The steps that put right what is left."""
        users, pairs = len(self.whole), np.zeros(len(self.ratio))
        short, excess, of_sum = left[:users], left[users:-1].reshape(self.idle.shape), float(left[-1])
        return self._once(pairs, np.zeros(self.idle.shape), np.zeros(users), pairs, short, excess, of_sum)

    def left(self, steps: Steps) -> Array:
        """What steps leave of what is wrong, (users + servers resources + 1,): levels, capacities, the sum of p."""
        at = self.at
        return np.concatenate([at.short, at.excess.ravel(), [at.sum]]) + self._effect(steps)

    def _effect(self, steps: Steps) -> Array:
        at = self.at
        excess = np.where(at.row, steps.use + steps.w, 0.0)
        return np.concatenate([steps.sums - at.tau * steps.t - steps.v, -excess.ravel(), [-float(at.tau @ steps.p)]])

    def _once(self, ry: Array, rw: Array, rv: Array, dual: Array, short: Array, excess: Array, of_sum: float) -> Steps:
        at, whole, users = self.at, self.whole, len(rv)
        rhs, own, free = np.where(at.row, rw / self.lam, 0.0) - excess, np.empty(users), np.empty(users)
        given = (at.start, at.server, at.use)
        _pairs.pushed(*given, self.ratio, at.z, ry, dual, rv / at.p - short, whole, own, free, rhs)
        of_sum -= float(at.tau @ free)
        dlam = self._solve(rhs + self.border * (of_sum / self.corner))
        dt = (of_sum - float((self.border * dlam).sum())) / self.corner
        dp = np.empty(users)
        _pairs.weighted_cost(*given, self.ratio, dlam, dp)
        dp = (dp + at.tau * dt) / whole + free
        dy, dz = np.empty(len(ry)), np.empty(len(ry))
        sums, use = np.empty(users), np.zeros(rhs.shape)
        _pairs.back(*given, dlam, dp, dual, at.y, at.z, ry, dy, dz, sums, use)
        dw = np.where(at.row, rw / self.lam - self.idle * dlam, 0.0)
        return Steps(dy, dz, dlam, dw, dp, rv / at.p - self.loose * dp, dt, sums, use)


def plus(one: Steps, other: Steps, part: float = 1.0) -> Steps:
    """`one + part other`."""
    return Steps(*(getattr(one, name) + part * getattr(other, name) for name in Steps._fields))
