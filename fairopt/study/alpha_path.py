"""The efficiency-fairness frontier: one allocation per alpha, each started from the one before."""

from __future__ import annotations

import dataclasses
import heapq
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import mechanisms
from ..base.errors import DataError, FairoptError
from ..base.libraries import pd
from ..core.engines.small import Together
from ..game.two_sided import EquilibriumCurve, equilibrium_curve
from ..mechanisms import Mechanism
from ..mechanisms._earlier import OtherAlphas
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
#: An answer, and its alpha.
Found = tuple[float, Allocation]


class _Plot(pd.plotting.PlotAccessor):  # type: ignore[misc]
    """Plot accessor of pandas; until 0.3 a call draws as `draw` does."""

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

    def draw(self, *others: pd.DataFrame | Allocation | str, **options: Any) -> Figure:
        """Utilization, smallest share and Jain's index along alpha, with other paths or allocations: `plot.paths`.

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
        """Plot accessor of pandas."""
        return _Plot(self)


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
) -> AlphaPath:
    """Follow a mechanism with a parameter `alpha` (alphaPF-VDS unless told otherwise) as alpha changes.

    `mechanism=fo.AlphaFair` (or `"alpha-fair"`) follows the global family. `refine=1e-2` adds alphas where tasks bend,
    until between neighbours those of every user are straight lines in `alpha / (1 + alpha)` to 1%; rows are then
    sorted, and `errors` says how straight (above `refine` where tasks jump, or have no answer; docs/sensitivity.md).

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
        took. `allocations` of it are the answers, `tasks` theirs by user, `draw()` draws it. Alphas of a small cluster
        are answered at once, each of which has its part of the seconds; on a larger one every engine that can starts
        from the allocation before, which in the game saves a quarter to a half of the steps of a solve, if neighbouring
        alphas differ by 20%, and nothing if by a factor of 2.5.

    Raises
    ------
    DataError
        Alphas or the mechanism are not such as can be followed, or as `Mechanism.solve`.
    NotConverged, SolverError
        As `Mechanism.solve`; with `throw=False` rows that miss `tol` are flagged in their allocations.
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
        path = as_path(found, follower.title)
    else:
        if not (isinstance(one, AlphaPFVDS) and one.select in ("fast", "curve")):
            raise DataError(f"{one} has no curve of equilibria: jumps and hysteresis are those of AlphaPFVDS")
        some = [alpha for alpha, _ in found if 0 < alpha < np.inf and abs(np.log(alpha)) > 1e-9]
        curve = equilibrium_curve(cluster, some, seconds=seconds)
        path = as_path([(a, on_curve(curve, one, each, a, 0, tol)) for a, each in found], follower.title)
        path.attrs["jumps"], path.attrs["curve"] = curve.jumps(), curve.missing
        if hysteresis:
            back = [(a, on_curve(curve, one, each, a, -1, tol)) for a, each in found]
            path.back = as_path(back, f"{follower.title}, coming back")
    if errors is not None:
        path.errors = pd.Series(errors, index=path.index, name="error")
    return path


class Follower:
    """Answers of one cluster by alpha, each solved for once, from the one before: `found`.

    Where the kernel for small problems takes stacks, `alphas` that are known beforehand are answered at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        mechanism: Followed,
        tol: float | None,
        throw: bool = True,
        alphas: Sequence[float] = (),
    ) -> None:
        self.make, self.title = _family(mechanism)
        self.cluster, self._tol, self._throw = cluster, tol, throw
        self.found: dict[float, Allocation] = {}
        self._last: Allocation | None = None
        self._together = Together(alphas)

    def __call__(self, alpha: float) -> Allocation:
        if alpha not in self.found:
            last = None if self._last is None or self._last.flagged else self._last
            start = None if last is None else OtherAlphas(last, self._together)
            self._last = self.make(alpha).solve(self.cluster, self._tol, throw=self._throw, start=start)
            self.found[alpha] = self._last
        return self.found[alpha]


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


def refined(solve: Callable[[float], Allocation], found: list[Found], goal: float) -> tuple[list[Found], list[float]]:
    """Answers by alpha, sorted, and for each the error of straight lines to the next one, relative in tasks.

    On the axis `t = alpha / (1 + alpha)` log tasks are straight lines between neighbours. A certified solve in the
    middle measures what a line misses, and stays. Where tasks bend one way the lines of both halves miss at most twice
    that, their error here; the interval of the largest is divided next. Errors above `goal` are left where tasks jump,
    where the middle has no answer (infinite if nothing is known), or after the most solves.
    """
    points = dict(found)
    begun = len(points)
    heap = [(-math.inf, *ends) for ends in pairwise(sorted(points))]  # the largest error first
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
        except FairoptError:  # next to alpha = 0, where tasks jump: the rest of the path is worth having
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
    """The answer at a crossing (0: first, -1: last), which mostly is `found`."""
    crossings = curve.crossings(alpha)
    if not crossings:
        return found
    there = curve.user_tasks(crossings[place].user_tasks)
    runs = (there > 0) & (found.arrays.user_tasks > 0)
    if np.abs(np.log(there[runs] / found.arrays.user_tasks[runs])).max(initial=0.0) <= 1e-6:
        return found
    return replace(mechanism, alpha=alpha).at_crossing(crossings[place]).solve(curve.cluster, tol)
