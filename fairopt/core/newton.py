"""Newton's step of the interior point: pairs that hardly count are eliminated, the rest is solved by LAPACK."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .system import Stack

if TYPE_CHECKING:
    from .interior import Measured, State

Array = NDArray[np.float64]
KEEP = 100.0


class Direction(NamedTuple):
    """Relative changes of fractions, prices and prices of limits; changes of what complements them."""

    a: Array  # (N, K, B)
    b: Array  # (R, K, B)
    n: Array | None  # (N, B)
    s: Array
    w: Array
    left: Array | None


class System:
    r"""The linear system at a state.

    .. math::

        s_p a_p + \rho \sum_{j \in n} t_j a_j + \sum_r share_{pr} b_r + \xi_n b_n = f_p, \qquad
        \sum_p D_{pr} z_p a_p - w_r b_r = g_r, \qquad \sum_p \tau_p z_p a_p - w_n b_n = g_n

    Pairs with a part t below their slack s are eliminated, which divides by nothing small: with sums over them
    :math:`Y_n = y_n (\sum_{kept} t a + \sum t/s (f - share\, b - \xi b_n))`, :math:`y_n = 1/(1 + \rho \sum t/s)`.
    While mu is large, all are; where there are few unknowns, none.
    """

    def __init__(self, q: Stack, at: State, now: Measured) -> None:
        self.q, self.at, self.now = q, at, now
        users, servers, count = at.z.shape
        resources = len(at.m)
        pairs, rows = users * servers, resources * servers
        limits = 0 if at.xi is None else users
        self.pairs, self.rows, self.limits, self.count = pairs, rows, limits, count
        self.share = now.share / np.minimum(q.power, 4.0)
        self.touch = q.use * at.z  # (R, N, K, B)
        self.of_limit = None if at.xi is None else q.share_of_limit * at.z
        self.whole = pairs + rows + limits <= 40
        if self.whole:
            kept, stay = None, pairs
        else:
            ratio = (now.part / at.s).reshape(pairs, count)
            stay = min(int(np.add.reduce(ratio > KEEP, axis=0).max()), users + rows)
            kept = None
            if stay:
                self.index = np.argpartition(-ratio, stay - 1, axis=0)[:stay]  # (S, B)
                self.real = np.take_along_axis(ratio, self.index, axis=0) > KEEP
                flat = np.zeros((pairs, count), bool)
                np.put_along_axis(flat, self.index, self.real, axis=0)
                kept = flat.reshape(at.z.shape)
        self.stay = stay
        if self.whole:
            self.matrix = self._everything()
        else:
            self.matrix = self._reduced(kept)
        self.scale = 1 / np.maximum(np.abs(self.matrix).max(axis=2, keepdims=True), 1e-300)
        self.matrix *= self.scale

    def _everything(self) -> Array:
        """(B, n, n): pairs, rows, limits."""
        q, at, now = self.q, self.at, self.now
        users, servers, count = at.z.shape
        resources, pairs, rows = len(at.m), self.pairs, self.rows
        size = pairs + rows + self.limits
        m = np.zeros((size, size, count))
        ones = np.arange(users)
        block = m[:pairs, :pairs].reshape(users, servers, users, servers, count)
        block[ones, :, ones] = (q.ratio * now.part)[:, None]
        hosts = np.arange(servers)
        m[:pairs, pairs : pairs + rows].reshape(users, servers, resources, servers, count)[:, hosts, :, hosts] = self.share.transpose(2, 1, 0, 3)
        m[pairs : pairs + rows, :pairs].reshape(resources, servers, users, servers, count)[:, hosts, :, hosts] = self.touch.transpose(2, 0, 1, 3)
        diagonal = np.einsum("iib->ib", m)
        diagonal[:pairs] += at.s.reshape(pairs, count)
        diagonal[pairs : pairs + rows] = -at.w.reshape(rows, count)
        if self.limits:
            m[:pairs, pairs + rows :].reshape(users, servers, users, count)[ones, :, ones] = at.xi[:, None]
            m[pairs + rows :, :pairs].reshape(users, users, servers, count)[ones, ones] = self.of_limit
            diagonal[pairs + rows :] = -at.left
        return np.ascontiguousarray(m.transpose(2, 0, 1))

    def _reduced(self, kept: Array) -> Array:
        """(B, n, n): rows, limits, kept pairs."""
        q, at, now = self.q, self.at, self.now
        users, servers, count = at.z.shape
        resources, pairs, rows, limits, stay = len(at.m), self.pairs, self.rows, self.limits, self.stay
        e = 1 / at.s
        if stay:
            e = np.where(kept, 0.0, e)
        self.e = e
        te = now.part * e
        self.y = 1 / (1 + q.ratio * np.add.reduce(te, axis=1))  # (N, B)
        self.bought = self.share * te  # (R, N, K, B)
        used = self.touch * e
        c = rows + limits
        size = c + stay
        m = np.zeros((count, size, size))
        left = used.transpose(3, 0, 2, 1).reshape(count, rows, users)
        self.left = left = left * (q.ratio * self.y).T[:, None]
        right = self.bought.transpose(3, 1, 0, 2).reshape(count, users, rows)
        m[:, :rows, :rows] = left @ right
        hosts, ones = np.arange(servers), np.arange(users)
        block = m[:, :rows, :rows].reshape(count, resources, servers, resources, servers)
        first = used.transpose(3, 2, 0, 1) @ self.share.transpose(3, 2, 1, 0)  # (B, K, R, R)
        block[:, :, hosts, :, hosts] -= first.transpose(1, 0, 2, 3)
        diagonal = np.einsum("bii->bi", m)
        diagonal[:, :rows] -= at.w.reshape(rows, count).T
        if limits:
            taken = self.of_limit * e  # (N, K, B)
            self.quota = np.add.reduce(taken, axis=1)  # (N, B)
            self.paid = np.add.reduce(te, axis=1) * at.xi
            # limits by rows: -tau z/s share + rho y quota bought
            own = -taken * self.share  # (R, N, K, B)
            own += (q.ratio * self.y * self.quota)[:, None] * self.bought
            m[:, rows:c, :rows] = own.transpose(3, 1, 0, 2).reshape(count, users, rows)
            # rows by limits: -used xi + left paid
            own = -(used * at.xi[:, None]).transpose(3, 0, 2, 1).reshape(count, rows, users)
            m[:, :rows, rows:c] = own + left * self.paid.T[:, None]
            diagonal[:, rows:c] = (-at.xi * self.quota * self.y - at.left).T
        if stay:
            index, real = self.index, self.real
            user, server = index // servers, index % servers
            b, j = np.arange(count), np.arange(stay)
            t = np.take_along_axis(now.part.reshape(pairs, count), index, axis=0) * real  # (S, B)
            y = np.take_along_axis(self.y, user, axis=0) * q.ratio  # (S, B)
            same = user[:, None] == user[None]
            m[:, c:, c:] = np.where(same & real[:, None], y[:, None] * t[None], 0.0).transpose(2, 0, 1)
            s = np.take_along_axis(at.s.reshape(pairs, count), index, axis=0)
            diagonal[:, c:] += np.where(real, s, 1.0).T
            # kept by rows
            m[:, c:, :rows] = -(y * real).T[:, :, None] * right[b[:, None], user.T]
            m[:, :rows, c:] = -left.transpose(0, 2, 1)[b[:, None], user.T].transpose(0, 2, 1) * t.T[:, None]
            for r in range(resources):
                share = np.take_along_axis(self.share[r].reshape(pairs, count), index, axis=0) * real
                touch = np.take_along_axis(self.touch[r].reshape(pairs, count), index, axis=0) * real
                m[b[None], c + j[:, None], r * servers + server] += share
                m[b[None], r * servers + server, c + j[:, None]] += touch
            if limits:
                xi = np.take_along_axis(at.xi - q.ratio * self.y * self.paid, user, axis=0) * real
                m[b[None], c + j[:, None], rows + user] += xi
                tau = np.take_along_axis(self.of_limit.reshape(pairs, count), index, axis=0) * real
                mine = np.take_along_axis(q.ratio * self.y * self.quota, user, axis=0) * t
                m[b[None], rows + user, c + j[:, None]] += tau - mine
        return m

    def direction(self, target: Array, before: Direction | None, weight: Array | None = None) -> Direction:
        """The step to products `target` (B,), with second-order terms of the one before, times their weight."""
        q, at, now = self.q, self.at, self.now
        f0 = np.divide(target * now.omega, at.z, out=np.zeros_like(at.z), where=q.usable)
        g0 = target / at.m
        h0 = None if at.xi is None else np.divide(target, at.xi, out=np.zeros_like(at.xi), where=q.limited)
        if before is not None:
            f0 = f0 - weight * before.a * before.s
            g0 = g0 - weight * before.b * before.w
            h0 = None if at.xi is None else h0 - weight * before.n * before.left
        f = np.where(q.usable, f0 - now.slack, 0.0)
        g = np.where(q.rows, now.idle - g0, 0.0)
        h = None if at.xi is None else np.where(q.limited, now.room - h0, 0.0)
        a, b, n = self._solved(f, g, h)
        if not self.whole and now.mu.min() < 1e-4:
            ra, rb, rn = self._unreduced(a, b, n)
            more = self._solved(f - ra, g - rb, None if h is None else h - rn)
            a, b, n = a + more[0], b + more[1], None if n is None else n + more[2]
        s = f0 - at.s - at.s * a
        w = g0 - at.w - at.w * b
        left = None if n is None else h0 - at.left - at.left * n
        s = np.where(q.usable, s, 0.0)
        w = np.where(q.rows, w, 0.0)
        if left is not None:
            left = np.where(q.limited, left, 0.0)
        return Direction(a, b, n, s, w, left)

    def _unreduced(self, a: Array, b: Array, n: Array | None) -> tuple[Array, Array, Array | None]:
        """The left-hand sides."""
        q, at, now = self.q, self.at, self.now
        whole = q.ratio * np.add.reduce(now.part * a, axis=1)
        if n is not None:
            whole = whole + at.xi * n
        f = at.s * a + whole[:, None] + np.add.reduce(self.share * b[:, None], axis=0)
        g = np.add.reduce(self.touch * a, axis=1) - at.w * b
        h = None if n is None else np.add.reduce(self.of_limit * a, axis=1) - at.left * n
        return f, g, h

    def _lapack(self, rhs: Array) -> Array:
        """(n, B) for a right-hand side (n, B)."""
        rhs = np.ascontiguousarray(rhs.T)[:, :, None] * self.scale
        try:
            return np.linalg.solve(self.matrix, rhs)[:, :, 0].T
        except np.linalg.LinAlgError:  # one is singular: it stops, the others go on
            found = np.zeros_like(rhs)
            for k in range(len(rhs)):
                try:
                    found[k] = np.linalg.solve(self.matrix[k], rhs[k])
                except np.linalg.LinAlgError:
                    found[k] = np.nan
            return found[:, :, 0].T

    def _solved(self, f: Array, g: Array, h: Array | None) -> tuple[Array, Array, Array | None]:
        q, at, now = self.q, self.at, self.now
        pairs, rows, limits, stay, count = self.pairs, self.rows, self.limits, self.stay, self.count
        if self.whole:
            rhs = [f.reshape(pairs, count), g.reshape(rows, count), *([] if h is None else [h])]
            found = self._lapack(np.concatenate(rhs))
            n = None if h is None else found[pairs + rows :]
            return found[:pairs].reshape(f.shape), found[pairs : pairs + rows].reshape(g.shape), n
        e = self.e
        fe = f * e
        sums = np.add.reduce(now.part * fe, axis=1)  # (N, B)
        c = rows + limits
        rhs = np.empty((c + stay, count))
        rhs[:rows] = (g - np.add.reduce(self.touch * fe, axis=1)).reshape(rows, count)
        rhs[:rows] += (self.left @ sums.T[:, :, None])[:, :, 0].T
        if h is not None:
            rhs[rows:c] = h - np.add.reduce(self.of_limit * fe, axis=1) + q.ratio * self.y * self.quota * sums
        if stay:
            due = (f - (q.ratio * self.y * sums)[:, None]).reshape(pairs, count)
            rhs[c:] = np.take_along_axis(due, self.index, axis=0) * self.real
        found = self._lapack(rhs)
        b = found[:rows].reshape(g.shape)
        n = None if h is None else found[rows:c]
        paid = np.add.reduce(self.share * b[:, None], axis=0)
        if n is not None:
            paid = paid + (at.xi * n)[:, None]
        total = sums - np.add.reduce(now.part * e * paid, axis=1)
        if stay:
            mine = np.zeros((pairs, count))
            np.put_along_axis(mine, self.index, found[c:] * self.real, axis=0)
            mine = mine.reshape(f.shape)
            total = total + np.add.reduce(now.part * mine, axis=1)
        a = (f - (q.ratio * self.y * total)[:, None] - paid) * e
        return (a + mine if stay else a), b, n
