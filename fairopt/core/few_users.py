r"""Welfare and the per-server game at one finite alpha for few users on many servers: an interior point in money.

Unknowns are fractions `f` of monopoly tasks, prices `lambda` of rows (server, resource), and `p`, what a user's last
task is worth. With `W_nk p_n` what a whole server k is worth to n, everything is linear but p:

.. math::

    z_{nk} = \sum_r D_{nkr} \lambda_{kr} - W_{nk} p_n \ge 0 \perp f_{nk} \ge 0, \qquad
    w_{kr} = 1 - \sum_n D_{nkr} f_{nk} \ge 0 \perp \lambda_{kr} \ge 0, \qquad
    x_n = \sum_k u_{nk} f_{nk} = p_n^{-1/\alpha}

With :math:`T = \sqrt{f/z}` Newton's equations are least squares on every server, whose factors are orthogonal: the
columns of :math:`(T D_k; \sqrt{w/\lambda}) = Q_k R_k`, by Gram and Schmidt, for all servers at once. What remains is a
matrix over users

.. math::

    S = diag\Big(h_n + \sum_k T^2 W u\Big) - \sum_r (T u Q_r) (T W Q_r)^T, \qquad h = \frac{x}{\alpha p}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._libraries import lapack

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Steeper marginal utilities are no longer linear enough.
STEEPEST = 10.0
#: Gondzio's correctors of a step.
_CORRECTORS = 2
_STEPS = 100


@dataclass(frozen=True)
class Market:
    """Users and servers; pairs that are not usable have no demand, no worth and no size.

    Attributes
    ----------
    use : (resources, users, servers), D, of whole servers
    log_worth : (users, servers), log of what a whole server is worth at p = 1
    size : (users, servers), u, tasks on a whole server
    alpha : p is user tasks to the power -alpha
    """

    use: Array
    log_worth: Array
    size: Array
    alpha: float


@dataclass(frozen=True)
class Prices:
    """Fractions (users, servers), log prices of rows (resources, servers), log p (users,), idle rows, mu, steps."""

    fraction: Array
    log_row: Array
    log_p: Array
    idle: Array
    mu: float
    error: float
    steps: int


@dataclass
class _Point:
    f: Array
    z: Array
    price: Array
    w: Array
    p: Array

    def after(self, d: _Point, t: float) -> _Point:
        """A part t of a step further, p by its logarithm."""
        p = self.p * np.exp(np.clip(t * d.p / self.p, -2.0, 2.0))
        return _Point(self.f + t * d.f, self.z + t * d.z, self.price + t * d.price, self.w + t * d.w, p)

    def rate(self, d: _Point) -> float:
        """How fast what falls fastest falls."""
        falls = (d.f / self.f, d.z / self.z, d.price / self.price, d.w / self.w)
        return -float(min(each.min() for each in falls))


class _Equations:
    """Newton's equations at a point, factored."""

    def __init__(self, q: Market, worth: Array, on: Mask, at: _Point) -> None:
        self.q, self.worth, self.at = q, worth, at
        self.whole = at.p ** (-1 / q.alpha)
        self.h = self.whole / (q.alpha * at.p)
        self.off_pairs = at.z - np.where(on, self.cost(at.price) - worth * at.p[:, None], 1.0)
        self.off_rows = self.used(at.f) + at.w - 1
        self.off_users = self.whole - self.tasks(at.f)
        self.ratio = np.where(on, at.f / at.z, 0.0)
        self.start = self.ratio * self.off_pairs - at.f
        self.error = 0.0
        root, size, users = np.sqrt(self.ratio), len(q.use), len(at.p)
        self.q_of = np.zeros((size, users + size, at.f.shape[1]))
        self.lower = np.zeros((size, size, at.f.shape[1]))
        for r, column in enumerate(self.q_of):
            np.multiply(root, q.use[r], out=column[:users])
            column[users + r] = np.sqrt(at.w[r] / at.price[r])
            for _ in range(2 if r else 0):  # twice is enough
                for s in range(r):
                    along = np.einsum("nk,nk->k", self.q_of[s], column)
                    self.lower[r, s] += along
                    column -= self.q_of[s] * along
            self.lower[r, r] = np.sqrt(np.einsum("nk,nk->k", column, column))
            column /= self.lower[r, r]
        self.left, self.right = root * q.size, root * worth
        matrix = np.diag(self.h + np.einsum("nk,nk->n", self.left, self.right))
        for one in self.q_of[:, :users]:
            matrix -= (self.left * one) @ (self.right * one).T
        self.scale = 1 / np.abs(matrix).max(axis=1)
        self.factors = lapack.dgetrf(matrix * self.scale[:, None])[:2]

    def cost(self, price: Array) -> Array:
        return np.asarray(np.einsum("rnk,rk->nk", self.q.use, price))

    def used(self, f: Array) -> Array:
        return np.asarray(np.einsum("rnk,nk->rk", self.q.use, f))

    def tasks(self, f: Array) -> Array:
        return np.asarray(np.einsum("nk,nk->n", self.q.size, f))

    def residual(self, weight: Array) -> float:
        """The largest, in parts of users' tasks and of rows."""
        of_users = np.abs(self.off_users) / self.whole
        of_pairs = weight * np.abs(self.off_pairs * self.at.f)
        return float(max(of_pairs.max(), np.abs(self.off_rows).max(), of_users.max()))

    def _once(self, rows: Array, users: Array) -> tuple[Array, Array]:
        """Changes of prices and of p for right-hand sides."""
        own, step, size = self.q_of[:, : len(users)], rows.copy(), len(rows)
        for r in range(size):
            step[r] -= np.einsum("sk,sk->k", self.lower[r, :r], step[:r])
            step[r] /= self.lower[r, r]
        rhs = users + np.einsum("nk,nk->n", self.left, np.einsum("rnk,rk->nk", own, step))
        d_p = lapack.dgetrs(*self.factors, rhs * self.scale)[0]
        step += np.einsum("rnk,nk->rk", own, self.right * d_p[:, None])
        for r in range(size - 1, -1, -1):
            step[r] -= np.einsum("sk,sk->k", self.lower[r + 1 :, r], step[r + 1 :])
            step[r] /= self.lower[r, r]
        return step, d_p

    def direction(self, pairs: Array, rows: Array) -> _Point:
        """The step to products `pairs` and `rows`, up to those of the step itself; refined on the equations."""
        at, start, idle = self.at, pairs / self.at.z, rows / self.at.price - self.at.w
        start += self.start
        d_price, d_p = self._once(self.used(start) + idle + self.off_rows, self.off_users - self.tasks(start))
        before = np.inf
        while True:
            d_z = self.cost(d_price)
            d_z -= self.worth * d_p[:, None]
            d_f = self.ratio * d_z
            np.subtract(start, d_f, out=d_f)
            d_w = idle - at.w / at.price * d_price
            wrong = self.used(d_f) + d_w + self.off_rows
            lacking = self.off_users - self.tasks(d_f) - self.h * d_p
            now = max(float(np.abs(wrong).max()), float((np.abs(lacking) / self.whole).max()))
            if not max(1e-2 * self.error, 1e-12) < now < before / 2:
                d_z -= self.off_pairs
                return _Point(d_f, d_z, d_price, d_w, d_p)
            before, more = now, self._once(wrong, lacking)
            d_price, d_p = d_price + more[0], d_p + more[1]


def solved(q: Market, tol: float) -> Prices:
    """Mehrotra's steps with correctors until products and residuals are below `tol`; the best point of all."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        return _best(q, tol)


def _best(q: Market, tol: float) -> Prices:
    on: Mask = q.size > 0
    present: Mask = np.asarray((q.use > 0).any(axis=1))
    f, log_p = _begun(q, on)
    p = np.exp(log_p)
    # Prices are in units of what the server is worth to the user whom it is worth most, at the start.
    unit = np.where(on, q.log_worth + np.log(p)[:, None], -np.inf).max(axis=0, initial=-700.0)
    worth = np.where(on, np.exp(q.log_worth - unit), 0.0)
    price = np.ones(present.shape)
    z = np.where(on, np.maximum(np.einsum("rnk,rk->nk", q.use, price) - worth * p[:, None], 0.1), 1.0)
    w = np.where(present, np.maximum(1 - np.einsum("rnk,nk->rk", q.use, np.where(on, f, 0.0)), 0.1), 1.0)
    at, count, mu = _Point(np.where(on, f, 1.0), z, price, w, p), int(on.sum() + present.sum()), 1.0
    best: Prices | None = None

    def mean(at: _Point) -> float:
        return float(((at.f * at.z).sum(where=on) + (at.price * at.w).sum(where=present)) / count)

    for steps in range(_STEPS):
        mu = mean(at)
        here = _Equations(q, worth, on, at)
        weight = np.divide(q.size, worth * (at.p * here.whole)[:, None], out=np.zeros_like(f), where=on)
        dearest = at.price.max(axis=0, where=present, initial=0.0)
        idle = np.divide(at.price * at.w, dearest, out=np.zeros_like(w), where=present)
        here.error = error = max(float((weight * at.f * at.z).max()), float(idle.max()), here.residual(weight))
        if best is None or error < best.error:
            log_row = np.where(present, np.log(at.price) + unit, -np.inf)
            best = Prices(np.where(on, at.f, 0.0), log_row, np.log(at.p), at.w, mu, error, steps)
        if error <= tol or not mu > 1e-15 or not np.isfinite(error):
            break
        aim = here.direction(np.where(on, 0.0, 1.0), np.where(present, 0.0, 1.0))
        full = 1 / max(at.rate(aim), 1.0)
        centre = max((mean(at.after(aim, full)) / mu) ** 3, 1e-6, 0.5 * (1 - full) ** 3)
        step = _corrected(here, aim, full, min(centre, 0.5) * mu, on, present)
        length = min(max(0.9, min(1 - mu, 0.9999)) / max(at.rate(step), 1e-300), 1.0)
        at = at.after(step, length)
    assert best is not None
    return best


def _begun(q: Market, on: Mask) -> tuple[Array, Array]:
    """Fractions that follow what servers are worth to users, and log p at their sums."""
    power, log_x, f = max(q.alpha, 1.0), np.log(q.size.sum(axis=1) / len(on)), np.ones(on.shape)
    for _ in range(20):
        value = np.where(on, (q.log_worth - q.alpha * log_x[:, None]) / power, -np.inf)
        part = np.where(on, np.exp(2 * (value - value.max(axis=0, initial=-700.0))), 0.0)
        f = np.where(on, 0.8 * part / np.maximum(part.sum(axis=0), 1e-300), 1.0)
        log_x = (log_x + np.log((q.size * f).sum(axis=1))) / 2
    return np.where(on, np.maximum(f, 0.01 / len(f)), 1.0), -q.alpha * log_x


def _corrected(here: _Equations, aim: _Point, full: float, target: float, on: Mask, present: Mask) -> _Point:
    """The step to products `target`, with second-order terms, and with correctors while these make it longer."""
    at = here.at
    pairs = np.where(on, target - full**2 * aim.f * aim.z, 1.0)
    rows = np.where(present, target - full**2 * aim.price * aim.w, 1.0)
    step = here.direction(pairs, rows)
    rate = at.rate(step)
    for _ in range(_CORRECTORS):
        if rate < 1 / 0.9:
            break
        far = min(1.1 / rate + 0.3, 1.0)
        there = at.after(step, far)
        pairs = pairs + np.where(on, gondzio(there.f * there.z, target), 0.0)
        rows = rows + np.where(present, gondzio(there.price * there.w, target), 0.0)
        tried = here.direction(pairs, rows)
        if (now := at.rate(tried)) > 1 / (1 / rate + 0.01 * (far - 1 / rate)):
            break
        step, rate = tried, now
    return step


def gondzio(products: Array, target: float) -> Array:
    """What brings products back to their neighbourhood, taking away at most its upper end."""
    return np.asarray(np.maximum(np.clip(products, 0.1 * target, 10 * target) - products, -10 * target))
