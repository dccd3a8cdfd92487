"""The alpha that gives enough: a utilization, or a part of the largest, or a smallest share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..base.errors import DataError
from ..base.libraries import optimize
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model import _validate
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from .alpha_path import AlphaPath, Followed, Follower, as_path

#: What is looked at first: 17 alphas towards max-min, neighbours a factor of 1.5 apart, and infinity.
SCAN = (*(float(alpha) for alpha in np.geomspace(0.1, 64, 17)), math.inf)

#: Differences of a measure below this are the solver's, not alpha's.
_SAME = 1e-6


#: Measures that can be aimed at: does the target count in parts of the largest value by default, and does the measure
#: fall as alpha rises (1), so that the last alpha that reaches it is wanted, or as alpha falls (-1)?
MEASURES = {"utilization": (True, 1), "min_share": (False, -1)}


class NotMonotone(UserWarning):
    """A measure both rises and falls with alpha: the alpha found is one of several where it crosses the target."""


@dataclass(frozen=True)
class AlphaFound:
    """Result of `find_alpha`.

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

    Eighteen alphas from 0.1 to infinity are solved for, then the ones that Brent's method in `log alpha` asks for
    between the last that reaches the target and its neighbour that misses it (for the smallest share, the first).
    Every solve is certified. Nothing is known of alphas between those: where the measure is not monotone there may be
    others, and a warning `NotMonotone` says so.

    Raises
    ------
    DataError
        No alpha looked at reaches the target; arguments are wrong.
    NotConverged, SolverError
        As `Mechanism.solve`: no answer is taken that misses its tolerance.
    """
    if measure not in MEASURES:
        raise DataError(f"measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    target, accuracy = (
        _validate.number(given, name, "a number > 0 and at most 1", lambda part: 0 < part <= 1)
        for name, given in (("target", target), ("accuracy", accuracy))
    )
    by_default, way = MEASURES[measure]
    scan = SCAN[::way]
    relative = by_default if relative is None else relative
    follower = Follower(cluster, mechanism, tol)

    def value(alpha: float) -> float:
        return float(follower(alpha).summary([measure])[measure])

    values = np.array([value(alpha) for alpha in scan])
    threshold = target * float(values.max()) if relative else target
    reached = values >= threshold - _SAME * abs(threshold)
    if not reached.any():
        best = int(values.argmax())
        raise DataError(
            f"no alpha from {SCAN[0]:g} to infinity reaches {measure} {threshold:.6g}; "
            f"the largest is {values[best]:.6g}, at alpha = {scan[best]:g}"
        )
    monotone = bool((np.diff(values) <= _SAME * np.abs(values).max()).all())
    k = int(np.flatnonzero(reached)[-1])
    good = bad = scan[k]
    if k + 1 < len(scan):
        good, bad = bracketed(lambda alpha: value(alpha) - threshold, good, scan[k + 1], accuracy)
    if not monotone:
        warnings.warn(
            f"{measure} both rises and falls with alpha on this cluster: alpha = {good:g} is the "
            f"{'largest' if way == 1 else 'smallest'} that was found to reach {threshold:.6g}, others nearer to "
            "the middle may miss it (see path)",
            NotMonotone,
            stacklevel=2,
        )
    path = as_path(sorted(follower.found.items()), follower.title)
    bracket = (min(good, bad), max(good, bad))
    return AlphaFound(good, value(good), threshold, measure, bracket, follower(good), path, monotone)


def bracketed(excess: Callable[[float], float], good: float, bad: float, accuracy: float) -> tuple[float, float]:
    """Two alphas close to each other, `excess >= 0` at the first alone: by Brent's method in `log alpha`.

    They differ by the part `accuracy` at most, or the larger is infinite and the other beyond 1024, where answers
    hardly differ from those at infinity. Every alpha given has been, or is now, solved for.
    """
    while math.isinf(max(good, bad)) and (low := min(good, bad)) < 1024:
        good, bad = (2 * low, bad) if excess(2 * low) >= 0 else (good, 2 * low)
    if math.isinf(max(good, bad)):
        return good, bad
    reach: dict[float, bool] = {}

    def alpha(part: float) -> float:
        return float(good ** (1 - part) * bad**part)

    def apart(part: float) -> float:
        value = excess(alpha(part))
        reach[part] = value >= 0
        return value or math.ulp(0.0)  # what just reaches it is no reason to stop

    root = optimize.brentq(apart, 0.0, 1.0, xtol=0.9 * accuracy / abs(math.log(bad / good)), rtol=1e-14)
    inside, outside = (
        min((part for part in reach if reach[part] is side), key=lambda part: abs(part - root))
        for side in (True, False)
    )
    return alpha(inside), alpha(outside)
