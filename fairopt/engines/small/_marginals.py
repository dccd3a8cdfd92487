"""Compiled: what tasks are worth and what they cost, in logarithms, as in `certificates.backward`."""

from __future__ import annotations

import numpy as np

from ..._loops import compiled


@compiled
def log_marginals(q, totals, result):  # type: ignore[no-untyped-def]
    """Fill `result` (users, servers) with `alpha log phi + (1 - alpha) log u - alpha log x_n`; u (users, servers)."""
    for n in range(len(totals)):
        for i in range(q.share.shape[1]):
            own = q.alpha * np.log(q.weight[n]) - q.alpha * np.log(totals[n])
            result[n, i] = own + (0.0 if q.alpha == 1 else (1 - q.alpha) * np.log(q.share[n, i]))


@compiled
def log_prices_per_task(q, log_rows, live, result):  # type: ignore[no-untyped-def]
    """Fill `result` (users, servers) with `log sum_r lambda_ir d_nr`; -inf where nothing has a price."""
    resources = q.use.shape[2]
    for n in range(len(q.gamma)):
        for i in range(q.gamma.shape[1]):
            result[n, i] = -np.inf
            if q.gamma[n, i] <= 0:
                continue
            top = -np.inf
            for r in range(resources):
                if live[i, r] and q.use[n, i, r] > 0:
                    top = max(top, np.log(q.use[n, i, r]) + log_rows[i, r])
            if top == -np.inf:
                continue
            total = 0.0
            for r in range(resources):
                if live[i, r] and q.use[n, i, r] > 0:
                    total += np.exp(np.log(q.use[n, i, r]) + log_rows[i, r] - top)
            result[n, i] = top + np.log(total) - np.log(q.gamma[n, i])
