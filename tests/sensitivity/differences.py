"""Derivatives against differences of certified solves."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

import fairopt as fo
from fairopt.errors import FairoptError
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.result.sensitivity import Sensitivity

#: Kinds of data and the fields of a cluster that they are.
FIELDS = {"weights": "weight", "demands": "demand", "capacities": "capacity", "max_tasks": "max_tasks"}
STEP = 1e-5
#: Tasks that change by this much over a step have jumped, or the solver has changed equilibria.
JUMP = 1e-2
SAME = 1e-4


@dataclass(frozen=True)
class Compared:
    """One datum: `right`, `wrong`, `noticed` or `missed` (a kink), `careful` (NaN, though there is none), `jump`.

    `near`: right for a step a hundred times smaller, as there is a kink nearer than a step.
    """

    by: str
    of: str
    verdict: str
    error: float


def sensitivity(mechanism: fo.mechanisms.Mechanism, cluster: Cluster) -> Sensitivity:
    """Of a good answer."""
    return mechanism.solve(cluster, 1e-9).sensitivity()


def changed(mechanism: fo.mechanisms.Mechanism, cluster: Cluster, by: str, at: tuple[int, ...], step: float) -> Array:
    """The tasks where one datum is times `exp(step)`, alpha `step` larger."""
    if by == "alpha":
        mechanism = dataclasses.replace(mechanism, alpha=mechanism.alpha + step)  # type: ignore[attr-defined]
    else:
        values = np.array(getattr(cluster, FIELDS[by]))
        values[at] *= np.exp(step)
        cluster = cluster.replace(**{FIELDS[by]: values})
    return mechanism.solve(cluster, 1e-9).arrays.user_tasks


def compared(
    mechanism: fo.mechanisms.Mechanism, cluster: Cluster, rng: np.random.Generator, most: int = 1000
) -> list[Compared]:
    """Every datum of a cluster that can change a little, or so many at random, compared."""
    found = mechanism.solve(cluster, 1e-9)
    runs = found.arrays.user_tasks > 0
    if not runs.any():
        return []
    seen, mine = found.cluster, found.sensitivity()
    values = {by: getattr(seen, field) for by, field in FIELDS.items()}
    if np.isfinite(found.criterion.alpha) and hasattr(mechanism, "alpha"):
        values = {"alpha": np.array([mechanism.alpha])} | values
    every = [(by, at) for by, of in values.items() for at in np.ndindex(of.shape) if 0 < of[at] < np.inf]
    result = []
    for k in rng.permutation(len(every))[:most]:
        by, at = every[k]
        rows = mine.derivatives.rows[by]
        slopes = mine._of_users[rows].reshape(*values[by].shape, -1)[at][runs]
        try:
            verdict = _verdict(slopes, *_sides(mechanism, found, by, at, STEP))
            if verdict[0] in ("wrong", "missed"):  # a kink may be nearer than the step
                sides = _sides(mechanism, found, by, at, STEP / 100)
                verdict = ("near", verdict[1]) if _verdict(slopes, *sides, same=20 * SAME)[0] == "right" else verdict
        except FairoptError:
            continue
        result.append(Compared(by, str(at), *verdict))
    return result


def _sides(
    mechanism: fo.mechanisms.Mechanism, found: fo.Allocation, by: str, at: tuple[int, ...], step: float
) -> list[Array]:
    """Differences of log tasks of those who run, to the right and to the left."""
    base = found.arrays.user_tasks
    ends = [(h, changed(mechanism, found.cluster, by, at, h)) for h in (step, -step)]
    return [np.log(after[base > 0] / base[base > 0]) / h for h, after in ends]


def _verdict(mine: Array, right: Array, left: Array, same: float = SAME) -> tuple[str, float]:
    if max(np.abs(right).max(), np.abs(left).max()) > JUMP / STEP:
        return "jump", np.inf
    size = (1 + np.abs(right) + np.abs(left)) ** 2  # curvature goes with the square of slopes
    smooth = bool((np.abs(right - left) <= 2 * same * size).all())
    known = ~np.isnan(mine)
    off = np.abs(mine - (right + left) / 2) / (1 + np.abs(right))
    error = float(off[known].max(initial=0.0))
    if smooth:
        return ("careful" if not known.all() else "right" if error <= same else "wrong"), error
    either = (np.abs(right - left) <= 2 * same * size) & (off <= same * size)
    return ("noticed" if (either | ~known).all() else "missed"), error
