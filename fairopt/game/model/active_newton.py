"""Newton's method on the equations of an active set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp, sparse_linalg
from ...engines.linalg.damped_newton import DampingOptions, damped_newton
from .active_set import ActiveSet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NewtonOptions:
    """How equations are solved."""

    #: The multiple of the identity that makes up for splits and prices that are not unique (sparse matrices).
    regular: float = 1e-10
    #: Steps of refinement that take it out again.
    refinements: int = 2
    #: Singular values below this part of the largest are ties (dense least squares).
    tie: float = 1e-11
    #: The residual at which it ends; one of up to `rounding` times this will do where no step helps any more.
    target: float = 1e-13
    rounding: float = 100.0
    #: Most steps.
    steps: int = 40
    #: No user loses more than this part of its tasks in a step,
    fall: float = 0.9
    #: and no log price changes by more than this.
    stride: float = 3.0
    damping: DampingOptions = DampingOptions(shortest=1e-4)


OPTIONS = NewtonOptions()


def step(
    active: ActiveSet, z: Array, rhs: Array, alpha: float | None = None, options: NewtonOptions = OPTIONS
) -> Array | None:
    """The z' (unknowns,) of `J z' = rhs`, the shortest in relative tasks where there are many; None for none.

    Dense matrices by least squares; sparse ones by factors of a regularised matrix, and refinement.
    """
    matrix, scale = active.jacobian(z, alpha), active.scale(z, alpha)
    try:
        if isinstance(matrix, np.ndarray):
            found = scale * np.linalg.lstsq(matrix * scale, rhs, options.tie)[0]
        else:
            found = scale * _refined((matrix @ sp.diags(scale)).tocsc(), rhs, len(active.pairs), options)
    except (np.linalg.LinAlgError, RuntimeError, MemoryError):
        return None
    return found if np.isfinite(found).all() else None


def _refined(matrix: sp.csc_matrix, rhs: Array, pairs: int, options: NewtonOptions) -> Array:
    size = np.where(np.arange(matrix.shape[0]) < pairs, options.regular, -options.regular)
    factors = sparse_linalg.splu((matrix + sp.diags(size)).tocsc())
    found = factors.solve(rhs)
    for _ in range(options.refinements):
        found = found + factors.solve(rhs - matrix @ found)
    return np.asarray(found)


def newton(active: ActiveSet, z: Array, alpha: float | None = None, options: NewtonOptions = OPTIONS) -> Array | None:
    """A solution of the equations near z, by damped steps; None where it fails. Signs are not looked at."""
    newest = z

    def norm(at: Array) -> float:
        found = float(np.abs(active.residual(at, alpha)).max(initial=0.0))
        return found if np.isfinite(found) else float("inf")

    def longest(change: Array) -> float:
        falls, here = -active.totals(change), active.totals(newest)
        room = float((options.fall * here[falls > 0] / falls[falls > 0]).min(initial=1.0))
        return min(1.0, room, options.stride / max(float(np.abs(active.split(change)[1]).max(initial=0.0)), 1e-300))

    def step_at(at: Array) -> Array | None:
        nonlocal newest
        newest = at
        return step(active, at, -active.residual(at, alpha), alpha, options)

    with np.errstate(all="ignore"):
        found = damped_newton(
            z,
            lambda at: norm(at) <= options.target,
            step_at,
            lambda at, change, t: at + t * change,
            norm,
            options.steps,
            options.damping,
            longest,
        ).here
        if found is None and norm(newest) <= options.rounding * options.target:
            return newest
    return found
