"""The least backward error near a place, by a linear program, once it is known which factors are 0.

    minimise  t
    over      |s_p| <= t   (pairs with tasks);     s_p >= -t, their y summed by user and by row <= t   (the others)
              0 <= w_r <= t   (rows with a price);    w_r >= 0   (the others)
              X_n >= q_n (1 - t)   (users at their limits)

t is what the judge measures, so that a place which is far from an answer but the answer of nearly the same data will
do: where equilibria are ill-conditioned that is much nearer. Nothing here is a product of two unknowns: the only terms
of second order are those of logarithms of totals and costs, which change by at most `delta`.

Source: Madsen, "An algorithm for minimax solution of overdetermined systems of non-linear equations" (1975), IMA
Journal of Applied Mathematics 16; Facchinei, Fischer, Herrich, "An LP-Newton method" (2014), Mathematical Programming
146.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._libraries import sp
from .conditions import Conditions, Linear, Place
from .linear_program import solved

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LeastErrorOptions:
    """Which pairs take part, and how far prices may go. Slacks are relative, in tasks."""

    #: Pairs with a larger slack take part only if their part of the user's tasks is above `lost` times what is wrong.
    near: float = 1e-2
    lost: float = 1e-3
    #: A price may rise until the cost of a pair with a slack below `noticed delta` (or `noticed_least`) has changed by
    #: `delta`, but by no more than its `rise`-fold; it may fall until the cost of any pair has, to `1 - fall` at most.
    noticed: float = 100.0
    noticed_least: float = 1e-6
    rise: float = 1.0
    fall: float = 0.9


#: What is used unless a caller says otherwise.
OPTIONS = LeastErrorOptions()


def step(
    conditions: Conditions, at: Place, delta: float, options: LeastErrorOptions = OPTIONS
) -> tuple[Place, float] | None:
    """The place to which the program leads, and its t: what is wrong there, up to second order. `None` without one.

    Pairs are taken to have tasks where their part is above their slack, rows to have a price where it is above what
    idles of them.
    """
    if not np.isfinite(at.error):
        return None
    used, priced = at.part > at.slack, at.weight > at.idle
    model = conditions.linear(at, np.flatnonzero((at.slack < options.near) | (at.part > options.lost * at.error)))
    own = used[model.pairs]
    slack, part, idle = at.slack[model.pairs], at.part[model.pairs], at.idle
    others = sp.diags((~own).astype(float))
    count = len(model.pairs)
    dropped = sp.vstack([model.total[:, :count] @ others, model.use[priced][:, :count] @ others])
    fall, rise = conditions.longest(at, delta)
    # What may be missed by t, and what may not.
    missed = sp.vstack(
        [-model.slack, model.slack[own], -model.use[priced], _wide(dropped, model), -model.total[model.full]]
    )
    lacking = -at.room[model.full]
    right = np.concatenate([slack, -slack[own], -idle[priced], -(dropped @ part), lacking, idle, rise, fall])
    met = sp.vstack([model.use, model.total, -model.total])
    left = sp.bmat([[missed, -np.ones((missed.shape[0], 1))], [met, None]])
    most = _rises(at, model, delta, conditions.scale, options)
    least = -np.minimum(delta, options.fall * at.weight)
    unknowns = model.slack.shape[1]
    found = solved(
        np.append(np.zeros(unknowns), 1.0),
        at_most=(left, right),
        equal=None,
        low=np.concatenate([-part, least, -at.excess[model.full], [0.0]]),
        high=np.concatenate([np.full(count, np.inf), most, np.full(len(model.full) + 1, np.inf)]),
        unit=delta,
    )
    if found is None:
        return None
    return conditions.moved(at, model, found[:-1], 1 - options.fall), float(found[-1])


def _wide(matrix: sp.spmatrix, model: Linear) -> sp.csr_matrix:
    """A matrix over parts as one over all unknowns."""
    return sp.hstack([matrix, sp.csr_matrix((matrix.shape[0], model.slack.shape[1] - matrix.shape[1]))], format="csr")


def _rises(at: Place, model: Linear, delta: float, scale: float, options: LeastErrorOptions) -> Array:
    """(rows,): by how much b may rise."""
    count, rows = len(model.pairs), len(at.log_rows)
    seen = np.flatnonzero(at.slack[model.pairs] < max(options.noticed * delta, options.noticed_least))
    relative = np.zeros(rows)
    if len(seen):  # parts of rows in what these pairs pay, over the largest one of any pair, b
        relative = scale * np.asarray(model.slack[seen][:, count : count + rows].max(axis=0).todense()).ravel()
    with np.errstate(divide="ignore"):
        return np.where(at.weight > 0, np.minimum(delta / relative, options.rise * at.weight), 0.0)
