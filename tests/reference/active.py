"""From a rough answer to a proof: which pairs have tasks, and which rows prices, is guessed and put right.

A root of the equations of a guess (`equations.py`) shows who would buy more and what is used by more than there is:
such pairs and rows come in, what falls below zero goes, a few times. Nothing here is believed: `refuted` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from .conditions import NOTHING, Conditions, Decimals, log, rough_log
from .equations import AT_MOST, Array, EquilibriumSystem, Mask

#: Part of its tasks that a user is given where it lacks some.
LITTLE = Decimal("1e-13")
#: How many guesses are made.
GUESSES = 40


@dataclass(frozen=True)
class Root:
    """Tasks (pairs,), log prices (servers, resources), and the largest relative change a last step makes."""

    tasks: Decimals
    log_prices: Decimals
    step: Decimal


def refined(of: Conditions, near: Array, log_prices: Array) -> Root | None:
    """The root near tasks (users, servers) and log prices; `None` where no guess leads to one."""
    try:
        return _refined(of, EquilibriumSystem(of, near, log_prices))
    except (ArithmeticError, np.linalg.LinAlgError):  # a guess so wrong that numbers have no logarithm
        return None


def _refined(of: Conditions, at_hand: EquilibriumSystem) -> Root | None:
    seen: set[tuple[bytes, bytes]] = set()
    pairs, rows = at_hand.guess()
    while (guess := (pairs.tobytes(), rows.tobytes())) not in seen and len(seen) < GUESSES:
        seen.add(guess)
        step = at_hand.solve(pairs, rows)
        if step is None:
            return None
        if isinstance(step, tuple):
            pairs, rows = step
            continue
        more, over = _violated(of, at_hand, pairs, rows)
        if not more.any() and not over.any():
            prices = np.full(of.shape[1:], NOTHING, dtype=object)
            prices[at_hand.server, at_hand.resource] = log(at_hand.y[: at_hand.count])
            return Root(at_hand.x, prices, step)
        pairs, rows = pairs | more, rows | over
    return None


def _violated(of: Conditions, at: EquilibriumSystem, pairs: Mask, rows: Mask) -> tuple[Mask, Mask]:
    """Pairs that lack tasks and rows that lack a price, at a root: those get a little."""
    price, total = at.price(), of.tasks_of(at.x)
    log_marginal = at.log_marginal()
    dear = rough_log(price) - log_marginal.astype(float)
    more = ~pairs & (dear < -1e-11 * max(float(of.alpha), 1.0))
    idle = (1 - at.x @ at.taken).astype(float)
    over = ~rows & (idle < -9e-17)
    if of.game:
        more &= np.asarray(total < of.limit * (1 - AT_MOST), dtype=bool)[of.user]
    at.x[more] = total[of.user[more]] * LITTLE
    for k in np.flatnonzero(over[: at.count] & np.asarray(at.y[: at.count] == 0, dtype=bool)):
        own = np.flatnonzero(at.use[:, k] > 0)
        at.y[k] = max(price[own] / at.use[own, k]) * Decimal("1e-9")
    return more, over
