"""Estimation of alpha from observed tasks, by least squares of log tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import names as _names
from ..base.errors import DataError, NotConverged, SolverError
from ..base.libraries import optimize, pd, special
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model import _validate
from ..model._arrays import Array, Index
from ..model.cluster import Cluster, expected
from ..model.merging import merge
from ..model.polytope import Polytope
from ..result.allocation import Allocation
from .find_alpha import bracketed
from .follower import Followed, Follower
from .stated import limited, runnable, scaled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Finite alphas of the initial grid; infinity is also on the grid.
GRID = tuple(float(alpha) for alpha in np.geomspace(0.05, 1000, 37))
#: `MINIMA`: number of local minima on the grid that are refined. `ACCURACY`: accuracy of log alpha.
MINIMA, ACCURACY = 4, 1e-6
#: `SAME`: largest difference of misfits at which all alphas count as yielding the same tasks. `NEAR`: largest misfit of
#: tasks that count as near the observed tasks.
SAME, NEAR = 1e-3, 0.1


@dataclass(frozen=True, eq=False, repr=False)
class AlphaInferred:
    """Result of `infer_alpha`.

    Attributes
    ----------
    alpha : float
        Estimate of alpha.
    low, high : float
        Ends of the confidence interval of alpha; 0 or infinity if the data do not bound alpha on that side.
    confidence : float
        Coverage probability of the interval, for normal noise of log tasks and a correct model.
    sigma : float
        Estimated standard deviation of log tasks, `sqrt(S / m)`, with S and m of `infer_alpha`.
    overuse : float
        Relative excess of the observed tasks over their largest feasible multiple (negative: unused capacity).
    scale : float
        Common factor between observed and fitted tasks; 1 unless `free_scale`.
    others : tuple of float
        Other local minima outside of the interval, whose misfit is at most the misfit at the ends of the interval.
    mechanism : str
        Title of the family of mechanisms.
    notes : tuple of str
        Remarks, such as alphas that could not be solved.
    threshold : float
        Misfit at the ends of the interval.
    residuals : DataFrame by user
        `observed`, `fitted` (with the common factor), `log_residual`.
    curve : DataFrame by alpha
        `misfit`: the root mean square of log residuals, at every alpha solved.
    allocation : Allocation
        The certified allocation at `alpha`.
    """

    alpha: float
    low: float
    high: float
    confidence: float
    sigma: float
    overuse: float
    scale: float
    others: tuple[float, ...]
    mechanism: str
    notes: tuple[str, ...]
    threshold: float
    residuals: pd.DataFrame = field(repr=False)
    curve: pd.DataFrame = field(repr=False)
    allocation: Allocation = field(repr=False)

    @property
    def flat(self) -> bool:
        """True if the interval of alpha is unbounded on at least one side."""
        return self.low == 0 or math.isinf(self.high)

    def plot(self, *, ax: Any = None) -> Figure:
        """Plot the misfit by alpha with the interval, and fitted against observed tasks, on two axes `ax`."""
        from ..result import plot

        return plot.misfit(self.curve["misfit"], self.residuals, (self.low, self.high), str(self), ax)

    def __str__(self) -> str:
        """Text such as `alpha 2.03 (1.99 to 2.07)`, `alpha at least 8`, `alpha at most 0.3`, `any alpha`.

        If no alpha can be excluded, the text is `any alpha` if all alphas yield the same tasks, near the observed
        tasks, and otherwise states the standard deviation `sigma`.
        """
        if self.low == 0 and math.isinf(self.high):
            same = self.curve["misfit"].max() <= self.curve["misfit"].min() + SAME
            unfit = f"no alpha can be excluded, as tasks are off by {self.sigma:.2g} at best"
            return "any alpha" if same and self.sigma <= NEAR else unfit
        if math.isinf(self.high):
            return f"alpha at least {self.low:.4g}"
        if self.low == 0:
            return f"alpha at most {self.high:.4g}"
        return f"alpha {self.alpha:.4g} ({self.low:.4g} to {self.high:.4g})"

    def __repr__(self) -> str:
        off = f"tasks are off by {self.sigma:.2g} (standard deviation of logarithms)"
        lines = [
            f"{self} of {self.mechanism}, with confidence {self.confidence:g}",
            f"nearest: alpha = {self.alpha:.4g}; {off}",
        ]
        if self.sigma > NEAR:
            lines.reverse()
        if self.others:
            lines.append(f"fits as well: alpha = {', '.join(f'{alpha:.4g}' for alpha in self.others)}")
        return "\n".join([*lines, *self.notes])


def infer_alpha(
    cluster: Cluster,
    tasks: Any,
    mechanism: Followed = AlphaPFVDS,
    *,
    users: Iterable[object] | None = None,
    free_scale: bool = False,
    confidence: float = 0.95,
    overuse: float = 0.25,
    tol: float | None = None,
) -> AlphaInferred:
    r"""Estimate alpha from observed tasks X by least squares, with a confidence interval.

    .. math:: \min_\alpha\ S(\alpha) = \sum_n (\log X_n - \log x_n(\alpha))^2, \qquad
        \alpha \in [0.05, 1000] \cup \{\infty\}

    Parameters
    ----------
    cluster : Cluster
        The cluster on which tasks were observed.
    tasks : (users,)
        X > 0 in tasks, as a list, or a series or dict by user.
    mechanism : type or str
        A class with a parameter `alpha` (`AlphaPFVDS`, `AlphaFair`), or its name.
    users : iterable, optional
        Names of the users to compare, in the order of a list of tasks. Default: all users that can run tasks.
    free_scale : bool
        Compare up to a common factor, for clusters that were partially used.
    confidence : float
        Level of the interval, in (0, 1).
    overuse : float
        Largest relative excess of observed tasks over feasible tasks, due to noise; ignored with `free_scale`.
    tol : float, optional
        Argument of `Mechanism.solve`.

    The interval is `{alpha: S(alpha) <= S_min (1 + t^2/m)}` around the minimum `S_min`, where m is the number of
    compared users minus 1 (minus 2 with `free_scale`) and t the two-sided quantile of Student's distribution with m
    degrees of freedom. If log x is linear in log alpha, the interval extends t standard errors
    `sigma / |d log x / d log alpha|` with `sigma^2 = S_min/m` to both sides; if log x is constant, it is unbounded.
    Local minima are refined from a grid with a ratio of 1.3; minima between neighbours on the grid may be missed.

    Raises
    ------
    DataError
        Tasks are not one finite number > 0 per user, belong to a user that cannot run tasks, or are infeasible by more
        than `overuse`; the mechanism has no parameter alpha; or fewer than two users are compared (three
        with `free_scale`).
    SolverError
        No alpha could be solved. Single failures are reported in `notes`.

    >>> import fairopt as fo
    >>> found = fo.infer_alpha(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), [3.728, 1.757], "alpha-fair")
    >>> round(found.alpha, 1)
    2.0
    """
    cluster = expected(cluster, "observed tasks")
    confidence = _validate.number(confidence, "confidence", "a number between 0 and 1", lambda part: 0 < part < 1)
    overuse = _validate.number(overuse, "overuse", "a number >= 0", lambda part: part >= 0)
    names = None if users is None else tuple(users)
    observed = _validate.per_user(tasks, "tasks", cluster.users, names)
    who = runnable(observed, "tasks", cluster, "its logarithm cannot be compared: leave it out with users=[...]")
    curve = Follower(merge(cluster, users=False).cluster, mechanism, tol)
    misfit = Misfit(curve, who, observed[who], free_scale)
    if misfit.freedom < 1:
        raise DataError(
            f"tasks of {len(who)} users who can run some are too few to infer alpha from; "
            f"give those of at least {2 + int(free_scale)}"
        )
    over = _overuse(curve.cluster, observed, who, math.inf if free_scale else overuse)
    if not any(np.isfinite(misfit(alpha)) for alpha in (*GRID, math.inf)):
        raise SolverError(f"no alpha could be solved for: {next(iter(misfit.failed.values()), 'a user gets no tasks')}")
    alpha, others = minima(misfit)
    # Standard deviations of log tasks below 1e-7 are attributed to the solver.
    least = max(misfit(alpha), misfit.freedom * 1e-7**2)
    quantile = float(special.stdtrit(misfit.freedom, (1 + confidence) / 2))
    threshold = least * (1 + quantile**2 / misfit.freedom)
    low, high = interval(misfit, alpha, threshold)
    merged = len(curve.cluster.servers) < len(cluster.servers)
    allocation = Follower(cluster, mechanism, tol)(alpha) if merged else curve(alpha)
    fitted = allocation.user_tasks.iloc[who] * math.exp(misfit.log_scale(alpha))
    along = {one: math.sqrt(misfit(one) / len(who)) for one in sorted(curve.found)}
    return AlphaInferred(
        alpha=alpha,
        low=low,
        high=high,
        confidence=confidence,
        sigma=math.sqrt(misfit(alpha) / misfit.freedom),
        overuse=over,
        scale=math.exp(misfit.log_scale(alpha)),
        others=tuple(one for one in others if misfit(one) <= threshold and not low <= one <= high),
        mechanism=curve.title,
        notes=_notes(misfit.failed),
        threshold=math.sqrt(threshold / len(who)),
        residuals=pd.DataFrame({"observed": observed[who], "fitted": fitted, "log_residual": misfit.residuals(alpha)}),
        curve=pd.DataFrame({"misfit": along}).rename_axis("alpha"),
        allocation=allocation,
    )


def _overuse(cluster: Cluster, observed: Array, who: Index, most: float) -> float:
    """Relative excess of the tasks of compared users over their largest feasible multiple.

    Raises `DataError` if it exceeds `most`, or if a user exceeds its task limit by more than this fraction.
    """
    limited(observed, cluster, most, "raise its max_tasks, or allow for more overuse")
    polytope = Polytope(cluster.select(users=[cluster.users[n] for n in who]), np.full(len(who), np.inf))
    scale, rows = scaled(polytope, observed[who])
    if 1 / scale - 1 > most:
        least = math.ceil(10 / scale) / 10 - 1
        raise DataError(
            f"the observed tasks are infeasible: they need {1 / scale:.4g} times what there is of "
            f"{_names.some(polytope.named(rows))}; mend demands or capacities, allow for it with "
            f"overuse={least:.1f} or more, or compare up to a common factor with free_scale=True"
        )
    return 1 / scale - 1


def _notes(failed: dict[float, str]) -> tuple[str, ...]:
    if not failed:
        return ()
    which = ", ".join(f"{alpha:.4g}" for alpha in sorted(failed)[:5])
    return (f"{len(failed)} alphas could not be solved for, such as {which}: {next(iter(failed.values()))}",)


def minima(misfit: Misfit) -> tuple[float, list[float]]:
    """Alpha of least misfit, and other candidates in the order of misfit: at most four local minima, and infinity."""
    values = np.array([misfit(alpha) for alpha in GRID])
    values = np.where(np.isnan(values), np.inf, values)
    padded = np.concatenate([[np.inf], values, [np.inf]])
    places = np.flatnonzero(np.isfinite(values) & (values <= padded[:-2]) & (values <= padded[2:]))
    places = places[np.argsort(values[places], kind="stable")][:MINIMA]
    found = [math.inf] if np.isfinite(misfit(math.inf)) else []
    for k in places.tolist():
        ends = math.log(GRID[max(k - 1, 0)]), math.log(GRID[min(k + 1, len(GRID) - 1)])
        refined = optimize.minimize_scalar(
            lambda log_alpha: _number(misfit(math.exp(log_alpha))),
            bounds=ends,
            method="bounded",
            options={"xatol": ACCURACY},
        )
        inside = math.exp(refined.x)
        found.append(inside if misfit(inside) < values[k] else GRID[k])
    found.sort(key=misfit)
    return found[0], found[1:]


def _number(value: float) -> float:
    """Misfit, or a large finite value where no allocation exists, since Brent's method requires finite values."""
    return value if math.isfinite(value) else 1e300


def interval(misfit: Misfit, alpha: float, threshold: float) -> tuple[float, float]:
    """Ends of the interval around alpha in which the misfit is at most the threshold.

    The lower end is 0, and the upper end infinity, if no alpha of the grid on that side exceeds the threshold.
    """

    def crossing(points: list[float], otherwise: float) -> float:
        inside = alpha
        for point in points:
            value = misfit(point)
            if value > threshold and math.isinf(inside):
                return point  # the grid has no alpha between this point and infinity
            if value > threshold and math.isfinite(point):
                return bracketed(lambda a: threshold - _number(misfit(a)), inside, point, ACCURACY)[0]
            if not math.isnan(value):
                inside = point
        return otherwise

    low = crossing([point for point in reversed(GRID) if point < alpha], 0.0)
    return low, alpha if math.isinf(alpha) else crossing([point for point in GRID if point > alpha], math.inf)


class Misfit:
    """Sum of squares `S(alpha) = sum_n (log X_n - log x_n(alpha))^2`, with arrays in the order of `users`.

    Parameters
    ----------
    curve : allocations by alpha
    users : indices of the compared users
    observed : (users,), their observed tasks X > 0
    free_scale : compare up to a common factor of all tasks
    """

    def __init__(self, curve: Follower, users: Index, observed: Array, free_scale: bool) -> None:
        self.curve, self.users, self.free_scale = curve, users, free_scale
        self._log = np.log(observed)
        self.failed: dict[float, str] = {}  # reasons of failed solves, by alpha

    @property
    def freedom(self) -> int:
        """Degrees of freedom: compared users minus fitted parameters (alpha, and possibly the common factor)."""
        return len(self.users) - 1 - int(self.free_scale)

    def log_scale(self, alpha: float) -> float:
        """Log of the common factor between observed and fitted tasks; 0 unless `free_scale`."""
        return float(self._log_ratio(alpha).mean()) if self.free_scale else 0.0

    def residuals(self, alpha: float) -> Array:
        """Residuals `log X_n - log x_n(alpha) - log_scale`, (users,); NaN after a failed solve."""
        return self._log_ratio(alpha) - self.log_scale(alpha)

    def __call__(self, alpha: float) -> float:
        """S(alpha); NaN after a failed solve, infinite if an observed user has no tasks."""
        return float((self.residuals(alpha) ** 2).sum())

    def _log_ratio(self, alpha: float) -> Array:
        if alpha not in self.failed:
            try:
                tasks = self.curve(float(alpha)).arrays.user_tasks[self.users]
                with np.errstate(divide="ignore"):
                    return np.asarray(self._log - np.log(tasks))
            except (SolverError, NotConverged) as error:
                self.failed[alpha] = str(error)
        return np.full(len(self.users), np.nan)
