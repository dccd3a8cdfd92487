"""The alpha that explains observed tasks: the one whose answer is nearest to them in logarithms."""

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
from .alpha_path import Followed, Follower
from .find_alpha import bracketed
from .stated import limited, runnable, scaled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: The finite alphas of the first look, a constant factor apart; infinity is looked at too.
GRID = tuple(float(alpha) for alpha in np.geomspace(0.05, 1000, 37))
#: So many local minima of the first look are refined, to this accuracy of log alpha.
MINIMA, ACCURACY = 4, 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class AlphaInferred:
    """Result of `infer_alpha`.

    Attributes
    ----------
    alpha : float
        The answer at this alpha is nearest to the observed tasks.
    low, high : float
        The interval for alpha: 0 and infinity where the data do not bound it.
    confidence : float
        With this probability the interval covers alpha, where the noise is normal in log tasks and the model true.
    sigma : float
        Standard deviation of log tasks that the residuals show, `sqrt(S / freedom)`.
    overuse : float
        By what part the observed tasks exceed what is feasible (negative: so much idles in proportion).
    scale : float
        The common factor of observed tasks and the answer's; 1 unless it was left free.
    others : tuple of float
        Other local minima that fit no worse than the ends of the interval.
    residuals : DataFrame by user
        `observed`, `fitted` (with the common factor), `log_residual`.
    curve : DataFrame by alpha
        `misfit`: `sqrt(S / users)`, the root mean square of log residuals, of every alpha solved for.
    allocation : Allocation
        The certified answer at alpha.
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
        """True if the data leave alpha unbounded on a side."""
        return self.low == 0 or math.isinf(self.high)

    def plot(self, *, ax: Any = None) -> Figure:
        """The misfit along alpha with the interval, and fitted against observed tasks; `ax` are two axes."""
        from ..result import plot

        return plot.misfit(self.curve["misfit"], self.residuals, (self.low, self.high), str(self), ax)

    def __str__(self) -> str:
        """In words: `alpha 2.03 (1.99 to 2.07)`, `alpha at least 8`, `alpha at most 0.3`, `any alpha`."""
        if self.low == 0 and math.isinf(self.high):
            return "any alpha"
        if math.isinf(self.high):
            return f"alpha at least {self.low:.3g}"
        if self.low == 0:
            return f"alpha at most {self.high:.3g}"
        return f"alpha {self.alpha:.4g} ({self.low:.4g} to {self.high:.4g})"

    def __repr__(self) -> str:
        lines = [
            f"{self} of {self.mechanism}, with confidence {self.confidence:g}",
            f"nearest: alpha = {self.alpha:.4g}; tasks are off by {self.sigma:.2g} (standard deviation of logarithms)",
        ]
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
    """The alpha whose answer is nearest to observed tasks X, with an interval.

        minimise  S(alpha) = sum_n (log X_n - log x_n(alpha))^2    over alpha in [0.05, 1000] and infinity

    Parameters
    ----------
    cluster : where tasks were observed
    tasks : (users,), in tasks, or a series or dict by user; > 0
    mechanism : a class with a parameter `alpha` (`AlphaPFVDS`, `AlphaFair`), or its name
    users : the users that are compared, and the names that a list is in the order of; by default all who can run tasks
    free_scale : compare up to a common factor, for clusters of which a part was in use
    confidence : of the interval, in (0, 1)
    overuse : observed tasks may exceed what is feasible by this part (noise does that); not looked at if the scale is
        free
    tol : as in `Mechanism.solve`

    The interval is `{alpha: S(alpha) <= S_min (1 + t^2/m)}` around the minimum, with `m = users - 1` (one less if the
    scale is free) and t Student's quantile: where log x is linear in log alpha these are t standard errors,
    `sigma / |d log x / d log alpha|` with `sigma^2 = S_min/m`; where it is flat the interval is open ("at least").
    Alphas a factor of 1.3 apart are looked at first, then local minima refined: narrower ones may be missed.

    Raises
    ------
    DataError
        Tasks are not one finite number per user, zero, of a user who can run none, or infeasible by more than
        `overuse`: named. The mechanism has no alpha. Fewer than two users are compared (three if the scale is free).
    SolverError
        No alpha could be solved for. Where a few could not, `notes` say so.
    """
    cluster = expected(cluster)
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
        raise SolverError(
            f"no alpha could be solved for: {next(iter(misfit.failed.values()), 'somebody gets nothing')}"
        )
    alpha, others = minima(misfit)
    # Below a standard deviation of 1e-7 differences of log tasks are the solver's.
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
    """Relative overuse of the compared users' tasks."""
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
    """The alpha of the least misfit, and other local minima."""
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
    """Large where there is no answer: Brent's method wants numbers."""
    return value if math.isfinite(value) else 1e300


def interval(misfit: Misfit, alpha: float, threshold: float) -> tuple[float, float]:
    """Interval around alpha in which the misfit stays below the threshold; 0 or infinity where it never exceeds it."""

    def crossing(points: list[float], otherwise: float) -> float:
        inside = alpha
        for point in points:
            value = misfit(point)
            if value > threshold and math.isinf(inside):
                return point  # beyond the largest finite alpha nothing is looked at
            if value > threshold and math.isfinite(point):
                return bracketed(lambda a: threshold - _number(misfit(a)), inside, point, ACCURACY)[0]
            if not math.isnan(value):
                inside = point
        return otherwise

    low = crossing([point for point in reversed(GRID) if point < alpha], 0.0)
    return low, alpha if math.isinf(alpha) else crossing([point for point in GRID if point > alpha], math.inf)


class Misfit:
    """`S(alpha) = sum_n (log X_n - log x_n(alpha))^2` of one observation, arrays in the order of `users`.

    Parameters
    ----------
    users : which of the cluster's users are compared
    observed : their tasks, > 0
    free_scale : compare up to a common factor of all tasks
    """

    def __init__(self, curve: Follower, users: Index, observed: Array, free_scale: bool) -> None:
        self.curve, self.users, self.free_scale = curve, users, free_scale
        self._log = np.log(observed)
        self.failed: dict[float, str] = {}  # alphas without an answer, and why

    @property
    def freedom(self) -> int:
        """Users less what is fitted: alpha, and the common factor if it is free."""
        return len(self.users) - 1 - int(self.free_scale)

    def log_scale(self, alpha: float) -> float:
        """The common factor by which observed tasks exceed the answer's, as a logarithm; 0 unless it is free."""
        return float(self._apart(alpha).mean()) if self.free_scale else 0.0

    def residuals(self, alpha: float) -> Array:
        """`log X_n - log x_n(alpha)`, less the common factor if that is free; NaN where there is no answer."""
        return self._apart(alpha) - self.log_scale(alpha)

    def __call__(self, alpha: float) -> float:
        """S(alpha); NaN where there is no answer, infinite where it gives an observed user nothing."""
        return float((self.residuals(alpha) ** 2).sum())

    def _apart(self, alpha: float) -> Array:
        if alpha not in self.failed:
            try:
                tasks = self.curve(float(alpha)).arrays.user_tasks[self.users]
                with np.errstate(divide="ignore"):
                    return np.asarray(self._log - np.log(tasks))
            except (SolverError, NotConverged) as error:
                self.failed[alpha] = str(error)
        return np.full(len(self.users), np.nan)
