"""A path of alphaPF-VDS over alpha as a curve: every answer the first on it, or the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import DataError
from ..game.curve.two_sided import EquilibriumCurve, equilibrium_curve
from ..mechanisms import Mechanism
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..model.cluster import Cluster
from ..result.allocation import Allocation

#: Tasks that differ by less than this part are the same.
_SAME = 1e-6


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
    runs = (there > 0) & (found.user_tasks > 0)
    if np.abs(np.log(there[runs] / found.user_tasks[runs])).max(initial=0.0) <= _SAME:
        return found
    return replace(mechanism, alpha=alpha).at_crossing(crossings[place]).solve(curve.cluster, tol)
