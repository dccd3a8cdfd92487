"""Derivatives against differences of certified solves: the tests' and `tools/sensitivity_table.py`'s judge."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import fairopt as fo
from fairopt.errors import FairoptError
from fairopt.model.cluster import Cluster

Array = NDArray[np.float64]
#: Kinds of data and the fields of a cluster that they are.
FIELDS = {"weights": "weight", "demands": "demand", "capacities": "capacity", "max_tasks": "max_tasks"}
STEP = 1e-5
#: Tasks that change by this much over a step have jumped, or the solver has changed equilibria.
JUMP = 1e-2
SAME = 1e-4


@dataclass(frozen=True)
class Compared:
    """One datum: `right`, `wrong`, `noticed` or `missed` (a kink), `careful` (NaN, though there is none), `jump`."""

    by: str
    of: str
    verdict: str
    error: float


def changed(mechanism: fo.mechanisms.Mechanism, cluster: Cluster, by: str, at: tuple[int, ...], step: float) -> Array:
    """The tasks where one datum is times `exp(step)`, alpha `step` larger."""
    if by == "alpha":
        alpha = mechanism.alpha + step  # type: ignore[attr-defined]
        return dataclasses.replace(mechanism, alpha=alpha).solve(cluster, 1e-9).user_tasks
    values = np.array(getattr(cluster, FIELDS[by]))
    values[at] *= np.exp(step)
    return mechanism.solve(cluster.replace(**{FIELDS[by]: values}), 1e-9).user_tasks


def data(
    mechanism: fo.mechanisms.Mechanism, cluster: Cluster, found: fo.Allocation
) -> list[tuple[str, tuple[int, ...]]]:
    """All data of a cluster that can change a little."""
    result: list[tuple[str, tuple[int, ...]]] = []
    if np.isfinite(found.criterion.alpha) and hasattr(mechanism, "alpha"):
        result.append(("alpha", (0,)))
    for by, field in FIELDS.items():
        values = getattr(cluster, field)
        result += [(by, at) for at in np.ndindex(values.shape) if 0 < values[at] < np.inf]
    return result


def compared(
    mechanism: fo.mechanisms.Mechanism, cluster: Cluster, rng: np.random.Generator, most: int = 1000
) -> list[Compared]:
    """Every datum of a cluster, or so many at random, compared."""
    found = mechanism.solve(cluster, 1e-9)
    runs, base = found.user_tasks > 0, found.user_tasks
    if not runs.any():
        return []
    seen, sensitivity = found.cluster, found.sensitivity()
    every = data(mechanism, seen, found)
    result = []
    for k in rng.permutation(len(every))[:most]:
        by, at = every[k]
        values = getattr(sensitivity._of_users, {"alpha": "alpha", "weights": "weight", "demands": "demand",
                                                 "capacities": "capacity", "max_tasks": "limit"}[by])  # fmt: skip
        mine = values[at][runs]
        sides = []
        try:
            for step in (STEP, -STEP):
                sides.append(np.log(changed(mechanism, seen, by, at, step)[runs] / base[runs]) / step)
        except FairoptError:
            continue
        result.append(Compared(by, str(at), *_verdict(mine, sides[0], sides[1])))
    return result


def _verdict(mine: Array, right: Array, left: Array) -> tuple[str, float]:
    if max(np.abs(right).max(), np.abs(left).max()) > JUMP / STEP:
        return "jump", np.inf
    size = (1 + np.abs(right) + np.abs(left)) ** 2  # curvature goes with the square of slopes
    smooth = bool((np.abs(right - left) <= 2 * SAME * size).all())
    known = ~np.isnan(mine)
    off = np.abs(mine - (right + left) / 2) / (1 + np.abs(right))
    error = float(off[known].max(initial=0.0))
    if smooth:
        return ("careful" if not known.all() else "right" if error <= SAME else "wrong"), error
    either = (np.abs(right - left) <= 2 * SAME * size) & (off <= SAME * size)
    return ("noticed" if (either | ~known).all() else "missed"), error
