"""Newton's step of the interior point: pairs are eliminated, the rest is solved by LAPACK."""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array
from .factors import stack_solved
from .state import Direction, Measured, State
from .system import OfLimits, Stack

#: Up to so many unknowns nothing is eliminated: calls take longer than arithmetic.
WHOLE = 40


class System:
    r"""The linear system at a state, `t` the part of a pair in its user's tasks.

    .. math::

        s_p a_p + \rho \sum_{j \in n} t_j a_j + \sum_r share_{pr} b_r + \xi_n b_n = f_p, \qquad
        \sum_p D_{pr} z_p a_p - w_r b_r = g_r, \qquad \sum_p \tau_p z_p a_p - w_n b_n = g_n

    Where there are few unknowns all of them are solved for. Else pairs are eliminated, by

    .. math::

        \sum_{j \in n} t_j a_j = y_n \sum \tfrac ts (f - share\, b - \xi_n b_n), \qquad
        y_n = 1 / (1 + \rho \sum \tfrac ts),

    which squares what nearly ties: some lose their last digits, and `last_digits` has them.
    """

    def __init__(self, q: Stack, at: State, now: Measured) -> None:
        self.q, self.at, self.now = q, at, now
        users, servers, self.count = at.z.shape
        self.pairs, self.rows = users * servers, len(at.m) * servers
        self.limits = 0 if at.xi is None else users
        self.share = now.share / np.minimum(q.power, 4.0)
        self.touch = q.use * at.z  # (R, N, K, B)
        self.of_limit: OfLimits = None if q.share_of_limit is None else q.share_of_limit * at.z
        self.whole = self.pairs + self.rows + self.limits <= WHOLE
        self.matrix = self._everything() if self.whole else self._reduced()
        self.scale = 1 / np.maximum(np.abs(self.matrix).max(axis=2, keepdims=True), 1e-300)
        self.matrix *= self.scale

    def _everything(self) -> Array:
        """Full matrix (B, n, n) over pairs, rows and limits."""
        at, pairs, rows, count = self.at, self.pairs, self.rows, self.count
        users, servers = at.z.shape[:2]
        size = pairs + rows + self.limits
        each, hosts, resources = np.arange(users), np.arange(servers), len(at.m)
        m = np.zeros((size, size, count))
        by_user = m[:pairs, :pairs].reshape(users, servers, users, servers, count)
        by_user[each, :, each] = (self.q.ratio * self.now.part)[:, None]
        paid = m[:pairs, pairs : pairs + rows].reshape(users, servers, resources, servers, count)
        paid[:, hosts, :, hosts] = self.share.transpose(2, 1, 0, 3)
        used = m[pairs : pairs + rows, :pairs].reshape(resources, servers, users, servers, count)
        used[:, hosts, :, hosts] = self.touch.transpose(2, 0, 1, 3)
        diagonal = np.einsum("iib->ib", m)
        diagonal[:pairs] += at.s.reshape(pairs, count)
        diagonal[pairs : pairs + rows] = -at.w.reshape(rows, count)
        if at.xi is not None:
            m[:pairs, pairs + rows :].reshape(users, servers, users, count)[each, :, each] = at.xi[:, None]
            m[pairs + rows :, :pairs].reshape(users, users, servers, count)[each, each] = self.of_limit
            diagonal[pairs + rows :] = -at.left
        return np.ascontiguousarray(m.transpose(2, 0, 1))

    def _reduced(self) -> Array:
        """Schur complement (B, n, n) over rows and limits."""
        q, at, now, rows, count = self.q, self.at, self.now, self.rows, self.count
        users, servers = at.z.shape[:2]
        resources, c = len(at.m), rows + self.limits
        self.e = 1 / at.s
        leaving = now.part * self.e
        self.shrink = q.ratio / (1 + q.ratio * np.add.reduce(leaving, axis=1))  # (N, B), rho y
        used = self.touch * self.e
        right = (self.share * leaving).transpose(3, 1, 0, 2).reshape(count, users, rows)
        self.lost = used.transpose(3, 0, 2, 1).reshape(count, rows, users) * self.shrink.T[:, None]
        hosts = np.arange(servers)
        m = np.zeros((count, c, c))
        m[:, :rows, :rows] = self.lost @ right
        own = m[:, :rows, :rows].reshape(count, resources, servers, resources, servers)
        own[:, :, hosts, :, hosts] -= (used.transpose(3, 2, 0, 1) @ self.share.transpose(3, 2, 1, 0)).swapaxes(0, 1)
        diagonal = np.einsum("bii->bi", m)
        diagonal[:, :rows] -= at.w.reshape(rows, count).T
        if at.xi is not None:
            taken = self.of_limit * self.e  # (N, K, B)
            self.quota = self.shrink * np.add.reduce(taken, axis=1)  # (N, B)
            self.paid = np.add.reduce(leaving, axis=1) * at.xi
            of_rows = (self.quota[:, None] * leaving - taken) * self.share  # (R, N, K, B)
            m[:, rows:, :rows] = of_rows.transpose(3, 1, 0, 2).reshape(count, users, rows)
            of_rows = (used * at.xi[:, None]).transpose(3, 0, 2, 1).reshape(count, rows, users)
            m[:, :rows, rows:] = self.lost * self.paid.T[:, None] - of_rows
            diagonal[:, rows:] = (self.quota * self.paid - at.xi * np.add.reduce(taken, axis=1) - at.left).T
        return m

    def direction(self, target: Array, before: Direction | None, weight: Array | float = 0.0) -> Direction:
        """Direction to products `target` (B,), corrected by `weight` times the second-order terms of `before`."""
        q, at, now = self.q, self.at, self.now
        to_s = np.divide(target * now.omega, at.z, out=np.zeros_like(at.z), where=q.usable)
        to_w = target / at.m
        to_left: OfLimits = (
            None if at.xi is None else np.divide(target, at.xi, out=np.zeros_like(at.xi), where=q.limited)
        )
        if before is not None:
            to_s = to_s - weight * before.a * before.s
            to_w = to_w - weight * before.b * before.w
            to_left = None if to_left is None else to_left - weight * before.n * before.left
        f = np.where(q.usable, to_s - now.slack, 0.0)
        g = np.where(q.rows, now.idle - to_w, 0.0)
        h = None if to_left is None else np.where(q.limited, now.room - to_left, 0.0)
        a, b, n = self._solved(f, g, h)
        if not self.whole and now.mu.min() < 1e-4:  # cancelled digits
            by = self.product(a, b, n)
            more = self._solved(f - by[0], g - by[1], None if h is None else h - by[2])
            a, b, n = a + more[0], b + more[1], None if n is None else n + more[2]
        s = np.where(q.usable, to_s - at.s - at.s * a, 0.0)
        w = np.where(q.rows, to_w - at.w - at.w * b, 0.0)
        left = None if n is None else np.where(q.limited, to_left - at.left - at.left * n, 0.0)
        return Direction(a, b, n, s, w, left)

    def product(self, a: Array, b: Array, n: OfLimits) -> tuple[Array, Array, OfLimits]:
        """Left-hand sides of the equations at a direction."""
        at = self.at
        whole = self.q.ratio * np.add.reduce(self.now.part * a, axis=1)
        if n is not None:
            whole = whole + at.xi * n
        f = at.s * a + whole[:, None] + np.add.reduce(self.share * b[:, None], axis=0)
        g = np.add.reduce(self.touch * a, axis=1) - at.w * b
        return f, g, None if n is None else np.add.reduce(self.of_limit * a, axis=1) - at.left * n

    def _solved(self, f: Array, g: Array, h: OfLimits) -> tuple[Array, Array, OfLimits]:
        """Solve for right-hand sides of pairs, rows and limits."""
        at, pairs, rows, count = self.at, self.pairs, self.rows, self.count
        if self.whole:
            found = self._lapack([f.reshape(pairs, count), g.reshape(rows, count), *([] if h is None else [h])])
            a, b = found[:pairs].reshape(f.shape), found[pairs : pairs + rows].reshape(g.shape)
            return a, b, None if h is None else found[pairs + rows :]
        leaving = f * self.e
        sums = np.add.reduce(self.now.part * leaving, axis=1)  # (N, B)
        own = (g - np.add.reduce(self.touch * leaving, axis=1)).reshape(rows, count)
        rhs = [own + (self.lost @ sums.T[:, :, None])[:, :, 0].T]
        if h is not None:
            rhs.append(h - np.add.reduce(self.of_limit * leaving, axis=1) + self.quota * sums)
        found = self._lapack(rhs)
        b, n = found[:rows].reshape(g.shape), None if h is None else found[rows:]
        paid = np.add.reduce(self.share * b[:, None], axis=0)
        if n is not None:
            paid = paid + (at.xi * n)[:, None]
        total = sums - np.add.reduce(self.now.part * self.e * paid, axis=1)
        return (f - (self.shrink * total)[:, None] - paid) * self.e, b, n

    def _lapack(self, parts: list[Array]) -> Array:
        """Solve with the scaled matrix, (n, B)."""
        rhs = np.ascontiguousarray(np.concatenate(parts).T)[:, :, None] * self.scale
        return np.asarray(stack_solved(self.matrix, rhs)[:, :, 0].T)
