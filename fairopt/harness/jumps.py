"""The path of alphaPF-VDS over alpha as a curve: where the answer jumps, and what it is on the other side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..errors import DataError
from ..game.curve.curve import Crossing, Curve, Jump, follow
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model.cluster import Cluster
from ..model.merging import Merging, merge
from ..model.problem import Problem
from ..result.allocation import Allocation

Array = NDArray[np.float64]

#: Tasks that differ by less than this part are the same.
SAME = 1e-6
#: Users and servers, multiplied, up to which a path is followed unasked.
UNASKED = 100


@dataclass(frozen=True)
class Sides:
    """The curves of equilibria above and below alpha = 1, as far as alphas that were asked for go."""

    merging: Merging
    curves: tuple[Curve, ...]

    @classmethod
    def of(cls, cluster: Cluster, alphas: Sequence[float], seconds: float) -> Sides:
        """Follow both, each for at most so many CPU seconds."""
        merging = merge(cluster)
        rule = AlphaPFVDS(2.0).criterion(merging.cluster)
        problem = Problem(merging.cluster, rule)
        finite = [alpha for alpha in alphas if 0 < alpha < np.inf]
        above, below = sorted({a for a in finite if a > 1}), sorted({a for a in finite if a < 1})
        found = [follow(problem, side, seconds=seconds) for side in (below, above) if side and len(problem.polytope.users)]
        return cls(merging, tuple(found))

    @property
    def missing(self) -> tuple[str, ...]:
        """Why a curve ended before the last alpha."""
        return tuple(f"followed to alpha = {one.alpha:.4g}: {one.reason}" for one in self.curves if not one.arrived)

    def crossing(self, alpha: float, last: bool = False) -> Crossing | None:
        """The first crossing of an alpha, or the last one before the farthest alpha."""
        for one in self.curves:
            if found := one.at(alpha):
                return found[-1 if last else 0]
        return None

    def jumps(self) -> pd.DataFrame:
        """A row for every user at every jump of the first crossing, away from alpha = 1: alpha, user, before, after."""
        users = self.merging.original.users
        rows = [
            {"alpha": jump.alpha, "user": user, "before": before, "after": after}
            for one in self.curves
            for jump in one.jumps
            for user, before, after in zip(users, self._tasks(jump.before), self._tasks(jump.after), strict=True)
        ]
        return pd.DataFrame(rows, columns=["alpha", "user", "before", "after"])

    def _tasks(self, merged: Array) -> Array:
        return np.asarray(self.merging.split_users(merged[:, None])[:, 0])

    def corrected(self, found: Allocation, alpha: float, tol: float | None, last: bool = False) -> Allocation:
        """An answer at alpha, or the one of the crossing if that is another."""
        crossing = self.crossing(alpha, last)
        if crossing is None:
            return found
        there = self._tasks(crossing.user_tasks)
        runs = (there > 0) & (found.user_tasks > 0)
        if np.abs(np.log(there[runs] / found.user_tasks[runs])).max(initial=0.0) <= SAME:
            return found
        return AlphaPFVDS(alpha).at_crossing(crossing).solve(self.merging.original, tol)


def sides(
    cluster: Cluster, make: object, alphas: Sequence[float], jumps: bool | None, hysteresis: bool, seconds: float
) -> Sides | None:
    """The curves of a path, where they are to be followed; `DataError` for a mechanism without."""
    one = make(2.0) if callable(make) else make
    curve = isinstance(one, AlphaPFVDS) and one == replace(one, select="curve")
    if not curve:
        if jumps or hysteresis:
            raise DataError(f"{one} has no curve of equilibria; jumps and hysteresis are those of AlphaPFVDS")
        return None
    small = cluster.shape[0] * cluster.shape[1] <= UNASKED
    if jumps is False or not (small or jumps or hysteresis):
        return None
    return Sides.of(cluster, alphas, seconds)


__all__ = ["Jump", "Sides", "sides"]
