"""Equilibria of cells, a face for every server: connected parts, those of one shape at once, then all conditions.

Unknown are log level prices w_r of a part's R rows. Users take the tasks that the prices of their first server allow,
`log X_n = gain_n - log norm_n(w)`; with T ties (servers of users but the first) the equations are

    gain - log norm equal on both servers of a tie                                                    (T of them)
    sum_r y_r (1 - sum_n d_nr X_n) = 0   for every y with sum_r y_r d_nr the same on both servers of every tie  (R - T)

d_nr what a task uses of a row at the user's first server. For then tasks of pairs exist that add up to X and fill the
rows. Ties are linear in prices, and the rest only asks for a scale if R - T = 1: prices are a null vector, and that is
all. If R - T = 2, prices are `(1 - t) lambda' + t lambda''`, and what remains is one function of t,

    sum_n beta_n cost_n(t)^(-1/alpha) = 0,   cost_n linear in t,

which has at most as many roots as beta has changes of sign in the order of the zeros of cost_n ((t + s)^(-p) is totally
positive: Karlin, "Total Positivity" (1968), chapter 3); it is looked at on a grid, and on ever finer ones where it
changes sign. Prices below 1e-13 of the largest are hidden by rounding: they are looked for from several values.

Otherwise solutions are looked for by damped Newton steps from several starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ._cells import Game

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Starts of Newton's method, points of a grid, and most solutions of a cell.
_STARTS, _GRID, _MOST = 12, 289, 16
#: Most steps of Newton's method; it has reached a solution; it has where no step helps any more.
_STEPS, _REACHED, _STUCK = 16, 1e-12, 1e-10


class Solved(NamedTuple):
    """Tasks (solutions, servers, users), log level prices (.., servers, resources); parts, those that were searched."""

    tasks: Array
    prices: Array
    parts: int
    searched: int


@np.errstate(all="ignore")
def solutions(g: Game, faces: Index, start: Array) -> Solved:
    """Those of cells (cells, servers) with prices in them (cells, servers, resources)."""
    servers, users, resources = g.use.shape
    on = (g.support[faces][..., None] >> np.arange(users) & 1).astype(bool)
    paid = (g.rows[faces][..., None] >> np.arange(resources) & 1).astype(bool)
    joined = on @ on.transpose(0, 2, 1)
    for _ in range(servers.bit_length()):
        joined = joined @ joined
    member = joined.argmax(axis=2)[:, None] == np.arange(servers)[:, None]  # (cells, first server of a part, servers)
    cell, first = np.nonzero(member.any(axis=2))
    member = member[cell, first]
    _, one, number = np.unique(np.where(member, faces[cell], -1), axis=0, return_index=True, return_inverse=True)
    cell_of, member = cell[one], member[one][..., None]
    on, paid = on[cell_of] & member, paid[cell_of] & member
    middle, start = _middles(g, on), start[cell_of]
    sizes = np.stack([on.sum(axis=(1, 2)), paid.sum(axis=(1, 2)), on.any(axis=1).sum(axis=1)], axis=1)
    parts = Parts.of(g, on, paid, middle, start)
    found, searched = [], 0
    for size in np.unique(sizes, axis=0):
        mine = np.flatnonzero((sizes == size).all(axis=1))
        shape = Shape.of(parts, mine, *size.tolist())
        which, w = shape.roots()
        found.append((mine[which], np.pad(w, ((0, 0), (0, parts.host.shape[1] - w.shape[1])), constant_values=-np.inf)))
        searched += len(mine) * shape.hard
    part, w = (np.concatenate(each) for each in zip(*found, strict=True))
    once = np.unique(np.column_stack([part, np.round(w, 8)]), axis=0, return_index=True)[1]
    fits, tasks = parts.tasks(part[once], w[once])
    part, w = part[once][fits], w[once][fits]
    tasks, level = parts.spread(part, tasks[fits], w, g.use.shape)
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(len(one) + 1))
    chosen = [
        order[list(each)]
        for own in np.split(number.ravel(), np.flatnonzero(np.diff(cell)) + 1)
        for each in islice(product(*(range(ends[k], ends[k + 1]) for k in own)), _MOST)
    ]
    tasks = np.array([tasks[each].sum(axis=0) for each in chosen]).reshape(-1, servers, users)
    level = np.array([level[each].max(axis=0) for each in chosen]).reshape(-1, servers, resources)
    good = _holds(g, tasks, level)
    return Solved(tasks[good], level[good], len(one), searched)


def _middles(g: Game, on: Mask) -> Array:
    """What log prices are measured from, (parts, servers): who ties two servers gains the same on both."""
    known = on.any(axis=2) & (np.cumsum(on.any(axis=2), axis=1) == 1)
    middle = np.where(known, g.middle, -np.inf)
    for _ in range(len(g.middle) - 1):
        own = np.where(on & known[..., None], middle[..., None] - g.gain, -np.inf).max(axis=1)
        level = np.where(on, own[:, None] + g.gain, -np.inf).max(axis=2)
        middle = np.where(known, middle, level)
        known = middle > -np.inf
    return middle


def _holds(g: Game, tasks: Array, level: Array) -> Mask:
    """Does everything fit, and does no server owe a user more tasks? (solutions,)."""
    used = np.einsum("ksn,snr->ksr", tasks, g.use / g.size[..., None]).max(axis=(1, 2), initial=0.0)
    each = np.log(g.use) + g.alpha * level[:, :, None]
    top = each.max(axis=3)
    cost = (top + np.log(np.exp(each - top[..., None]).sum(axis=3))) / g.alpha
    owed = np.where(g.gain > -np.inf, g.gain - cost - np.log(tasks.sum(axis=1))[:, None], -np.inf)
    return np.asarray((used <= 1 + 1e-8) & (owed <= 1e-8).all(axis=(1, 2)))


class Stack(NamedTuple):
    """Equations of parts of as many pairs, rows and users as each other. Users' first pairs are before their others."""

    log_use: Array  # (parts, pairs, rows), log D, -inf where not needed or on another server
    gain: Array  # (parts, pairs)
    away: Any  # (parts, ties), the user's first pair
    buys: Array  # (parts, R - T, users), y by what a task uses
    whole: Array  # (parts, R - T), sum of y

    def some(self, chosen: Any) -> Stack:
        """Some of them, perhaps several times."""
        return Stack(*(each[chosen] for each in self))

    def equations(self, alpha: float, w: Array) -> tuple[Array, Array, Array]:
        """The largest residual (parts,), minus residuals (parts, rows) and derivatives by w (parts, rows)."""
        share = self.log_use + (alpha * w)[:, None]
        top = share.max(axis=2, keepdims=True)
        share = np.exp(share - top)
        total = share.sum(axis=2, keepdims=True)
        share /= total
        level = self.gain - ((top + np.log(total)) / alpha)[..., 0]
        users, ties = self.buys.shape[2], self.away.shape[1]
        each = self.buys * np.exp(np.minimum(level[:, None, :users], 300.0))
        rhs, matrix = each.sum(axis=2) - self.whole, each @ share[:, :users]
        if ties:
            away = np.arange(len(w))[:, None], self.away
            rhs = np.concatenate([level[:, users:] - level[away], rhs], axis=1)
            matrix = np.concatenate([share[:, users:] - share[away], matrix], axis=1)
        return np.abs(rhs).max(axis=1), rhs, matrix

    def newton(self, alpha: float, w: Array) -> tuple[Array, Mask]:
        """Where damped Newton steps from w end, and whether that is a solution."""
        ends, residual, left, these = w.copy(), np.full(len(w), np.inf), np.arange(len(w)), self
        size, rhs, matrix = self.equations(alpha, w)
        shorter, eye = 0.4 ** np.arange(1, 8), 1e-14 * np.eye(w.shape[1])  # some step where a pivot is next to none
        for _ in range(_STEPS):
            moved = size < np.inf
            ends[left[moved]], residual[left[moved]] = w[moved], size[moved]
            # Where a price has fallen to nothing there is no solution in the cell.
            going = moved & (size > _REACHED) & (np.abs(matrix).max(axis=1).min(axis=1) > 1e-15)
            if not going.any():
                break
            if not going.all():
                left, these = left[going], these.some(going)
                w, size, rhs, matrix = w[going], size[going], rhs[going], matrix[going]
            scale = 1 / np.abs(matrix).max(axis=2, keepdims=True)
            step = _solved(matrix * scale + eye, rhs[..., None] * scale)[..., 0]
            least = 0.1 / np.maximum(np.abs(step).max(axis=1), 1.0)
            step *= 10 * least[:, None]
            before, w = size, w + step
            size, rhs, matrix = these.equations(alpha, w)
            bad = np.flatnonzero(~(size <= (1 - least) * before))
            if len(bad):  # the longest that helps
                trial = (w[bad, None] + (shorter - 1)[:, None] * step[bad, None]).reshape(-1, w.shape[1])
                now = these.some(np.repeat(bad, len(shorter))).equations(alpha, trial)
                good = now[0].reshape(-1, len(shorter)) <= (1 - least[bad, None] * shorter) * before[bad, None]
                at = np.arange(len(bad)) * len(shorter) + good.argmax(axis=1)
                w[bad], rhs[bad], matrix[bad] = trial[at], now[1][at], now[2][at]
                size[bad] = np.where(good.any(axis=1), now[0][at], np.inf)
        return ends, residual <= _STUCK


class Parts(NamedTuple):
    """Connected parts in the game. Users' first pairs are before their others, and what is no pair or row is last."""

    alpha: float
    user: Index  # (parts, pairs)
    server: Index  # (parts, pairs)
    number: Index  # (parts, pairs), the user's in the part, -1 for no pair
    host: Index  # (parts, rows)
    resource: Index  # (parts, rows)
    per_task: Array  # (parts, pairs, rows), D over gamma in units
    log_use: Array  # (parts, pairs, rows), log D, -inf where not needed or on another server
    gain: Array  # (parts, pairs)
    middle: Array  # (parts, rows), of the row's server
    start: Array  # (parts, rows), prices from the middles

    @classmethod
    def of(cls, g: Game, on: Mask, paid: Mask, middle: Array, start: Array) -> Parts:
        """Those of pairs (parts, servers, users) and rows (parts, servers, resources)."""
        count, servers, _ = on.shape
        k, first = np.arange(count)[:, None], on & (on.cumsum(axis=1) == 1)
        order = (2 - on - 1 * first).transpose(0, 2, 1).reshape(count, -1).argsort(axis=1, kind="stable")
        user, server = np.divmod(order[:, : on.sum(axis=(1, 2)).max()], servers)
        order = (~paid).reshape(count, -1).argsort(axis=1, kind="stable")
        host, resource = np.divmod(order[:, : paid.sum(axis=(1, 2)).max()], paid.shape[2])
        pair, row = on[k, server, user], paid[k, host, resource]
        number = np.where(pair, on.any(axis=1).cumsum(axis=1)[k, user] - 1, -1)
        at = server[..., None], user[..., None]
        mine = (at[0] == host[:, None]) & pair[..., None] & row[:, None]
        use = np.where(mine, g.use[(*at, resource[:, None])], 0.0)
        of_rows = np.where(row, middle[k, host], 0.0)
        start = start[k, host, resource] * np.exp(g.alpha * (g.middle[host] - of_rows))
        start /= np.where(row, start, 0.0).max(axis=1, keepdims=True)
        gain, log_use = np.where(pair, g.gain[server, user], 0.0), np.where(pair[..., None], np.log(use), 0.0)
        per_task = use / g.size[at]
        return cls(g.alpha, user, server, number, host, resource, per_task, log_use, gain, of_rows, start)

    def totals(self, which: Index, w: Array) -> Array:
        """X by first pairs at prices w (some, rows), (some, pairs)."""
        each = self.log_use[which] + (self.alpha * w)[:, None]
        top = each.max(axis=2)
        log_norm = (top + np.log(np.exp(each - top[..., None]).sum(axis=2))) / self.alpha
        return np.asarray(np.exp(np.minimum(self.gain[which] - log_norm, 300.0)))

    def tasks(self, which: Index, w: Array) -> tuple[Mask, Array]:
        """Is there a split that fills rows (a part of -1e-9 is none), and tasks (solutions, pairs), of parts at w."""
        number = self.number[which]
        total = np.take_along_axis(self.totals(which, w), number, 1)
        of_users = number[:, None] == np.arange(number.max(initial=0) + 1)[:, None]
        matrix = np.concatenate([of_users, (self.per_task[which] * total[..., None]).transpose(0, 2, 1)], axis=1)
        square = matrix.transpose(0, 2, 1) @ matrix + 1e-15 * np.eye(matrix.shape[2])
        share, off = np.zeros(total.shape), 1.0 * (matrix != 0).any(axis=2)
        fine, ones = np.isfinite(square).all(axis=(1, 2)), off
        square[~fine] = np.eye(matrix.shape[2])
        for _ in range(3):  # to the last digits of least squares
            share = share + _solved(square, matrix.transpose(0, 2, 1) @ off[..., None])[..., 0]
            off = ones - np.matvec(matrix, share)
        fine &= (np.abs(off).max(axis=1) <= 1e-7) & (share.min(axis=1) >= -1e-9)
        return fine, np.maximum(share, 0.0) * total

    def spread(self, which: Index, tasks: Array, w: Array, shape: tuple[int, int, int]) -> tuple[Array, Array]:
        """Tasks (solutions, servers, users) and prices (solutions, servers, resources), -inf for none."""
        whole, level = np.zeros((len(which), *shape[:2])), np.full((len(which), shape[0], shape[2]), -np.inf)
        k = np.arange(len(which))[:, None]
        whole[k, self.server[which], self.user[which]] = tasks
        level[k, self.host[which], self.resource[which]] = w
        return whole, level


@dataclass
class Shape:
    """Parts of as many pairs, rows and users as each other."""

    alpha: float
    number: Index  # (parts, pairs), the user's in the part
    per_task: Array  # (parts, pairs, rows)
    cost: Array  # (parts, pairs, rows), X^-alpha is cost @ prices from the middles, times exp(top)
    top: Array  # (parts, pairs)
    middle: Array  # (parts, rows)
    start: Array  # (parts, rows)
    unique: Mask  # (parts,), are splits?
    null: Array  # (parts, R - T, rows), prices from the middles at which users tie
    stack: Stack

    @classmethod
    def of(cls, parts: Parts, mine: Index, pairs: int, rows: int, users: int) -> Shape:
        """Some of the parts."""
        number, gain = parts.number[mine, :pairs], parts.gain[mine, :pairs]
        per_task, log_use = parts.per_task[mine, :pairs, :rows], parts.log_use[mine, :pairs, :rows]
        middle, start = parts.middle[mine, :rows], parts.start[mine, :rows]
        away = number[:, users:]
        home = np.arange(len(mine))[:, None], away
        each = log_use - parts.alpha * (gain[..., None] - middle[:, None])
        top = each.max(axis=2)
        cost = np.exp(each - top[..., None])
        apart = (top[:, users:] - top[home])[..., None]
        null, _ = _null(cost[:, users:] * np.exp(np.minimum(apart, 0)) - cost[home] * np.exp(np.minimum(-apart, 0)))
        y, unique = _null(per_task[:, users:] - per_task[home])
        stack = Stack(log_use, gain, away, y @ per_task[:, :users].transpose(0, 2, 1), y.sum(axis=2))
        return cls(parts.alpha, number, per_task, cost, top, middle, start, unique, null, stack)

    @property
    def hard(self) -> bool:
        """Are neither prices nor tasks on a segment?"""
        return self.null.shape[1] > 2 and self.number.shape[1] > self.middle.shape[1] + 1

    def totals(self, which: Index, w: Array) -> Array:
        """X at prices w (some, rows), (some, users)."""
        users = self.stack.buys.shape[2]
        each = self.cost[which, :users] @ np.exp(self.alpha * (w - self.middle[which]))[..., None]
        return np.asarray(np.exp(np.minimum(-(np.log(each[..., 0]) + self.top[which, :users]) / self.alpha, 300.0)))

    def log_prices(self, which: Index, scaled: Array, floor: float | Array = 1e-15) -> Array:
        """w of prices (some, rows) measured from the middles, at least a part `floor` of the largest."""
        least = floor * scaled.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(scaled, least)) / self.alpha + self.middle[which])

    def roots(self) -> tuple[Index, Array]:
        """Numbers of parts that have solutions, and log prices of these (solutions, rows).

        Where splits are not unique those with fewer pairs are in other cells.
        """
        free, more = self.null.shape[1], self.number.shape[1] - self.middle.shape[1]
        if free == 1:
            which, w = self._scaled(np.arange(len(self.null)), self.null[:, 0])
        elif more == 0:
            which, w = self._scaled(
                *self._paid(
                    np.arange(len(self.null)),
                    _solved(self.per_task.transpose(0, 2, 1), np.ones((*self.middle.shape, 1)))[..., 0],
                )
            )
        elif free == 2:
            which, w = self._scaled(*self._segment())
        elif more == 1:
            which, w = self._scaled(*self._tasks())
        else:
            which, w = self._search()
        which, w = which[self.unique[which]], w[self.unique[which]]
        w, reached = self.stack.some(which).newton(self.alpha, w)
        return which[reached], w[reached]

    def _scaled(self, which: Index, vector: Array) -> tuple[Index, Array]:
        """w of prices (some, rows) from the middles, to scale, where none is negative."""
        vector = vector * np.where(vector.sum(axis=1) > 0, 1.0, -1.0)[:, None]
        least, most = vector.min(axis=1), vector.max(axis=1)
        good = np.flatnonzero(least >= -1e-12 * most)
        hidden = good[least[good] < 1e-13 * most[good]]
        floor = np.repeat(1e-15 * 1e-6 ** np.arange(6), [len(good), *[len(hidden)] * 5])
        good = np.concatenate([good, *[hidden] * 5])
        which = which[good]
        w = self.log_prices(which, vector[good], floor[:, None])
        size, whole = np.matvec(self.stack.buys[which], self.totals(which, w)), self.stack.whole[which]
        ratio = (size * whole).sum(axis=1) / (whole**2).sum(axis=1)
        good = (ratio > 0) & (ratio < np.inf)
        return which[good], (w + np.log(ratio)[:, None])[good]

    def _segment(self) -> tuple[Index, Array]:
        """R - T = 2: prices on a segment."""
        users, ends, whole = self.stack.buys.shape[2], self._ends(), self.stack.whole
        beta = self.stack.buys[:, 0] * whole[:, 1:] - self.stack.buys[:, 1] * whole[:, :1]
        of_ends = ends @ self.cost[:, :users].transpose(0, 2, 1)
        which, t = _zeros(beta, -self.top[:, :users] / self.alpha, of_ends, -1 / self.alpha)
        return which, (1 - t) * ends[which, 0] + t * ends[which, 1]

    def _tasks(self) -> tuple[Index, Array]:
        """One more pair than rows: tasks on a segment."""
        rows = self.middle.shape[1]
        left, sizes, right = np.linalg.svd(self.per_task)
        change, some = left[..., -1], np.matvec(left[:, :, :rows], (right.sum(axis=2) / sizes))
        reach = -some / change
        low = np.where(change > 0, reach, -np.inf).max(axis=1, keepdims=True)
        high = np.where(change < 0, reach, np.inf).min(axis=1, keepdims=True)
        ends = np.maximum(some[:, None] + np.stack([low, high], axis=1) * change[:, None], 0.0)
        of_users = self.number[:, None] == np.arange(self.stack.buys.shape[2])[:, None]
        beta = np.linalg.svd(self.cost)[0][..., -1]
        which, t = _zeros(beta, -self.top, ends @ (of_users.transpose(0, 2, 1) @ of_users), -self.alpha)
        return self._paid(which, (1 - t) * ends[which, 0] + t * ends[which, 1])

    def _paid(self, which: Index, tasks: Array) -> tuple[Index, Array]:
        """Prices from the middles at which users take tasks (some, pairs)."""
        rows = self.middle.shape[1]
        of_users = self.number[which][:, None] == np.arange(self.stack.buys.shape[2])[:, None]
        total = np.take_along_axis(np.matvec(of_users, tasks), self.number[which], 1)
        level = -self.alpha * np.log(np.maximum(total, 1e-300)) - self.top[which]
        scale = np.exp(np.maximum(level - level.max(axis=1, keepdims=True), -650))
        matrix = self.cost[which] / scale[..., None]
        if tasks.shape[1] > rows:
            left = np.linalg.svd(self.cost)[0][which, :, -1]
            chosen = np.arange(len(which))[:, None], np.argsort(np.abs(left), axis=1)[:, :rows]
            matrix = matrix[chosen]
        ones = np.ones((*matrix.shape[:2], 1))
        prices = _solved(matrix, ones)
        prices = prices + _solved(matrix, ones - matrix @ prices)
        return which, prices[..., 0]

    def _ends(self) -> Array:
        """The two ends of what is left of the null space where no price is negative, (parts, 2, rows)."""
        inside = (self.null @ self.start[..., None])[..., 0]  # as complex numbers, whose angles say where
        turn = np.angle((self.null[:, 0] + 1j * self.null[:, 1]) / (inside[:, :1] + 1j * inside[:, 1:]))
        angle = np.stack([turn.max(axis=1) - np.pi / 2, turn.min(axis=1) + np.pi / 2])
        ray = np.exp(1j * angle) * (inside[:, 0] + 1j * inside[:, 1])
        return np.maximum(np.stack([ray.real, ray.imag], axis=2).transpose(1, 0, 2) @ self.null, 0.0)

    def _search(self) -> tuple[Index, Array]:
        """Starts of Newton's method; one where there are no ties: a concave program has one solution at most."""
        count, rows = self.start.shape
        starts = _STARTS if self.stack.away.shape[1] else 1
        which = np.repeat(np.arange(count), starts)
        k, r = np.arange(starts)[:, None], np.arange(rows)
        moved = np.where(k > 0, 2 * ((k * 0.6180339887 * (r + 1) + 0.7548776662 * r) % 1.0) - 1, 0.0)
        w = self.log_prices(which, self.start[which]) + np.tile(moved, (count, 1))
        total = self.totals(which, w)
        use = (self.per_task[which, : total.shape[1]] * total[..., None]).sum(axis=(1, 2))
        return which, w + np.log(np.maximum(use / rows, 1e-300))[:, None]


def _solved(matrix: Array, rhs: Array) -> Array:
    """Solutions of a stack of systems, the least ones if one of them is singular."""
    try:
        return np.asarray(np.linalg.solve(matrix, rhs))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrix) @ rhs)


def _null(matrix: Array) -> tuple[Array, Mask]:
    """Orthonormal vectors (parts, columns - rows, columns) that matrices map to 0, and whether these are all."""
    count, rows, columns = matrix.shape
    if not rows:
        return np.broadcast_to(np.eye(columns), (count, columns, columns)), np.ones(count, bool)
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=2, keepdims=True), 1e-300)
    _, sizes, right = np.linalg.svd(matrix)
    return right[:, rows:], np.asarray((rows <= columns) & (sizes[:, -1] > 1e-10 * sizes[:, 0]))


def _zeros(beta: Array, shift: Array, ends: Array, power: float) -> tuple[Index, Array]:
    """Where `sum_n beta_n exp(shift_n) ((1 - t) ends_0n + t ends_1n)^power` is zero, (parts, terms), (parts, 2, terms)."""
    which = np.arange(len(beta))
    low, high = np.full(len(which), -36.0), np.full(len(which), 36.0)  # log t/(1 - t)
    for points in (_GRID, 101, 101):
        u = np.linspace(low, high, points, axis=1)
        t = (1 / (1 + np.exp(-u)))[..., None]
        level = power * np.log((1 - t) * ends[:, :1] + t * ends[:, 1:]) + shift[:, None]
        off = np.matvec(np.exp(level - level.max(axis=2, keepdims=True)), beta)
        k, at = np.nonzero((off[:, :-1] * off[:, 1:] <= 0) & (off[:, :-1] != 0))
        low, high, which, ends, beta, shift = u[k, at], u[k, at + 1], which[k], ends[k], beta[k], shift[k]
    return which, (1 / (1 + np.exp(-high)))[:, None]
