"""Column screening in the game's interior point.

What their tasks came to is then missing in the equations of users and capacities, and Newton steps make up for it, as
for anything that is missing. Their slacks follow from prices; who comes near returns, and no step goes further. Of most
of them it is enough to know that their slack is large: it shrinks by no more than the server's prices and the user's
level make it, which is one product in place of powers and logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...engines.linalg import column_screening as rule
from ...engines.linalg.column_screening import ScreeningOptions
from ..model import _kernels
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Steps of the game shrink slacks less than those of welfare do.
OPTIONS = ScreeningOptions(far=5.0)


@dataclass
class Screening:
    """Which pairs of `every` take part, and how dear the others are at least."""

    every: EquilibriumSystem
    inside: Index
    outside: Index
    soon: NDArray[np.bool_]  # outside, but on its way in
    sums: Array  # (users,), tasks that left with those outside and are not made up for
    use: Array  # (servers, resources), of those
    least: Array  # (all pairs,), bounds from below of the slacks of those outside, at the point `seen`
    options: ScreeningOptions
    seen: tuple[EquilibriumPoint, float] | None = None  # where `least` was taken: a point and a power a

    @classmethod
    def of(cls, every: EquilibriumSystem, options: ScreeningOptions = OPTIONS) -> Screening:
        """All take part."""
        pairs = np.arange(len(every.server))
        nothing = np.zeros(len(every.weight)), np.zeros(every.row.shape)
        return cls(every, pairs, pairs[:0], np.zeros(0, dtype=bool), *nothing, np.zeros(len(pairs)), options)

    def screened(
        self, now: EquilibriumSystem, at: EquilibriumPoint, a: float, gap: float
    ) -> tuple[EquilibriumSystem, EquilibriumPoint]:
        """The same point with the pairs that matter now; `gap` is how far it may be from where it goes, relative."""
        options = self.options
        (pairs, resources), users = self.every.use.shape, len(self.every.weight)
        if not rule.applies(pairs, resources, users, gap, options):
            return now, at
        k, total = now.power, np.exp(at.log_level)
        far = k * rule.far(gap, options)
        # What is not a number stays, for who comes next to notice.
        some = np.flatnonzero((at.slack >= far) & (at.tasks <= options.little * total[now.user]))
        true = self._real(self.inside[some], at, a)
        dear = np.zeros(len(at.slack), dtype=bool)
        dear[some] = true >= far
        kept = rule.staying(dear, now.start, now.user)
        lost = now.row & ~(now.used(kept.astype(float)) > 0)  # nor does any resource: nothing would hold its price
        kept |= ((now.use > 0) & lost[now.server]).any(axis=1)
        self.least[self.inside[some]], self.least[self.outside] = true, self.at_least(at, a, options.nearer * far)
        self.seen = at, a
        back = self.soon | (self.least[self.outside] < options.nearer * far)
        if back.any():
            kept[:] = True
        elif not rule.worthwhile(kept, options):
            return now, at
        screened_out = np.where(kept, 0.0, at.tasks)
        self.sums = self.sums + np.add.reduceat(screened_out, now.start[:-1])
        self.use = self.use + now.used(screened_out)
        fresh = self.outside[back]
        slack = np.maximum(self._real(fresh, at, a), 1e-3 * far)
        wholes = total[self.every.user[fresh]]
        tasks = np.minimum(k * at.mu * wholes / slack, options.back * wholes)
        inside = self.inside[kept]
        where = np.searchsorted(inside, fresh)
        self.inside = np.insert(inside, where, fresh)
        mask = np.ones(len(self.every.server), dtype=bool)
        mask[self.inside] = False
        self.outside = np.flatnonzero(mask)
        self.soon = np.zeros(len(self.outside), dtype=bool)
        point = replace(
            at, tasks=np.insert(at.tasks[kept], where, tasks), slack=np.insert(at.slack[kept], where, slack)
        )
        return self.every.taking(self.inside), point

    def longest(self, moved: EquilibriumPoint, a: float) -> float:
        """Which part of a step that leads to `moved` leaves all who are screened out enough of their slack."""
        if self.seen is None or not len(self.outside):
            return 1.0
        loose = np.flatnonzero(~(self._lowered(moved) >= (1 - self.options.soon) * self.least[self.outside]))
        before, after = (self._real(self.outside[loose], point, a) for point in (self.seen[0], moved))
        lost = (before - after) / before
        self.soon[:] = False
        self.soon[loose] = lost > self.options.soon
        return rule.longest(float(lost.max(initial=0.0)), self.options)

    def went(self, t: float) -> None:
        """A part t of a step has been taken."""
        self.sums, self.use = (1 - t) * self.sums, (1 - t) * self.use

    def whole(self, at: EquilibriumPoint, a: float, mu: float) -> EquilibriumPoint:
        """The point with all pairs; those aside have what mu gives them."""
        if not len(self.outside):
            return at
        tasks, slack = np.zeros(len(self.every.server)), np.ones(len(self.every.server))
        tasks[self.inside], slack[self.inside] = at.tasks, at.slack
        slack[self.outside] = np.maximum(self._real(self.outside, at, a), np.finfo(float).tiny)
        total = np.exp(at.log_level)[self.every.user[self.outside]]
        tasks[self.outside] = self.every.power * mu * total / slack[self.outside]
        return replace(at, tasks=tasks, slack=slack)

    def at_least(self, at: EquilibriumPoint, a: float, sufficient: float) -> Array:
        """Bounds from below of the slacks of those outside; where they are less than enough, the slacks."""
        if self.seen is None or self.seen[1] != a:
            return self._real(self.outside, at, a)
        result = self._lowered(at)
        loose = np.flatnonzero(~(result >= sufficient))
        result[loose] = self._real(self.outside[loose], at, a)
        return result

    def _lowered(self, at: EquilibriumPoint) -> Array:
        """What those outside keep of their slack at least on the way from where it was seen, in the same power."""
        assert self.seen is not None
        q, before, result = self.every, self.seen[0], np.empty(len(self.outside))
        prices = np.exp(q.power * np.where(q.row, at.log_price - before.log_price, np.inf).min(axis=1))
        levels = np.exp(q.power * (at.log_level - before.log_level))
        _kernels.lowered(self.outside, q.user, q.server, prices, levels, self.least, result)
        return result

    def _real(self, pairs: Index, at: EquilibriumPoint, a: float) -> Array:
        """Slacks by prices, of some pairs."""
        q, result = self.every, np.empty(len(pairs))
        log_price = np.where(q.row, a * at.log_price, -1e300)
        top = log_price.max(axis=1)
        powers = np.array([q.power / a, q.power])
        given = pairs, q.user, q.server, q.use, np.exp(log_price - top[:, None]), top, powers
        _kernels.slacks(*given, q.log_gain, at.log_level, result)
        return result
