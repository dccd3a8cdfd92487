"""The efficiency-fairness frontier: one allocation per alpha, each started from the one before."""

from __future__ import annotations

import dataclasses
import heapq
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import mechanisms
from .._libraries import pd
from ..errors import DataError, SolverError
from ..game.curve.two_sided import EquilibriumCurve, equilibrium_curve
from ..mechanisms import Mechanism
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model import _validate
from ..model.cluster import Cluster
from ..result.allocation import Allocation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: From nearly the largest sum of shares to max-min: 39 values from 0.1 to 64, and infinity.
ALPHAS = (*(float(alpha) for alpha in np.geomspace(0.1, 64, 39)), math.inf)

#: A mechanism with a parameter `alpha`: its class, or its name.
Followed = type[Mechanism] | str


class _Plot(pd.plotting.PlotAccessor):  # type: ignore[misc]
    """What pandas draws of frames, and until 0.3 what `draw` does, as `plot` did before."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else ""
        alone = isinstance(first, str) and len(args) < 2 and not kwargs  # pandas: all columns against this one
        if not (alone or isinstance(first, pd.DataFrame) or {"measures", "marks"} & {*kwargs}):
            return super().__call__(*args, **kwargs)
        said = f"({first!r})" if alone and first else "()"
        warnings.warn(
            f"path.plot{said} is path.draw{said}: plot becomes that of pandas", DeprecationWarning, stacklevel=2
        )
        return self._parent.draw(*args, **kwargs)


class AlphaPath(pd.DataFrame):  # type: ignore[misc]
    """A frame with a row of numbers per alpha, and what they are of: `allocations` (a series by alpha), `mechanism`.

    `attrs["jumps"]` has the jumps of alphaPF-VDS (alpha, user, before, after), where its curve was followed; `back` is
    the path from the other side (`hysteresis=True`), or None. `errors`, of a path that was refined: by alpha, how far
    tasks are from a straight line to the next one, relatively.
    `tasks` has tasks by alpha and user, and `draw` draws either; `plot` is the one of pandas. What is computed from it
    (a part of it, a copy, ...) is a plain frame.
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
    def tasks(self) -> pd.DataFrame:
        """Tasks of every user (a column each) at every alpha (a row each); `path["tasks"]` is their sum."""
        cluster = self.allocations.iloc[0].cluster
        rows = [one.arrays.user_tasks for one in self.allocations]
        return pd.DataFrame(rows, self.index, pd.Index(cluster.users, name="user"))

    def draw(self, *others: pd.DataFrame | str, **options: Any) -> Figure:
        """Utilization, smallest share and Jain's index along alpha, with other paths: as `fairopt.plot.paths`.

        `draw("tasks")` shows who gets what, as `fairopt.plot.tasks`; `draw("jain", "welfare")` has these columns.
        """
        from ..result import plot

        names = [one for one in others if isinstance(one, str)]
        if names == ["tasks"]:
            return plot.tasks(self.tasks, jumps=self.attrs.get("jumps"), **options)
        back = getattr(self, "back", None)
        paths = [self, *([] if back is None else [back]), *(one for one in others if not isinstance(one, str))]
        return plot.paths(*paths, **({"measures": names} | options if names else options))

    @property
    def plot(self) -> _Plot:
        """As of any frame of pandas."""
        return _Plot(self)


def alpha_path(
    cluster: Cluster,
    alphas: Iterable[float] = ALPHAS,
    *,
    mechanism: Followed = AlphaPFVDS,
    tol: float | None = None,
    throw: bool = True,
    progress: bool = False,
    refine: float | None = None,
    jumps: bool = False,
    hysteresis: bool = False,
    seconds: float = 60.0,
) -> AlphaPath:
    """Follow a mechanism with a parameter `alpha` (alphaPF-VDS unless told otherwise) as alpha changes.

    `mechanism=fo.AlphaFair` (or `"alpha-fair"`) follows the global family. `refine=1e-2` adds alphas where tasks bend,
    until between neighbours those of every user are straight lines in `alpha / (1 + alpha)` to 1%; rows are then
    sorted, and `errors` says how straight (above `refine` where tasks jump; docs/sensitivity.md).

    Parameters
    ----------
    cluster : what is shared, and among whom
    alphas : in [0, infinity], at least one; by default 39 evenly spaced in log alpha from 0.1 to 64, and infinity
    mechanism : a class with a parameter `alpha`, or its name; by default alphaPF-VDS
    tol, throw : as in `Mechanism.solve`
    progress : show a progress bar
    refine : > 0, how straight tasks are to be between neighbours; None adds no alphas
    jumps : follow the curve of equilibria of alphaPF-VDS from alpha = 1 as well: every answer is the first on it
        (`select="curve"`), and `attrs["jumps"]`, and a gap in the plot, show where that jumps
    hysteresis : also give the path as alpha comes back from the farthest alphas to 1 (`back`): the last crossings of
        the curve, which differ where it has folds
    seconds : CPU time for each of the curves above and below alpha = 1; `attrs["curve"]` says how far they came

    Returns
    -------
    AlphaPath
        a frame with one row per alpha, in the order given: what `Allocation.summary` says (tasks, shares,
        utilization per resource and on average, Jain's index, welfare, certificate, seconds) and the Newton steps it
        took. `allocations` of it are the answers, `tasks` theirs by user, `draw()` draws it. Every
        engine that can starts from the allocation before: in the game that saves a quarter to a half of the steps of a
        solve, if neighbouring alphas differ by 20%, and nothing if by a factor of 2.5.

    Raises
    ------
    DataError
        Alphas or the mechanism are not such as can be followed, or as `Mechanism.solve`.
    NotConverged, SolverError
        As `Mechanism.solve`; with `throw=False` rows that miss `tol` are flagged in their allocations.
    """
    if not isinstance(alphas, Iterable):
        raise DataError(f"alphas is {alphas!r}; give a list of them, such as alpha_path(cluster, [1, 3])")
    values = [_validate.alpha(alpha) for alpha in alphas]
    if not values:
        raise DataError("alphas is empty; give at least one, such as alpha_path(cluster, [1, 3])")
    follower = Follower(cluster, mechanism, tol, throw)
    if progress:
        from .._progress import tqdm

        values = tqdm(values, desc="alpha path", unit="alpha")
    found = [follower(alpha) for alpha in values]
    errors: list[float] | None = None
    if refine is not None:
        goal = _validate.number(refine, "refine", "a number > 0, such as 1e-2")
        if not 0 < goal < math.inf:
            raise DataError(f"refine is {refine!r}; it must be a number > 0, such as 1e-2")
        found, errors = refined(follower, found, goal)
    one = follower.make(2.0)
    curve = curve_of_path(cluster, one, [alpha for alpha, _ in found], hysteresis or jumps, seconds)
    if curve is None:
        path = as_path(found, follower.title)
    else:
        path = as_path([(a, on_curve(curve, one, each, a, 0, tol)) for a, each in found], follower.title)
        path.attrs["jumps"], path.attrs["curve"] = curve.jumps(), curve.missing
        if hysteresis:
            back = [(a, on_curve(curve, one, each, a, -1, tol)) for a, each in found]
            path.back = as_path(back, f"{follower.title}, coming back")
    if errors is not None:
        path.errors = pd.Series(errors, index=path.index, name="error")
    return path


class Follower:
    """Solves one cluster for one alpha after the other, each from the answer before."""

    def __init__(self, cluster: Cluster, mechanism: Followed, tol: float | None, throw: bool = True) -> None:
        self.make, self.title = _family(mechanism)
        self._cluster, self._tol, self._throw = cluster, tol, throw
        self._last: Allocation | None = None

    def __call__(self, alpha: float) -> tuple[float, Allocation]:
        last = self._last
        start = last if last is not None and not last.flagged else None
        found = self.make(alpha).solve(self._cluster, self._tol, throw=self._throw, start=start)
        self._last = found
        return alpha, found


def as_path(found: list[tuple[float, Allocation]], title: str) -> AlphaPath:
    """The frame of answers by alpha."""
    alphas = pd.Index([alpha for alpha, _ in found], name="alpha", dtype=float)
    path = AlphaPath([one.summary() | {"steps": one.stats.rounds} for _, one in found], index=alphas)
    path.allocations = pd.Series([one for _, one in found], index=alphas, name="allocation", dtype=object)
    path.mechanism, path.back = title, None
    return path


def _family(mechanism: object) -> tuple[Callable[[float], Mechanism], str]:
    """A class of mechanisms with a parameter `alpha`, as a function of alpha, and what it is called."""
    given: dict[str, Any] = {}
    if isinstance(mechanism, str):
        mechanism, given = mechanisms.described(mechanism)
        if "alpha" in given:
            raise DataError("the mechanism is followed as alpha changes: leave alpha out of its brackets")
    if isinstance(mechanism, Mechanism):
        raise DataError(f"mechanism is one {mechanism}; give the class, mechanism={type(mechanism).__name__}")
    if not (isinstance(mechanism, type) and issubclass(mechanism, Mechanism)):
        raise DataError(f"mechanism is {mechanism!r}; it must be a class of mechanisms, such as mechanism=AlphaFair")
    kind: type[Mechanism] = mechanism
    if "alpha" not in (field.name for field in dataclasses.fields(kind)):
        raise DataError(f"{kind.__name__} has no parameter alpha to follow; AlphaPFVDS and AlphaFair have one")
    about = ", ".join(f"{name}={value}" for name, value in given.items())
    title = f"{kind.title}({about})" if about else kind.title
    return lambda alpha: mechanisms.get(kind.name, **given, alpha=alpha) if given else kind(alpha=alpha), title


Array = NDArray[np.float64]
Found = tuple[float, Allocation]


@dataclass(frozen=True)
class _Point:
    alpha: float
    found: Allocation
    tasks: Array  # log tasks of those who run
    slope: Array  # by t, NaN where unknown

    @property
    def at(self) -> float:
        return 1.0 if math.isinf(self.alpha) else self.alpha / (1 + self.alpha)

    @classmethod
    def of(cls, alpha: float, found: Allocation) -> _Point:
        with np.errstate(divide="ignore"):
            tasks = np.log(found.arrays.user_tasks)
        slope = np.full(len(tasks), np.nan)
        if math.isfinite(alpha) and alpha > 0:
            with suppress(DataError, SolverError):  # it may have none
                slope = found.sensitivity().alpha.to_numpy()[0] * (1 + alpha) ** 2
        return cls(alpha, found, tasks, slope)


def refined(
    solve: Callable[[float], Found],
    found: list[Found],
    goal: float,
) -> tuple[list[Found], list[float]]:
    """Answers by alpha, sorted, and for each the error of straight lines to the next one, relative in tasks.

    On the axis `t = alpha / (1 + alpha)` log tasks are straight lines between neighbours. Where slopes are known at
    both ends (`Allocation.sensitivity`), the two tangents of a user's tasks meet at one point, and for tasks that bend
    one way they lie between the tangents and the line: the distance there bounds the error, and is exact where all of
    the bend is in one kink. The interval with the largest bound is divided where the tangents of its worst user meet.
    Where a slope is missing (infinity, ties), a certified solve in the middle measures the error.

    `solve` gives the answer at an alpha. Errors above `goal` are left where tasks jump, or after the most solves.
    """
    points = {alpha: _Point.of(alpha, one) for alpha, one in found}
    order = sorted(points)
    # Largest first: error, ends, where to divide. Errors that were measured, and not yet of the parts, are halved.
    heap = [_interval(points[a], points[b], math.inf) for a, b in pairwise(order)]
    heapq.heapify(heap)
    errors: dict[float, float] = {}
    solves = 0
    while heap:
        negative, low, high, middle = heapq.heappop(heap)
        narrow = points[high].at - points[low].at < 1e-4  # tasks jump there
        if -negative <= goal or narrow or solves >= 400:
            errors[low] = -negative
            continue
        solves += 1
        alpha = middle / (1 - middle)
        points[alpha] = _Point.of(*solve(alpha))
        error = _missed(points[low], points[alpha], points[high])
        for a, b in ((low, alpha), (alpha, high)):
            heapq.heappush(heap, _interval(points[a], points[b], error / 2))
    order = sorted(points)
    return [(alpha, points[alpha].found) for alpha in order], [errors.get(alpha, math.nan) for alpha in order]


def _interval(low: _Point, high: _Point, otherwise: float) -> tuple[float, float, float, float]:
    """The bound of an interval (negative), its ends, and where to divide it; `otherwise` where slopes are missing."""
    width = high.at - low.at
    runs = np.isfinite(low.tasks) & np.isfinite(high.tasks)
    rise = (high.tasks[runs] - low.tasks[runs]) / width
    first, last = low.slope[runs], high.slope[runs]
    if np.isnan(first).any() or np.isnan(last).any() or not len(rise):
        return -(otherwise if len(rise) else 0.0), low.alpha, high.alpha, low.at + width / 2
    before, after = rise - first, last - rise  # of one sign where tasks bend one way
    bends = before * after > 0
    part = np.where(bends, after / np.where(before + after == 0, 1.0, before + after), 0.5)
    distance = width * np.where(bends, np.abs(before) * part, np.maximum(np.abs(before), np.abs(after)) / 4)
    worst = int(distance.argmax())
    where = min(max(float(part[worst]), 0.2), 0.8)
    return -float(distance[worst]), low.alpha, high.alpha, low.at + width * where


def _missed(low: _Point, middle: _Point, high: _Point) -> float:
    """By how much the line misses the tasks in between, relatively."""
    t = (middle.at - low.at) / (high.at - low.at)
    runs = np.isfinite(low.tasks) & np.isfinite(high.tasks) & np.isfinite(middle.tasks)
    line = (1 - t) * low.tasks[runs] + t * high.tasks[runs]
    return float(np.abs(middle.tasks[runs] - line).max(initial=0.0))


def curve_of_path(
    cluster: Cluster, mechanism: Mechanism, alphas: Sequence[float], jumps: bool, seconds: float
) -> EquilibriumCurve | None:
    """The curve, if it is asked for; `DataError` if the mechanism has none."""
    if not jumps:
        return None
    if not (isinstance(mechanism, AlphaPFVDS) and mechanism.select in ("fast", "curve")):
        raise DataError(f"{mechanism} has no curve of equilibria: jumps and hysteresis are those of AlphaPFVDS")
    some = [alpha for alpha in alphas if 0 < alpha < np.inf and abs(np.log(alpha)) > 1e-9]
    return equilibrium_curve(cluster, some, seconds=seconds)


def on_curve(
    curve: EquilibriumCurve, mechanism: Mechanism, found: Allocation, alpha: float, place: int, tol: float | None
) -> Allocation:
    """The answer at a crossing (0: first, -1: last), which mostly is `found`."""
    crossings = curve.crossings(alpha)
    if not crossings or not isinstance(mechanism, AlphaPFVDS):
        return found
    there = curve.user_tasks(crossings[place].user_tasks)
    runs = (there > 0) & (found.arrays.user_tasks > 0)
    if np.abs(np.log(there[runs] / found.arrays.user_tasks[runs])).max(initial=0.0) <= 1e-6:
        return found
    return replace(mechanism, alpha=alpha).at_crossing(crossings[place]).solve(curve.cluster, tol)
