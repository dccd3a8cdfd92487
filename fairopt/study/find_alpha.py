"""The alpha at which a measure attains a target: a utilization, absolute or relative, or a smallest share."""

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
from .alpha_path import AlphaPath, as_path
from .follower import Followed, Follower

#: Alphas of the initial scan: 17 values with a ratio of 1.5, and infinity.
SCAN = (*(float(alpha) for alpha in np.geomspace(0.1, 64, 17)), math.inf)

#: Relative difference of a measure; smaller differences are attributed to the solver.
_SAME = 1e-6


#: Measures with two properties: whether the target is relative to the largest value by default; and 1 if the measure
#: typically decreases in alpha, so that the largest alpha is sought, or -1 if it typically increases.
MEASURES = {"utilization": (True, 1), "min_share": (False, -1)}


class NotMonotone(UserWarning):
    """A measure is not monotone in alpha, so that it may cross the target at further alphas, which are not found."""


@dataclass(frozen=True)
class AlphaFound:
    """Result of `find_alpha`.

    Attributes
    ----------
    alpha : float
        The alpha found, at which the measure attains the target.
    value : float
        The measure at `alpha`.
    threshold : float
        The target as a value of the measure.
    measure : str
        Name of the measure.
    bracket : (float, float)
        One end is `alpha`; at the other end the measure misses the target. Both ends are `alpha` if it is the last
        alpha of the scan: infinity for utilization, 0.1 for the smallest share.
    allocation : Allocation
        The certified allocation at `alpha`.
    path : AlphaPath
        All alphas that were solved, sorted.
    monotone : bool
        True if the measure decreases (utilization) or increases (smallest share) with alpha in the initial scan.
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
        """One line: alpha, the measure, and the bracket."""
        low, high = self.bracket
        reached = "there is no larger alpha" if math.isinf(low) else "every alpha beyond reaches it"
        ends = reached if low == high else f"between {low:.4g} and {high:.4g}"
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
    r"""Find the largest alpha with a given utilization, or the smallest alpha with a given smallest share.

    .. math:: \max \{\alpha : m(x(\alpha)) \ge T\} \quad \text{or} \quad \min \{\alpha : m(x(\alpha)) \ge T\}

    Parameters
    ----------
    cluster : Cluster
    mechanism : type or str
        A class with a parameter `alpha`, or its name.
    measure : str
        m: `utilization` or `min_share`, a column of `fairopt.compare`.
    target : float
        A number in (0, 1]. For `measure="utilization"` (the mean over resources), T divided by the largest utilization
        from alpha = 0.1 to infinity; for `measure="min_share"`, T itself, a weighted dominant share.
    relative : bool, optional
        Interpret the target relative to the largest value of the measure. Default: True for utilization only.
    tol : float, optional
        Argument of `Mechanism.solve`.
    accuracy : float
        Largest relative width of the bracket, unless its larger end is infinite and its smaller end at least 1024.

    Eighteen alphas from 0.1 to infinity are solved, and then alphas of Brent's method in `log alpha`, between the
    largest alpha that attains the target and the next alpha, which misses it (for `min_share`: between the smallest
    alpha that attains the target and the previous alpha). Every allocation is certified. If the measure is not
    monotone, other solutions may exist, and the warning `NotMonotone` is issued.

    Raises
    ------
    DataError
        No alpha of the scan attains the target, or an argument is invalid.
    NotConverged, SolverError
        A solve fails (`Mechanism.solve`).

    >>> import fairopt as fo
    >>> found = fo.find_alpha(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), "alpha-fair", target=0.62, measure="min_share")
    >>> round(found.alpha, 2), round(found.value, 3)
    (3.41, 0.62)
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
    """Bracket of a root by Brent's method in `log alpha`: two alphas, with `excess >= 0` only at the first.

    The relative difference of the alphas is at most `accuracy`, or the larger alpha is infinite and the smaller at
    least 1024, where allocations hardly differ from the allocation at infinity.
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
        return value or math.ulp(0.0)  # an exact zero would end the search without an alpha that misses the target

    root = optimize.brentq(apart, 0.0, 1.0, xtol=0.9 * accuracy / abs(math.log(bad / good)), rtol=1e-14)
    inside, outside = (
        min((part for part in reach if reach[part] is side), key=lambda part: abs(part - root))
        for side in (True, False)
    )
    return alpha(inside), alpha(outside)
