"""Derivatives against differences of certified solves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import fairopt as fo
from fairopt.errors import FairoptError
from fairopt.model._arrays import Array
from fairopt.model.cluster import Cluster
from fairopt.result.sensitivity import Sensitivity

#: Kinds of data; by alpha where there is one.
KINDS = ("weights", "demands", "capacities", "max_tasks")
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


def compared(
    mechanism: fo.mechanisms.Mechanism, cluster: Cluster, rng: np.random.Generator, most: int = 1000
) -> list[Compared]:
    """Every datum of a cluster that can change a little, or so many at random, compared."""
    found = mechanism.solve(cluster, 1e-9)
    runs = found.arrays.user_tasks > 0
    if not runs.any():
        return []
    mine = found.sensitivity()
    kinds = ("alpha", *KINDS) if mine.derivatives.finite and hasattr(mechanism, "alpha") else KINDS
    rows = {by: mine.derivatives.rows[by] for by in kinds}
    every = [(by, k) for by in kinds for k in np.flatnonzero(mine._there[rows[by]]).tolist()]
    result = []
    for each in rng.permutation(len(every))[:most]:
        by, k = every[each]
        slopes = mine._of_users[rows[by]][k, runs]
        try:
            verdict = _verdict(slopes, *_sides(mine, by, k, STEP))
            if verdict[0] in ("wrong", "missed"):  # a kink may be nearer than the step
                sides = _sides(mine, by, k, STEP / 100)
                verdict = ("near", verdict[1]) if _verdict(slopes, *sides, same=20 * SAME)[0] == "right" else verdict
        except FairoptError:
            continue
        result.append(Compared(by, str(k), *verdict))
    return result


def _sides(found: Sensitivity, by: str, k: int, step: float) -> list[Array]:
    """Differences of log tasks of those who run, to the right and to the left."""
    assert found.solve is not None
    base = found.answer.arrays.user_tasks
    return [np.log(found.solve(by, k, h)[base > 0] / base[base > 0]) / h for h in (step, -step)]


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
