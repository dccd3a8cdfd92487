"""`fairopt.game.equilibrium_curve`: equilibria of alphaPF-VDS along the curve through alpha = 1, on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..core.game.curve import Crossing, Curve, follow
from ..core.game.curve_system import OPTIONS, CurveOptions
from ..model import _validate
from ..model._arrays import Array
from ..model.cluster import Cluster, expected
from ..model.criterion import criterion, virtual_share_per_task
from ..model.merging import Merging, merge
from ..model.problem import Problem


@dataclass(frozen=True)
class EquilibriumCurve:
    """The curve of equilibria from alpha = 1 to the farthest alphas that were asked for.

    Attributes
    ----------
    curves : the parts below and above alpha = 1, of the merged cluster
    missing : where and why a part ended before its last alpha; empty if none did
    """

    cluster: Cluster
    curves: tuple[Curve, ...] = field(repr=False)
    merging: Merging = field(repr=False)

    @property
    def missing(self) -> tuple[str, ...]:
        """Alphas at which parts ended early, and why."""
        return tuple(f"followed to alpha = {one.alpha:.4g}: {one.reason}" for one in self.curves if not one.arrived)

    def crossings(self, alpha: float) -> tuple[Crossing, ...]:
        """Crossings of the merged cluster, first the one that answers `AlphaPFVDS(alpha, "curve")`."""
        return next((found for one in self.curves if (found := one.at(alpha))), ())

    def user_tasks(self, merged: Array) -> Array:
        """Tasks of merged users as tasks of users, (users,)."""
        return np.asarray(self.merging.split_users(merged[:, None])[:, 0])

    def to_frame(self) -> pd.DataFrame:
        """A row for every crossing: alpha, its place among those of alpha (0: first), index, certificate, tasks."""
        rows = []
        for one in self.curves:
            seen: dict[float, int] = {}
            for each in one.crossings:
                place = seen[each.alpha] = seen.get(each.alpha, -1) + 1
                tasks = dict(zip(self.cluster.users, self.user_tasks(each.user_tasks), strict=True))
                known = {"alpha": each.alpha, "place": place, "index": each.index, "certificate": each.certificate}
                rows.append(known | tasks)
        return pd.DataFrame(rows, columns=["alpha", "place", "index", "certificate", *self.cluster.users])

    def jumps(self) -> pd.DataFrame:
        """A row for every user and jump of the first crossing, away from alpha = 1: alpha, user, before, after."""
        rows = [
            {"alpha": jump.alpha, "user": user, "before": before, "after": after}
            for one in self.curves
            for jump in one.jumps
            for user, before, after in zip(
                self.cluster.users, self.user_tasks(jump.before), self.user_tasks(jump.after), strict=True
            )
        ]
        return pd.DataFrame(rows, columns=["alpha", "user", "before", "after"])


def equilibrium_curve(
    cluster: Cluster,
    alphas: Iterable[float],
    *,
    seconds: float = 60.0,
    progress: bool = False,
    options: CurveOptions = OPTIONS,
) -> EquilibriumCurve:
    """Follow the curve of equilibria of alphaPF-VDS from alpha = 1 to the least and the largest of some alphas.

    All crossings of every alpha on the way are found: several inside of a fold, with their indices. On small clusters
    the curve passed through every equilibrium in each of 86 folds that were enumerated; it need not.

    Parameters
    ----------
    cluster : where the game is played
    alphas : positive, finite, other than 1 (where the equilibrium is the optimum of one convex program)
    seconds : CPU time for each side of 1; a part that ends before says so in `missing`
    progress : show a bar
    options : steps and tolerances of the continuation

    Raises
    ------
    DataError
        An alpha is not such a number.
    """
    merging = merge(expected(cluster))
    values = [_validate.alpha(alpha) for alpha in alphas]
    for alpha in values:
        if not 0 < alpha < np.inf or abs(np.log(alpha)) < 1e-9:
            raise DataError(f"alphas has {alpha:g}; the curve is followed to positive, finite values other than 1")
    merged = merging.cluster
    problem = Problem(merged, criterion(merged, partial(virtual_share_per_task, merged), 2.0, "game"))
    found: list[Curve] = []
    for side in ([a for a in values if a < 1], [a for a in values if a > 1]):
        if side and len(problem.polytope.users):
            found.append(_shown(problem, sorted(set(side)), options, seconds, progress))
    return EquilibriumCurve(cluster, tuple(found), merging)


def _shown(problem: Problem, side: list[float], options: CurveOptions, seconds: float, progress: bool) -> Curve:
    if not progress:
        return follow(problem, side, options, seconds=seconds)
    from ..base.progress import tqdm

    with tqdm(total=100, desc="curve of equilibria", unit="%") as bar:
        return follow(problem, side, options, seconds=seconds, bar=bar)
