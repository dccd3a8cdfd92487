"""Newton's equations of one level of max-min (`level_interior`): users are eliminated, prices and t remain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import structured

if TYPE_CHECKING:
    from .level_interior import Point

Array = NDArray[np.float64]
Steps = tuple[Array, Array, Array, Array, Array, Array, float]  # of y, z, lambda, w, p, v and t

_TINY = 1e-300


class Newton:
    """Newton's equations at one point, factorised."""

    def __init__(self, at: Point, single: bool) -> None:
        self.at = at
        self.ratio = at.y / at.z
        loose = at.v / at.p
        self.loose = loose
        self.lam = np.maximum(at.lam, _TINY)
        self.idle = np.where(at.row, at.w / self.lam, 1.0)
        self.whole = np.add.reduceat(self.ratio, at.start[:-1]) + loose
        self.factors = structured.factor_symmetric(
            at.start, at.server, self.ratio, at.use, loose, self.idle, single=single
        )
        self.border = at.priced(self.ratio * (at.tau / self.whole)[at.user])
        self.solved = self._solve(self.border)
        self.corner = float((at.tau / self.whole).sum() + (self.border * self.solved).sum())

    def _solve(self, rhs: Array) -> Array:
        row = self.at.row
        return np.where(row, self.factors.solve(np.where(row, rhs, 0.0).ravel()).reshape(rhs.shape), 0.0)

    def direction(self, ry: Array, rw: Array, rv: Array, refine: int) -> Steps:
        """Steps that change products by `ry`, `rw`, `rv` to the first order and remove all residuals."""
        at = self.at
        total = self._once(ry, rw, rv, at.dual, at.short, at.excess, at.sum)
        nothing = np.zeros(len(ry)), np.zeros(rw.shape), np.zeros(len(rv)), np.zeros(len(ry))
        for _ in range(refine):
            dy, _, _, dw, dp, dv, dt = total
            short = at.short + np.add.reduceat(dy, at.start[:-1]) - at.tau * dt - dv
            excess = np.where(at.row, at.excess - at.priced(dy) - dw, 0.0)
            more = self._once(*nothing, short, excess, at.sum - float(at.tau @ dp))
            total = (*(a + b for a, b in zip(total[:6], more[:6], strict=True)), dt + more[6])  # type: ignore[assignment]
        return total

    def _once(self, ry: Array, rw: Array, rv: Array, dual: Array, short: Array, excess: Array, rest: float) -> Steps:
        from . import _columns

        at, ratio, whole = self.at, self.ratio, self.whole
        own, c0 = np.empty(len(ry)), np.empty(len(rv))
        rhs = np.where(at.row, rw / self.lam, 0.0) - excess
        pairs = (at.start, at.server, at.use, ratio, whole, ry, at.z, dual)
        _columns.right_hand(*pairs, rv, at.p, short, own, c0, rhs)
        base = self._solve(rhs)
        dt = (rest - float(at.tau @ (c0 / whole)) - float((self.border * base).sum())) / self.corner
        dlam = base + dt * self.solved
        dp, dz, dy = np.empty(len(rv)), np.empty(len(ry)), np.empty(len(ry))
        _columns.recover(*pairs, at.tau * dt + c0, dlam, dp, dz, dy)
        dw = np.where(at.row, rw / self.lam - self.idle * dlam, 0.0)
        return dy, dz, dlam, dw, dp, rv / at.p - self.loose * dp, dt
