"""`fairopt.game.equilibrium_curve`: equilibria of alphaPF-VDS along the curve through alpha = 1, on both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..core.accuracy import NEGLIGIBLE
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
    r"""Curve of equilibria from alpha = 1 to the smallest and largest requested alphas.

    .. math:: \{(\alpha, x) : x \text{ is an equilibrium of alphaPF-VDS}(\alpha)\}

    The curve is the connected component of this set that contains the unique equilibrium at alpha = 1.

    Attributes
    ----------
    curves : tuple of Curve
        The parts below and above alpha = 1, on the merged cluster.
    cluster, merging
        The given cluster, and its proportional users and servers that are merged in `curves`.
    missing : tuple of str
        Where and why a part ended before its last alpha; empty if both are complete.

    >>> import fairopt as fo
    >>> curve = fo.game.equilibrium_curve(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), [2.0, 4.0])
    >>> curve.to_frame().round(3).iloc[:, [0, 1, 2, 4, 5]].to_numpy().tolist()
    [[2.0, 0.0, 1.0, 0.732, 0.634], [4.0, 0.0, 1.0, 0.616, 0.653]]
    """

    cluster: Cluster
    curves: tuple[Curve, ...] = field(repr=False)
    merging: Merging = field(repr=False)

    @property
    def missing(self) -> tuple[str, ...]:
        """Alphas at which parts ended early, and the reasons."""
        return tuple(f"followed to alpha = {one.alpha:.4g}: {one.reason}" for one in self.curves if not one.arrived)

    def crossings(self, alpha: float) -> tuple[Crossing, ...]:
        """Crossings of a requested alpha by the curve, on the merged cluster; the first is that of `select="curve"`.

        The tuple is empty if alpha was not requested or not attained.
        """
        return next((found for one in self.curves if (found := one.at(alpha))), ())

    def user_tasks(self, merged: Array) -> Array:
        """Expand tasks of merged users to tasks of users, (users,)."""
        return np.asarray(self.merging.split_users(merged[:, None])[:, 0])

    def to_frame(self) -> pd.DataFrame:
        """Frame of crossings, with the columns `alpha`, `place`, `index`, `certificate`, and the tasks of each user.

        `place` counts the crossings of an alpha along the curve, from 0.
        """
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
        """Frame of jumps of the first crossing, with the columns `alpha`, `user`, `before` and `after`.

        `before` has the user's tasks at the end nearer to alpha = 1, `after` those at the other end.
        """
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
    r"""Follow the curve of equilibria of alphaPF-VDS from alpha = 1, by pseudo-arclength continuation.

    .. math:: F(x, \lambda, \alpha) = 0, \qquad (x, \lambda)(1) \text{ the optimum of } \max \sum_n \phi_n \log x_n

    with F the optimality conditions of all servers. The crossings of the requested alphas by the curve, as far as it is
    followed, are found with their indices; within a fold an alpha has several crossings. On small clusters the curve
    passed through all equilibria in each of 86 folds that were enumerated; in general it need not.

    Parameters
    ----------
    cluster : Cluster
    alphas : iterable of float
        Positive, finite, other than 1.
    seconds : float
        Limit of CPU time for each side of 1; an incomplete part is reported in `missing`.
    progress : bool
        Show a progress bar.
    options : CurveOptions
        Step lengths and limits of the continuation.

    Returns
    -------
    EquilibriumCurve
        With `crossings(alpha)`, `to_frame()`, `jumps()` and `missing`.

    Raises
    ------
    DataError
        An alpha is not a number or out of range.

    >>> import fairopt as fo
    >>> curve = fo.game.equilibrium_curve(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), [3.0])
    >>> curve.missing, len(curve.jumps()), [each.index for each in curve.crossings(3.0)]
    ((), 0, [1])
    """
    merging = merge(expected(cluster, "enclosures of equilibria"))
    values = [_validate.alpha(alpha) for alpha in alphas]
    for alpha in values:
        if not 0 < alpha < np.inf or abs(np.log(alpha)) < NEGLIGIBLE:
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
