"""Which of two factors is 0, by a linear program: the bilinear program of complementarity, linearised at a place.

    minimise  sum y_p s_p + sum b_r w_r + sum xi_n v_n     over y, b, xi >= 0 with s, w, v >= 0

is 0 at an answer, up to second order, v being what users lack of their limits. The objective is linearised (Frank and
Wolfe's method), totals and prices move by at most `step` times what is wrong. Where both factors of many products are
the root of a small number (exact ties), or slacks are the same in doubles wherever somebody runs, a vertex says which
of them is 0.

Source: Mangasarian, "The linear complementarity problem as a separable bilinear program" (1995), Journal of Global
Optimization 6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._libraries import sp
from .conditions import Conditions, Place
from .linear_program import solved


@dataclass(frozen=True)
class BilinearOptions:
    """Which pairs take part, and how far a program may go. Slacks are relative, in tasks."""

    #: Pairs with a larger slack take part only if their part of the user's tasks is above `lost` times what is wrong.
    near: float = 3e-2
    lost: float = 1e-3
    #: Totals and parts of rows change by at most this many times what is wrong, and by at most `longest`.
    step: float = 30.0
    longest: float = 0.03
    #: Factors count as between these, in units of what is wrong: the larger ones say enough.
    least: float = 1e-3
    most: float = 1e3
    #: A price falls to this part of itself at most.
    free: float = 1e-9


#: What is used unless a caller says otherwise.
OPTIONS = BilinearOptions()


def step(conditions: Conditions, at: Place, options: BilinearOptions = OPTIONS) -> Place | None:
    """The vertex that the program at a place leads to, or `None`; its unknowns are in units of what is wrong."""
    unit = at.error
    if not 0 < unit < options.longest:
        return None
    pairs = np.flatnonzero((at.slack < options.near) | (at.part > options.lost * unit))
    model = conditions.linear(at, pairs)
    count, rows = len(pairs), len(at.log_rows)
    length = min(options.step * unit, options.longest)
    fall, rise = conditions.longest(at, length)
    priced = np.where(at.weight > 0, length, 0.0)
    slack, idle, excess = at.slack[pairs], at.idle, at.excess[model.full]
    factors = np.concatenate([slack, idle, at.room[model.full], at.part[pairs], at.weight]) / unit
    factors[: count + rows] = np.maximum(factors[: count + rows], options.least)
    factors = np.minimum(factors, options.most)
    # What users at their limit lack of it has a product too, with their excess.
    factors[:count] -= np.minimum(at.excess / unit, options.most)[conditions.polytope.pair_user[pairs]]
    unbounded, kinds = np.full(count, np.inf), count + rows
    found = solved(
        factors,
        at_most=(sp.vstack([model.total, -model.total]), np.concatenate([rise, fall])),
        equal=(
            sp.bmat([[model.slack, -sp.identity(count), None], [-model.use, None, -sp.identity(rows)]]),
            -np.concatenate([slack, idle]),
        ),
        low=np.concatenate([-at.part[pairs], -np.minimum(at.weight, priced), -excess, np.zeros(kinds)]),
        high=np.concatenate([unbounded, priced, np.full(len(excess) + kinds, np.inf)]),
        unit=unit,
    )
    return None if found is None else conditions.moved(at, model, found, options.free)
