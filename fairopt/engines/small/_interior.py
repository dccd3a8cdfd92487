"""Compiled: the conditions of `_conditions` solved by a primal-dual interior point.

Products `z s` and `v w` (v in units of where it began) go to mu, and mu to 0, by Newton steps with Mehrotra's predictor
and corrector (SIAM J. Optim. 1992). The game is not monotone and its products may grow: a search keeps the residuals
from it, and there are several attempts with other `options.Tuning`. Ends are refined (`active_set_refined`). Nothing is
believed: the compiled certificate ends a run.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._backward import backward_error
from ._conditions import allocation, conditions, log_prices, softened, totals
from ._refinement import active_set_refined
from ._scaled import infeasibility
from ._steps import begin, mean, prices, stepped
from .options import INTERIOR


@compiled
def _run(q, c, tuning, most, aim, best, tasks, log_rows):  # type: ignore[no-untyped-def]
    """One attempt: fills tasks and prices where it finds a certificate below `best`; the least, and how many steps."""
    at = begin(q, c, tuning.power)
    x, share, slack = np.zeros(len(q.demand)), np.empty(c.at.shape), np.empty(len(at.z))
    found, hint = np.empty(q.gamma.shape), np.empty(q.capacity.shape)
    last, refine_below, waited = np.inf, INTERIOR.refine, 0
    steps = 0
    for _ in range(min(tuning.most, most)):
        steps += 1
        mu = mean(at)
        now = softened(c, min(c.power, max(tuning.soft / mu, 1.0)))
        if mu < INTERIOR.look and now.norm == c.power:
            totals(c, at.z, x)
            kept = at.z.copy()
            for p in range(len(kept)):
                part = c.size[p] * kept[p] / x[c.user[p]]
                if part < at.s[p] and part < INTERIOR.stray:
                    kept[p] = 0.0
            allocation(q, c, kept, found)
            level = prices(at)
            log_prices(c, level, hint)
            error = max(backward_error(q, found, hint), infeasibility(q, found))
            if error < best:
                best, tasks[:], log_rows[:] = error, found, hint
            if best > aim and error > INTERIOR.slow * last and mu < refine_below:
                refine_below = INTERIOR.again * mu
                better = active_set_refined(q, c, at.z, at.s, level, at.w, at.unit, aim, found, hint)
                if better < best:
                    best, tasks[:], log_rows[:] = better, found, hint
            waited = 0 if error < INTERIOR.better * last else waited + 1
            last = error
            if best <= aim or waited > INTERIOR.patience:
                break
        at, t = stepped(now, at, mu, tuning, x, share, slack)
        if t < INTERIOR.shortest or not np.isfinite(t):
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
    for tuning in INTERIOR.attempts:
        best, more = _run(q, c, tuning, most - steps, aim, best, tasks, log_rows)
        steps += more
        if best <= tol or steps >= most:
            break
    return best, steps
