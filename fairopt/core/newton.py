"""Newton's equations of the interior-point method: a dense KKT system, or its Schur complement without pairs."""

from __future__ import annotations

import numpy as np

from ..model._arrays import Array
from .central_path import LARGE_MU
from .factors import TINY, stack_solved
from .state import LARGEST_POWER, Direction, Measured, State
from .system import OfLimits, Stack

#: Number of unknowns up to which the full matrix is factored, since elimination would need more NumPy calls.
UNREDUCED = 40


class System:
    r"""Linear system of Newton's method at an iterate, factored for several right-hand sides.

    Unknowns are the relative changes a of fractions z, and b of prices m and xi. A pair p = (n, k) has the part t
    (N, K, B) of its user's tasks, the slack s, the fraction tau of its user's limit, and the shares theta of rows in
    its cost; w are slacks of rows and limits. With right-hand sides f, g and h the system is

    .. math::

        s_p a_p + \rho \sum_{j \in n} t_j a_j + \sum_r \theta_{pr} b_r + \xi_n b_n = f_p, \qquad
        \sum_p D_{pr} z_p a_p - w_r b_r = g_r, \qquad \sum_p \tau_p z_p a_p - w_n b_n = h_n

    Systems of at most `UNREDUCED` unknowns are solved without elimination. In larger systems pairs are eliminated by

    .. math::

        \sum_{j \in n} t_j a_j
        = \kappa_n \sum_{j \in n} \frac{t_j}{s_j} \Big(f_j - \sum_r \theta_{jr} b_r - \xi_n b_n\Big), \qquad
        \kappa_n = \Big(1 + \rho \sum_{j \in n} \frac{t_j}{s_j}\Big)^{-1},

    which leaves a Schur complement over rows and limits. It squares the condition number where the active set is nearly
    degenerate, so that the accuracy is limited; `refinement` refines such solutions.
    """

    def __init__(self, q: Stack, at: State, now: Measured) -> None:
        self.q, self.at, self.now = q, at, now
        users, servers, self.count = at.z.shape
        self.pairs, self.rows = users * servers, len(at.m) * servers
        self.limits = 0 if at.xi is None else users
        self.share = now.share / np.minimum(q.power, LARGEST_POWER)
        self.load = q.use * at.z  # (R, N, K, B)
        self.limit_load: OfLimits = None if q.share_of_limit is None else q.share_of_limit * at.z
        self.unreduced = self.pairs + self.rows + self.limits <= UNREDUCED
        self.matrix = self._full_matrix() if self.unreduced else self._schur_complement()
        self.scale = 1 / np.maximum(np.abs(self.matrix).max(axis=2, keepdims=True), TINY)
        self.matrix *= self.scale

    def _full_matrix(self) -> Array:
        """Full KKT matrix (B, n, n) over pairs, rows and limits, in this order."""
        at, pairs, rows, count = self.at, self.pairs, self.rows, self.count
        users, servers = at.z.shape[:2]
        order = pairs + rows + self.limits
        index, hosts, resources = np.arange(users), np.arange(servers), len(at.m)
        m = np.zeros((order, order, count))
        by_user = m[:pairs, :pairs].reshape(users, servers, users, servers, count)
        by_user[index, :, index] = (self.q.ratio * self.now.part)[:, None]
        cost_block = m[:pairs, pairs : pairs + rows].reshape(users, servers, resources, servers, count)
        cost_block[:, hosts, :, hosts] = self.share.transpose(2, 1, 0, 3)
        use_block = m[pairs : pairs + rows, :pairs].reshape(resources, servers, users, servers, count)
        use_block[:, hosts, :, hosts] = self.load.transpose(2, 0, 1, 3)
        diagonal = np.einsum("iib->ib", m)
        diagonal[:pairs] += at.s.reshape(pairs, count)
        diagonal[pairs : pairs + rows] = -at.w.reshape(rows, count)
        if at.xi is not None:
            m[:pairs, pairs + rows :].reshape(users, servers, users, count)[index, :, index] = at.xi[:, None]
            m[pairs + rows :, :pairs].reshape(users, users, servers, count)[index, index] = self.limit_load
            diagonal[pairs + rows :] = -at.left
        return np.ascontiguousarray(m.transpose(2, 0, 1))

    def _schur_complement(self) -> Array:
        """Schur complement (B, n, n) over rows and limits."""
        q, at, now, rows, count = self.q, self.at, self.now, self.rows, self.count
        users, servers = at.z.shape[:2]
        resources, order = len(at.m), rows + self.limits
        self.e = 1 / at.s
        part_weight = now.part * self.e
        self.user_factor = q.ratio / (1 + q.ratio * np.add.reduce(part_weight, axis=1))  # (N, B), rho kappa_n
        use_weight = self.load * self.e
        user_cost = (self.share * part_weight).transpose(3, 1, 0, 2).reshape(count, users, rows)
        self.coupling = use_weight.transpose(3, 0, 2, 1).reshape(count, rows, users) * self.user_factor.T[:, None]
        hosts = np.arange(servers)
        m = np.zeros((count, order, order))
        m[:, :rows, :rows] = self.coupling @ user_cost
        server_blocks = m[:, :rows, :rows].reshape(count, resources, servers, resources, servers)
        server_blocks[:, :, hosts, :, hosts] -= (
            use_weight.transpose(3, 2, 0, 1) @ self.share.transpose(3, 2, 1, 0)
        ).swapaxes(0, 1)
        diagonal = np.einsum("bii->bi", m)
        diagonal[:, :rows] -= at.w.reshape(rows, count).T
        if at.xi is not None:
            limit_weight = self.limit_load * self.e  # (N, K, B)
            self.limit_coupling = self.user_factor * np.add.reduce(limit_weight, axis=1)  # (N, B)
            self.limit_factor = np.add.reduce(part_weight, axis=1) * at.xi
            block = (self.limit_coupling[:, None] * part_weight - limit_weight) * self.share  # (R, N, K, B)
            m[:, rows:, :rows] = block.transpose(3, 1, 0, 2).reshape(count, users, rows)
            block = (use_weight * at.xi[:, None]).transpose(3, 0, 2, 1).reshape(count, rows, users)
            m[:, :rows, rows:] = self.coupling * self.limit_factor.T[:, None] - block
            diagonal[:, rows:] = (
                self.limit_coupling * self.limit_factor - at.xi * np.add.reduce(limit_weight, axis=1) - at.left
            ).T
        return m

    def direction(self, target: Array, predictor: Direction | None, weight: Array | float = 0.0) -> Direction:
        """Direction at which linearised complementarity products are `target` (B,), and residuals vanish.

        With a `predictor` the products of its changes, times `weight` (B,), are subtracted from the target: the
        second-order correction of Mehrotra's method.
        """
        q, at, now = self.q, self.at, self.now
        target_s = np.divide(target * now.omega, at.z, out=np.zeros_like(at.z), where=q.usable)
        target_w = target / at.m
        target_left: OfLimits = (
            None if at.xi is None else np.divide(target, at.xi, out=np.zeros_like(at.xi), where=q.limited)
        )
        if predictor is not None:
            target_s = target_s - weight * predictor.a * predictor.s
            target_w = target_w - weight * predictor.b * predictor.w
            target_left = None if target_left is None else target_left - weight * predictor.n * predictor.left
        f = np.where(q.usable, target_s - now.slack, 0.0)
        g = np.where(q.rows, now.idle - target_w, 0.0)
        h = None if target_left is None else np.where(q.limited, now.room - target_left, 0.0)
        a, b, n = self._solved(f, g, h)
        if not self.unreduced and now.mu.min() < LARGE_MU:  # a refinement step, since elimination cancels digits
            image = self.product(a, b, n)
            correction = self._solved(f - image[0], g - image[1], None if h is None else h - image[2])
            a, b, n = a + correction[0], b + correction[1], None if n is None else n + correction[2]
        s = np.where(q.usable, target_s - at.s - at.s * a, 0.0)
        w = np.where(q.rows, target_w - at.w - at.w * b, 0.0)
        left = None if n is None else np.where(q.limited, target_left - at.left - at.left * n, 0.0)
        return Direction(a, b, n, s, w, left)

    def product(self, a: Array, b: Array, n: OfLimits) -> tuple[Array, Array, OfLimits]:
        """Left-hand sides of the equations (pairs, rows, limits) at a direction."""
        at = self.at
        user_term = self.q.ratio * np.add.reduce(self.now.part * a, axis=1)
        if n is not None:
            user_term = user_term + at.xi * n
        f = at.s * a + user_term[:, None] + np.add.reduce(self.share * b[:, None], axis=0)
        g = np.add.reduce(self.load * a, axis=1) - at.w * b
        return f, g, None if n is None else np.add.reduce(self.limit_load * a, axis=1) - at.left * n

    def _solved(self, f: Array, g: Array, h: OfLimits) -> tuple[Array, Array, OfLimits]:
        """Relative changes a of pairs, b of rows and n of limits for right-hand sides f, g and h."""
        at, pairs, rows, count = self.at, self.pairs, self.rows, self.count
        if self.unreduced:
            solution = self._lapack([f.reshape(pairs, count), g.reshape(rows, count), *([] if h is None else [h])])
            a, b = solution[:pairs].reshape(f.shape), solution[pairs : pairs + rows].reshape(g.shape)
            return a, b, None if h is None else solution[pairs + rows :]
        weighted = f * self.e
        sums = np.add.reduce(self.now.part * weighted, axis=1)  # (N, B)
        rows_rhs = (g - np.add.reduce(self.load * weighted, axis=1)).reshape(rows, count)
        rhs = [rows_rhs + (self.coupling @ sums.T[:, :, None])[:, :, 0].T]
        if h is not None:
            rhs.append(h - np.add.reduce(self.limit_load * weighted, axis=1) + self.limit_coupling * sums)
        solution = self._lapack(rhs)
        b, n = solution[:rows].reshape(g.shape), None if h is None else solution[rows:]
        price_term = np.add.reduce(self.share * b[:, None], axis=0)
        if n is not None:
            price_term = price_term + (at.xi * n)[:, None]
        total = sums - np.add.reduce(self.now.part * self.e * price_term, axis=1)
        return (f - (self.user_factor * total)[:, None] - price_term) * self.e, b, n

    def _lapack(self, parts: list[Array]) -> Array:
        """Solve with the row-scaled matrix by LAPACK, (n, B)."""
        rhs = np.ascontiguousarray(np.concatenate(parts).T)[:, :, None] * self.scale
        return np.asarray(stack_solved(self.matrix, rhs)[:, :, 0].T)
