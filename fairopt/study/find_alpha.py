"""The alpha that gives enough: a utilization, or a part of the largest, or a smallest share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..errors import DataError, SolverError
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model import _validate
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from .alpha_path import AlphaPath, Followed, Follower, as_path

#: What is looked at first: 17 alphas towards max-min, neighbours a factor of 1.5 apart, and infinity.
SCAN = (*(float(alpha) for alpha in np.geomspace(0.1, 64, 17)), math.inf)

#: Differences of a measure below this are the solver's, not alpha's.
_SAME = 1e-6


#: Measures that can be aimed at: does the target count in parts of the largest value by default, and which of the
#: alphas that reach it is wanted, the last (fairest) or the first?
MEASURES = {"utilization": (True, "last"), "min_share": (False, "first")}


class NotMonotone(UserWarning):
    """A measure both rises and falls with alpha: the alpha found is one of several where it crosses the target."""


@dataclass(frozen=True)
class AlphaFound:
    """What `find_alpha` found.

    Attributes
    ----------
    alpha : float
        It reaches the target.
    value, threshold : float
        The measure there, and what it had to reach.
    bracket : (float, float)
        `alpha` is one end; the other misses the target. Both ends are `alpha` where every alpha beyond reaches it.
    allocation : Allocation
        The certified answer at `alpha`.
    path : AlphaPath
        Every alpha that was solved for, sorted.
    monotone : bool
        Did the measure only fall (utilization) or only rise (smallest share) with alpha, where it was looked at?
    """

    alpha: float
    value: float
    threshold: float
    measure: str
    bracket: tuple[float, float]
    allocation: Allocation = field(repr=False)
    path: AlphaPath = field(repr=False)
    monotone: bool = True

    def __str__(self) -> str:
        """One line: alpha, what it reaches, and the bracket."""
        low, high = self.bracket
        ends = "every alpha beyond reaches it" if low == high else f"between {low:.4g} and {high:.4g}"
        return f"alpha = {self.alpha:.4g}: {self.measure} {self.value:.4g}, asked for {self.threshold:.4g} ({ends})"


def find_alpha(
    cluster: Cluster,
    mechanism: Followed = AlphaPFVDS,
    *,
    target: float,
    measure: str = "utilization",
    relative: bool | None = None,
    tol: float | None = None,
    accuracy: float = 1e-3,
) -> AlphaFound:
    """The largest alpha with a utilization, or a part of the largest, or the least with a smallest share.

    Parameters
    ----------
    cluster : what is shared, and among whom
    mechanism : a class with a parameter `alpha`, or its name
    measure : `utilization` or `min_share`, a column of `fairopt.compare`
    target : in (0, 1]
        with `measure="utilization"` (the mean over resources) a part of the largest utilization found from alpha = 0.1
        to infinity; with `measure="min_share"` the smallest weighted dominant share itself
    relative : is the target a part of the measure's largest value (True), or that value itself (False)? By default True
        of utilization alone
    tol : as in `Mechanism.solve`
    accuracy : the ends of the bracket differ by this part of alpha at most, or the larger is infinite and the other
        beyond 1024

    Eighteen alphas from 0.1 to infinity are solved for, then the ones that Newton's method in `log alpha` asks for,
    kept within the bracket of the last that reaches the target and its neighbour that misses it (for the smallest
    share, the first), and bisection where the measure has no slope. Every solve
    is certified. Nothing is known of alphas between those: where the measure is not monotone there may be others, and a
    warning `NotMonotone` says so.

    Raises
    ------
    DataError
        No alpha looked at reaches the target; arguments are wrong.
    NotConverged, SolverError
        As `Mechanism.solve`: no answer is taken that misses its tolerance.
    """
    if measure not in MEASURES:
        raise DataError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    wanted = "a number > 0 and at most 1"
    target, accuracy = _validate.number(target, "target", wanted), _validate.number(accuracy, "accuracy", wanted)
    for name, given in (("target", target), ("accuracy", accuracy)):
        if not 0 < given <= 1:
            raise DataError(f"{name} is {given:g}; it must be {wanted}")
    by_default, side = MEASURES[measure]
    relative = by_default if relative is None else relative
    follower = Follower(cluster, mechanism, tol)
    found: dict[float, Allocation] = {}

    def value(alpha: float) -> float:
        if alpha not in found:
            found[alpha] = follower(alpha)[1]
        return float(found[alpha].summary([measure])[measure])

    def slope(alpha: float) -> float:
        """Of the measure, by alpha; NaN where there is none."""
        try:
            return found[alpha].sensitivity().measure_by_alpha(measure)
        except (DataError, SolverError):
            return math.nan

    values = np.array([value(alpha) for alpha in SCAN])
    threshold = target * float(values.max()) if relative else target
    reached = values >= threshold - _SAME * abs(threshold)
    if not reached.any():
        best = int(values.argmax())
        raise DataError(
            f"no alpha from {SCAN[0]:g} to infinity reaches {measure} {threshold:.6g}; "
            f"the largest is {values[best]:.6g}, at alpha = {SCAN[best]:g}"
        )
    steps = np.diff(values) if side == "first" else -np.diff(values)
    monotone = bool((steps >= -_SAME * np.abs(values).max()).all())
    k = int(np.flatnonzero(reached)[-1 if side == "last" else 0])
    beyond = k + (1 if side == "last" else -1)
    good = bad = SCAN[k]
    if 0 <= beyond < len(SCAN):
        good, bad = bracketed(lambda alpha: value(alpha) - threshold, slope, SCAN[k], SCAN[beyond], accuracy)
    if not monotone:
        warnings.warn(
            f"{measure} both rises and falls with alpha on this cluster: alpha = {good:g} is the "
            f"{'largest' if side == 'last' else 'smallest'} that was found to reach {threshold:.6g}, others nearer to "
            "the middle may miss it (see path)",
            NotMonotone,
            stacklevel=2,
        )
    path = as_path([(alpha, found[alpha]) for alpha in sorted(found)], follower.title)
    bracket = (min(good, bad), max(good, bad))
    return AlphaFound(good, value(good), threshold, measure, bracket, found[good], path, monotone)


def bracketed(
    excess: Callable[[float], float], slope: Callable[[float], float], good: float, bad: float, accuracy: float
) -> tuple[float, float]:
    """Two alphas close to each other, `excess >= 0` at the first alone: Newton's method within a bracket.

    `slope` is that of the excess by alpha, NaN where it is unknown. A step goes a little beyond where the tangent
    reaches 0, so that the other end comes near as well; one that leaves the bracket, or two that do not halve it, are
    followed by bisection. Every alpha given has been, or is now, solved for.
    """
    ends, slow = {good: excess(good), bad: excess(bad)}, 0
    while True:
        low, high = min(good, bad), max(good, bad)
        # Beyond this alpha answers hardly differ from those at infinity.
        if high <= low * (1 + accuracy) or (math.isinf(high) and low >= 1024.0):
            return good, bad
        middle = 2 * low if math.isinf(high) else math.sqrt(low * high)
        tangent = math.nan if math.isinf(high) or slow > 1 else _beyond(ends, slope, low, high, accuracy)
        alpha = middle if math.isnan(tangent) else tangent
        ends[alpha] = excess(alpha)
        width = math.log(high / low) if math.isfinite(high) else math.inf
        good, bad = (alpha, bad) if ends[alpha] >= 0 else (good, alpha)
        left = math.log(max(good, bad) / min(good, bad))
        slow = slow + 1 if left > width / 2 and alpha != middle else 0


def _beyond(
    ends: dict[float, float], slope: Callable[[float], float], low: float, high: float, accuracy: float
) -> float:
    """Where the tangent of the nearer end reaches 0, and less than half of `accuracy` further; NaN outside."""
    near, far = sorted((low, high), key=lambda alpha: abs(ends[alpha]))
    rise = near * slope(near)  # by log alpha
    if not abs(ends[near]) < abs(rise) * math.log(high / low):  # a flat slope leads out of the bracket, NaN nowhere
        return math.nan
    step = -ends[near] / rise
    alpha = near * math.exp(step + math.copysign(0.4 * accuracy, math.log(far / near)))
    return alpha if low < alpha < high else math.nan
