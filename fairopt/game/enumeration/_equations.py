"""Compiled: the equations of one connected component in its prices (see `_component`), and Newton's method on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._loops import compiled
from ._dense import factored, solved


class Part(NamedTuple):
    """A component. Pairs are in the order of users; the first of a user is the one that its tasks are read off."""

    alpha: float
    user: np.ndarray  # (pairs,), number in the component
    first: np.ndarray  # (users,), pair
    log_use: np.ndarray  # (pairs, rows), log D, -inf where not needed or on another server
    per_task: np.ndarray  # (pairs, rows), D over gamma in units
    gain: np.ndarray  # (pairs,)
    middle: np.ndarray  # (rows,), of the row's server


@compiled
def norms(part, w, log_norm, share):  # type: ignore[no-untyped-def]
    """Fill log norms (pairs,) and the part of each row in what pairs pay."""
    for p in range(len(part.user)):
        top = -np.inf
        for r in range(len(w)):
            top = max(top, part.log_use[p, r] + part.alpha * w[r])
        total = 0.0
        for r in range(len(w)):
            share[p, r] = np.exp(part.log_use[p, r] + part.alpha * w[r] - top)
            total += share[p, r]
        for r in range(len(w)):
            share[p, r] /= total
        log_norm[p] = (top + np.log(total)) / part.alpha


@compiled
def equations(part, basis, w, total, rhs, matrix):  # type: ignore[no-untyped-def]
    """Fill X (users,), minus residuals (rows,) and derivatives by w; the largest residual."""
    pairs, rows = part.log_use.shape
    log_norm, share = np.empty(pairs), np.empty((pairs, rows))
    norms(part, w, log_norm, share)
    for n in range(len(total)):
        total[n] = np.exp(min(part.gain[part.first[n]] - log_norm[part.first[n]], 300.0))
    k = 0
    for p in range(pairs):
        home = part.first[part.user[p]]
        if p != home:
            rhs[k] = -(log_norm[p] - part.gain[p] - log_norm[home] + part.gain[home])
            for r in range(rows):
                matrix[k, r] = share[p, r] - share[home, r]
            k += 1
    for a in range(basis.shape[1]):
        rhs[k] = -basis[:, a].sum()
        matrix[k] = 0.0
        for n in range(len(total)):
            home, each = part.first[n], 0.0
            for r in range(rows):
                each += basis[r, a] * part.per_task[home, r]
            rhs[k] += each * total[n]
            for r in range(rows):
                matrix[k, r] += each * total[n] * share[home, r]
        k += 1
    worst = 0.0
    for a in range(k):
        worst = max(worst, abs(rhs[a]))
    return worst if np.isfinite(worst) else np.inf


@compiled
def newton(part, basis, w, total):  # type: ignore[no-untyped-def]
    """Damped Newton steps of w in place, X (users,) with it; did they reach a solution?

    Where no step helps any more a hundred times the residual will do, and where a pivot is next to none the step is the
    shortest one.
    """
    rows = len(w)
    rhs, matrix, step, order = np.empty(rows), np.empty((rows, rows)), np.empty(rows), np.empty(rows, np.int64)
    residual = equations(part, basis, w, total, rhs, matrix)
    for _ in range(60):
        if residual <= 1e-12:
            return True
        if not np.isfinite(residual) or not np.isfinite(matrix.sum()):
            return False
        whole, right = matrix.copy(), rhs.copy()
        if factored(matrix, order) > 1e-13:
            solved(matrix, order, right, step)
        else:
            step[:] = np.linalg.lstsq(whole, right, 1e-12)[0]
        longest = np.abs(step).max()
        if not np.isfinite(longest):
            return False
        t, moved = min(1.0, 1 / max(longest, 1e-300)), False
        while t > 1e-3:
            trial = w + t * step
            now = equations(part, basis, trial, total, rhs, matrix)
            if now <= (1 - 0.1 * t) * residual:
                w[:], residual, moved = trial, now, True
                break
            t *= 0.4
        if not moved:
            return equations(part, basis, w, total, rhs, matrix) <= 1e-10
    return residual <= 1e-12


@compiled
def bought(part, basis, w, total, weights):  # type: ignore[no-untyped-def]
    """Fill X at w, and `weights[:, a]` with `sum_n y_n X_n` in the a-th column of the basis; (a,)."""
    pairs, rows = part.log_use.shape
    log_norm, share = np.empty(pairs), np.empty((pairs, rows))
    norms(part, w, log_norm, share)
    for n in range(len(total)):
        total[n] = np.exp(min(part.gain[part.first[n]] - log_norm[part.first[n]], 300.0))
    for a in range(basis.shape[1]):
        weights[a] = 0.0
        for n in range(len(total)):
            for r in range(rows):
                weights[a] += basis[r, a] * part.per_task[part.first[n], r] * total[n]
