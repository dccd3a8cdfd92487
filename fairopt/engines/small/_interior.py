"""Compiled: the conditions of `_conditions` solved by a primal-dual interior point.

Products `z s` and `v w` (v in units of where it began) go to mu, and mu to 0, by Newton steps with Mehrotra's predictor
and corrector (SIAM J. Optim. 1992). The game is not monotone and its products may grow: a search keeps the residuals
from it, and there are several attempts with other `Tuning`. Ends are refined (`active_set_refined`). Nothing is
believed: the compiled certificate ends a run.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._backward import backward_error
from ._conditions import allocation, conditions, log_prices, softened, totals
from ._refinement import active_set_refined
from ._scaled import infeasibility
from ._steps import Tuning, begin, mean, prices, stepped

#: mu below which certificates are computed, below which ends are refined, and again after so much less.
_LOOK, _REFINE_BELOW, _RETRY_PART = 1e-8, 1e-8, 1e-2
#: Looks that do not make the error smaller end a run.
_PATIENCE = 5

#: Attempts in turn: nearly all problems are solved by the first.
_ATTEMPTS = (
    Tuning(0.95, 1e9, 0.0, 1.0, 1e-4, 4.0, 60, np.inf),
    Tuning(0.99, 1e9, 4.0, 1.0, 1e-4, 1.0, 60, np.inf),
    Tuning(0.9, 0.5, 0.0, 1.0, 0.0, np.inf, 80, np.inf),
    Tuning(0.9, 1e9, 0.0, 1.0, 1e-4, 4.0, 80, 1.0),
    Tuning(0.95, 1e9, 0.0, 1.0, 0.0, 4.0, 80, np.inf),
    Tuning(0.7, 0.2, 0.0, 0.1, 0.0, 1.0, 150, np.inf),
)


@compiled
def _run(q, c, tuning, most, aim, best, tasks, log_rows):  # type: ignore[no-untyped-def]
    """One attempt: fills tasks and prices where it finds a certificate below `best`; the least, and how many steps."""
    at = begin(q, c, tuning.power)
    x, share, slack = np.zeros(len(q.demand)), np.empty(c.at.shape), np.empty(len(at.z))
    found, hint = np.empty(q.gamma.shape), np.empty(q.capacity.shape)
    last, refine_below, waited = np.inf, _REFINE_BELOW, 0
    steps = 0
    for _ in range(min(tuning.most, most)):
        steps += 1
        mu = mean(at)
        now = softened(c, min(c.power, max(tuning.soft / mu, 1.0)))
        if mu < _LOOK and now.norm == c.power:
            totals(c, at.z, x)
            kept = at.z.copy()
            for p in range(len(kept)):
                part = c.size[p] * kept[p] / x[c.user[p]]
                if part < at.s[p] and part < 1e-6:
                    kept[p] = 0.0
            allocation(q, c, kept, found)
            level = prices(at)
            log_prices(c, level, hint)
            error = max(backward_error(q, found, hint), infeasibility(q, found))
            if error < best:
                best, tasks[:], log_rows[:] = error, found, hint
            if best > aim and error > 0.1 * last and mu < refine_below:
                refine_below = _RETRY_PART * mu
                better = active_set_refined(q, c, at.z, at.s, level, at.w, at.unit, aim, found, hint)
                if better < best:
                    best, tasks[:], log_rows[:] = better, found, hint
            waited = 0 if error < 0.9 * last else waited + 1
            last = error
            if best <= aim or waited > _PATIENCE:
                break
        at, t = stepped(now, at, mu, tuning, x, share, slack)
        if t < 1e-10 or not np.isfinite(t):
            break
    return best, steps


@compiled
def equilibrium(q, tol, aim, most, tasks, log_rows):  # type: ignore[no-untyped-def]
    """Fill tasks (users, servers) and log prices of whole capacities; returns the certificate, infinite for none.

    And the number of steps. A run goes on to `aim`; above `tol` there is another, of `most` steps in all.
    """
    tasks[:], log_rows[:] = 0.0, -np.inf
    c = conditions(q)
    if not len(c.user):
        return 0.0, 0
    best, steps = np.inf, 0
    for tuning in _ATTEMPTS:
        best, more = _run(q, c, tuning, most - steps, aim, best, tasks, log_rows)
        steps += more
        if best <= tol or steps >= most:
            break
    return best, steps
