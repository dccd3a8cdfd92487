"""Newton's equations of one level of max-min (`level_interior`): users are eliminated, prices and t remain."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import structured

if TYPE_CHECKING:
    from .level_interior import Point

Array = NDArray[np.float64]

_TINY = 1e-300
#: Most refinements of a step, and which part of what was wrong each must not exceed.
_REFINEMENTS, _CLOSER = 4, 0.5


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


class Newton:
    """Newton's equations at one point, factorised."""

    def __init__(self, at: Point) -> None:
        self.at = at
        self.ratio = at.y / at.z
        loose = at.v / at.p
        self.loose = loose
        self.lam = np.maximum(at.lam, _TINY)
        self.idle = np.where(at.row, at.w / self.lam, 1.0)
        self.whole = np.add.reduceat(self.ratio, at.start[:-1]) + loose
        self.factors = structured.factor_symmetric(at.start, at.server, self.ratio, at.use, loose, self.idle)
        self.border = at.priced(self.ratio * (at.tau / self.whole)[at.user])
        self.solved = self._solve(self.border)
        self.corner = float((at.tau / self.whole).sum() + (self.border * self.solved).sum())

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
        return _sum(steps, self._once(ry, rw, rv, np.zeros(len(ry)), users, rows, 0.0))

    def refined(self, steps: Steps) -> Steps:
        """Steps without what rounding left of the residuals."""
        at = self.at
        nothing = np.zeros(len(steps.y)), np.zeros(at.row.shape), np.zeros(len(at.p)), np.zeros(len(steps.y))
        before, best = np.inf, steps
        for _ in range(_REFINEMENTS):
            short = at.short + steps.sums - at.tau * steps.t - steps.v
            excess = np.where(at.row, at.excess - steps.use - steps.w, 0.0)
            rest = at.sum - float(at.tau @ steps.p)
            size = max(float(np.abs(short).max()), float(np.abs(excess).max()), abs(rest))
            if not size < _CLOSER * before:
                return steps if size < before else best
            before, best = size, steps
            steps = _sum(steps, self._once(*nothing, short, excess, rest))
        return steps

    def _once(self, ry: Array, rw: Array, rv: Array, dual: Array, short: Array, excess: Array, rest: float) -> Steps:
        from . import _pairs

        at, whole, users = self.at, self.whole, len(rv)
        rhs, own, free = np.where(at.row, rw / self.lam, 0.0) - excess, np.empty(users), np.empty(users)
        given = (at.start, at.server, at.use)
        _pairs.pushed(*given, self.ratio, at.z, ry, dual, rv / at.p - short, whole, own, free, rhs)
        base = self._solve(rhs)
        dt = (rest - float(at.tau @ free) - float((self.border * base).sum())) / self.corner
        dlam = base + dt * self.solved
        dp = np.empty(users)
        _pairs.weighted_cost(*given, self.ratio, dlam, dp)
        dp = (dp + at.tau * dt) / whole + free
        dy, dz = np.empty(len(ry)), np.empty(len(ry))
        sums, use = np.empty(users), np.zeros(rhs.shape)
        _pairs.back(*given, dlam, dp, dual, at.y, at.z, ry, dy, dz, sums, use)
        dw = np.where(at.row, rw / self.lam - self.idle * dlam, 0.0)
        return Steps(dy, dz, dlam, dw, dp, rv / at.p - self.loose * dp, dt, sums, use)


def _sum(one: Steps, other: Steps) -> Steps:
    return Steps(*(getattr(one, name) + getattr(other, name) for name in Steps._fields))
