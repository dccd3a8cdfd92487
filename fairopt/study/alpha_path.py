"""The efficiency-fairness frontier: one allocation per alpha, each warm-started from the previous allocation."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import DataError, FairoptError
from ..base.libraries import pd
from ..game.two_sided import EquilibriumCurve, equilibrium_curve
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model import _validate
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from .blank import Blank, shown, summary
from .follower import Followed, Follower

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Default alphas, from nearly utilitarian to max-min: 39 values from 0.1 to 64, and infinity.
ALPHAS = (*(float(alpha) for alpha in np.geomspace(0.1, 64, 39)), math.inf)

#: An alpha, and its allocation.
Found = tuple[float, Allocation]


class AlphaPath(Blank):
    """Frame of measures by alpha, with the `allocations` (a series by alpha) and the label `mechanism`.

    `attrs["jumps"]` lists the jumps of alphaPF-VDS (alpha, user, before, after) if its curve was followed; `back` is
    the path in the opposite direction (`hysteresis=True`), or None. `errors`, for a refined path only, has for every
    alpha the relative error of linear interpolation of tasks to the next alpha. `user_tasks` are tasks by alpha and
    user, `draw` plots measures or tasks, and `plot` is the method of pandas. Operations (slices, copies, ...) return a
    plain frame.
    """

    _metadata = ["allocations", "mechanism", "back", "errors"]

    allocations: pd.Series
    mechanism: str
    back: AlphaPath | None
    errors: pd.Series | None = None

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    @property
    def user_tasks(self) -> pd.DataFrame:
        """Tasks (alphas, users) of every user at every alpha; the column `tasks` is their sum."""
        cluster = self.allocations.iloc[0].cluster
        rows = [one.arrays.user_tasks for one in self.allocations]
        return pd.DataFrame(rows, self.index, pd.Index(cluster.users, name="user"))

    def draw(self, *others: pd.DataFrame | Allocation | str, **options: Any) -> Figure:
        """Plot utilization, smallest share and Jain's index by alpha, with other paths or allocations (`plot.paths`).

        `draw("user_tasks")` plots tasks by user (`plot.tasks`); `draw("jain", "tasks")` plots the named columns.
        """
        from ..result import plot

        names = [one for one in others if isinstance(one, str)]
        if names == ["user_tasks"]:
            return plot.tasks(self.user_tasks, jumps=self.attrs.get("jumps"), **options)
        back = getattr(self, "back", None)
        paths = [self, *([] if back is None else [back]), *(one for one in others if not isinstance(one, str))]
        return plot.paths(*paths, **({"measures": names} | options if names else options))


def alpha_path(
    cluster: Cluster,
    alphas: Iterable[float] | None = None,
    *,
    mechanism: Followed = AlphaPFVDS,
    tol: float | None = None,
    throw: bool = True,
    progress: bool = False,
    refine: float | None = None,
    jumps: bool = False,
    hysteresis: bool = False,
    seconds: float = 60.0,
    details: bool = False,
) -> AlphaPath:
    r"""Solve a mechanism for a sequence of alphas, from efficiency (0) to max-min fairness (infinity).

    For `mechanism=fo.AlphaFair` the path is

    .. math:: x(\alpha) \in \arg\max_{x \in \mathcal{X}} \sum_n \phi_n f_\alpha(\sigma_n / \phi_n)

    where :math:`\mathcal{X}` is the set of feasible tasks and :math:`\sigma` are the shares of users. By default it is
    the path of equilibria of alphaPF-VDS. `refine=1e-2` inserts alphas until linear interpolation of
    log tasks in `t = alpha / (1 + alpha)` between neighbours has a relative error below 1%; rows are then sorted, and
    `errors` has the remaining errors (larger than `refine` where tasks jump or a solve fails; docs/sensitivity.md).

    Parameters
    ----------
    cluster : Cluster
    alphas : iterable of float, optional
        At least one alpha in [0, infinity]. Default: 39 values evenly spaced in log alpha from 0.1 to 64, and infinity.
    mechanism : type or str
        A class with a parameter `alpha`, or its name.
    tol, throw
        Arguments of `Mechanism.solve`.
    progress : bool
        Show a progress bar.
    refine : float, optional
        Bound (> 0) on the relative interpolation error. Default: no alphas are inserted.
    jumps : bool
        Also follow the curve of equilibria of alphaPF-VDS from alpha = 1: every allocation is the first equilibrium of
        its alpha on the curve (`select="curve"`). Discontinuities are in `attrs["jumps"]`, and are gaps in the plot.
    hysteresis : bool
        Also return the path from the largest and smallest alphas back to 1 (`back`): the last equilibrium of every
        alpha on the curve, which differs from the first equilibrium where the curve folds.
    seconds : float
        Limit of CPU time for each part of the curve (alpha > 1 and alpha < 1); `attrs["curve"]` has the range not
        followed.
    details : bool
        Show all columns. The further columns are utilization per resource (`use_...`), measures of users below their
        task limits, the certificate, CPU seconds, and the number of Newton steps.

    Returns
    -------
    AlphaPath
        Frame with a row per alpha, in the given order: total `tasks`, the tasks of each user if there are at most two,
        smallest and largest share, Jain's index, welfare, mean utilization, measures of plug-ins, and `certified`,
        False if the certificate misses `tol`. Attributes are `allocations` by alpha, and `user_tasks` (alphas, users);
        `draw()` plots the path. All alphas of a small cluster are solved jointly, and `seconds` in the details are
        divided among alphas in proportion to Newton steps; on a larger cluster every solve starts from the previous
        allocation.

    Raises
    ------
    DataError
        An alpha is invalid, or the mechanism has no parameter alpha or rejects the cluster.
    NotConverged, SolverError
        A solve fails (`Mechanism.solve`); with `throw=False` allocations that miss `tol` are flagged instead.

    >>> import fairopt as fo
    >>> path = fo.alpha_path(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [1, 4, float("inf")])
    >>> path.user_tasks.round(2).to_numpy().tolist()
    [[4.09, 1.64], [3.36, 1.88], [3.0, 2.0]]
    """
    alphas = ALPHAS if alphas is None else alphas
    if not isinstance(alphas, Iterable):
        raise DataError(f"alphas is {alphas!r}; give a list of them, such as alpha_path(cluster, [1, 3])")
    values = [_validate.alpha(alpha) for alpha in alphas]
    if not values:
        raise DataError("alphas is empty; give at least one, such as alpha_path(cluster, [1, 3])")
    seconds = _validate.number(seconds, "seconds", "a number > 0, such as 60, or infinity", lambda some: some > 0)
    follower = Follower(cluster, mechanism, tol, throw, values)
    if progress:
        from ..base.progress import tqdm

        values = tqdm(values, desc="alpha path", unit="alpha")
    found = [(alpha, follower(alpha)) for alpha in values]
    errors: list[float] | None = None
    if refine is not None:
        goal = _validate.number(refine, "refine", "a number > 0, such as 1e-2", lambda goal: 0 < goal < math.inf)
        found, errors = refined(follower, found, goal)
    one = follower.make(2.0)
    if not (hysteresis or jumps):
        path = as_path(found, follower.title, details)
    else:
        if not (isinstance(one, AlphaPFVDS) and one.select in ("fast", "curve")):
            raise DataError(f"{one} has no curve of equilibria: jumps and hysteresis are those of AlphaPFVDS")
        some = [alpha for alpha, _ in found if 0 < alpha < np.inf and abs(np.log(alpha)) > 1e-9]
        curve = equilibrium_curve(cluster, some, seconds=seconds)
        path = as_path([(a, on_curve(curve, one, each, a, 0, tol)) for a, each in found], follower.title, details)
        path.attrs["jumps"], path.attrs["curve"] = curve.jumps(), curve.missing
        if hysteresis:
            back = [(a, on_curve(curve, one, each, a, -1, tol)) for a, each in found]
            path.back = as_path(back, f"{follower.title}, coming back", details)
    if errors is not None:
        path.errors = pd.Series(errors, index=path.index, name="error")
    return path


def as_path(found: list[tuple[float, Allocation]], title: str, details: bool = True) -> AlphaPath:
    """Frame of allocations by alpha, with all columns if `details`, or else the columns that are shown by default."""
    alphas = pd.Index([alpha for alpha, _ in found], name="alpha", dtype=float)
    rows = []
    for _, one in found:
        more = {"certified": one.certificate.judged and not one.flagged, "steps": one.stats.rounds}
        rows.append(summary(one) | more)
    first = shown(found[0][1].cluster)
    columns = [*dict.fromkeys((*first, *rows[0]))] if details else first
    path = AlphaPath(rows, index=alphas, columns=columns)
    path._new = True
    path.allocations = pd.Series([one for _, one in found], index=alphas, name="allocation", dtype=object)
    path.mechanism, path.back = title, None
    return path


def refined(solve: Callable[[float], Allocation], found: list[Found], goal: float) -> tuple[list[Found], list[float]]:
    """Insert alphas by bisection; return sorted allocations, and relative interpolation errors to the next alpha.

    Log tasks are interpolated linearly in `t = alpha / (1 + alpha)`. A certified solve at the midpoint of an interval
    measures the error of the interval and is kept. The estimated error of both halves is twice this error, which is a
    bound if log tasks are convex or concave; the interval of the largest estimate is bisected next. Errors larger than
    `goal` remain where the midpoint cannot be solved (infinite without an estimate), in intervals of t shorter than
    1e-4 (where tasks jump), and after 400 insertions. The error is 0 if no user has tasks at both ends of the interval,
    and NaN for the last alpha.
    """
    points = dict(found)
    begun = len(points)
    heap = [(-math.inf, *ends) for ends in pairwise(sorted(points))]  # ordered by decreasing error
    errors: dict[float, float] = {}
    while heap:
        negative, low, high = heapq.heappop(heap)
        ends = _at(low), _at(high)
        runs = (points[low].arrays.user_tasks > 0) & (points[high].arrays.user_tasks > 0)
        if -negative <= goal or ends[1] - ends[0] < 1e-4 or len(points) - begun >= 400 or not runs.any():
            errors[low] = -negative if runs.any() else 0.0
            continue
        alpha = sum(ends) / (2 - sum(ends))
        try:
            points[alpha] = solve(alpha)
        except FairoptError:  # near alpha = 0, where tasks jump; the remaining path is still returned
            errors[low] = -negative
            continue
        here = runs & (points[alpha].arrays.user_tasks > 0)
        tasks = np.log([points[one].arrays.user_tasks[here] for one in (low, alpha, high)])
        error = float(np.abs(2 * tasks[1] - tasks[0] - tasks[2]).max(initial=0.0))
        for one in ((low, alpha), (alpha, high)):
            heapq.heappush(heap, (-error, *one))
    order = sorted(points)
    return [(alpha, points[alpha]) for alpha in order], [errors.get(alpha, math.nan) for alpha in order]


def _at(alpha: float) -> float:
    return 1.0 if math.isinf(alpha) else alpha / (1 + alpha)


def on_curve(
    curve: EquilibriumCurve, mechanism: AlphaPFVDS, found: Allocation, alpha: float, place: int, tol: float | None
) -> Allocation:
    """Allocation at the first (`place` 0) or last (-1) equilibrium of an alpha on the curve.

    Returns `found` if its tasks agree with those of this equilibrium, or if the curve does not attain alpha.
    """
    crossings = curve.crossings(alpha)
    if not crossings:
        return found
    there = curve.user_tasks(crossings[place].user_tasks)
    runs = (there > 0) & (found.arrays.user_tasks > 0)
    if np.abs(np.log(there[runs] / found.arrays.user_tasks[runs])).max(initial=0.0) <= 1e-6:
        return found
    return replace(mechanism, alpha=alpha).at_crossing(crossings[place]).solve(curve.cluster, tol)
