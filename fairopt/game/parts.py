r"""Equilibria in cells, with a face for each server: connected parts of cells are solved in batches, then combined.

Unknowns are the logarithms of the level prices :math:`v_r` of the R rows of a part. The tasks of users follow from the
prices of their first server,

.. math:: \log X_n = l_{ni} = gain_{ni} - \frac1\alpha \log \sum_r D_{nir} v_{ir}^\alpha

With T ties, which are the servers j of users other than their first server i, there are T equations of equal levels and
R - T equations of capacities,

.. math:: l_{ni} = l_{nj}, \qquad \sum_r y_r \Big(1 - \sum_n a_{nr} X_n\Big) = 0
    \quad \text{for all } y \text{ with } \sum_r y_r a_{nr} \text{ the same on both servers of every tie,}

with the fraction :math:`a_{nr}` of a row that a task uses at the user's first server. The equations of capacities hold
if and only if tasks of pairs exist that add up to X and fill the rows. Ties are linear in prices. If R - T = 1, prices
are a multiple of a null vector, and the remaining equation determines the factor. If R - T = 2, prices are proportional
to a convex combination of two vectors, with the weight t of the second vector, and one equation in t remains,

.. math:: \sum_n \beta_n\, cost_n(t)^{-1/\alpha} = 0, \qquad cost_n \text{ linear in } t,

which has at most as many roots as beta has changes of sign in the order of the zeros of :math:`cost_n`, as
:math:`(t + s)^{-p}` is totally positive (Karlin, "Total Positivity" (1968), chapter 3). The equation is evaluated on a
grid, which is refined at changes of sign. If R - T exceeds 2, solutions are searched by damped Newton steps from
several starts.

Most cells without a solution are excluded by bound propagation: capacities bound tasks, tasks bound prices, and prices
bound tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import islice, product
from typing import NamedTuple

import numpy as np

from ..core.accuracy import (
    CONVERGED,
    DECREASE,
    HALF_PRECISION,
    NEGLIGIBLE,
    REFINED,
    SINGLE_ROUNDING,
    SOLVE_ROUNDING,
    SUM_ROUNDING,
    VISIBLE,
)
from ..core.factors import LOG_RANGE, TINY, UNDERFLOW, stack_solved
from ..model._arrays import Array, Index, Mask
from .cells import Game, connected, prices

#: Number of starts of Newton's method (`_STARTS`), numbers of points of a first grid and of the grids that refine its
#: intervals (`_GRIDS`), and largest number of solutions of a cell (`_MOST`).
_STARTS, _GRIDS, _MOST = 12, (289, 101), 16
#: Numbers of rounds of bound propagation for all cells, and then for the remaining cells (`_ROUNDS`); and relative
#: relaxation of bounds, which covers their rounding errors (`_SLACK`).
_ROUNDS, _SLACK = (2, 8), VISIBLE
#: Rounding error of a bound, relative to the subtracted terms.
_LOST = CONVERGED
#: Newton's method: largest number of steps (`_STEPS`), residual of convergence (`_REACHED`), and residual that is
#: accepted where no step decreases it (`_STUCK`).
_STEPS, _REACHED, _STUCK = 14, CONVERGED, REFINED
#: Fractions of a Newton step that are evaluated together (`_LENGTHS`), and irrational numbers whose multiples spread
#: the starts evenly (`_IRREGULAR`).
_LENGTHS, _IRREGULAR = 0.3 ** np.arange(4), (0.6180339887, 0.7548776662)
#: Decimals to which log prices of equal solutions agree (`_DECIMALS`), and largest log odds :math:`\log(t/(1 - t))` of
#: the weight t (`_LOG_ODDS`).
_DECIMALS, _LOG_ODDS = 8, 36.0


class Solved(NamedTuple):
    """Tasks (solutions, servers, users), log level prices (solutions, servers, resources), and number of parts."""

    tasks: Array
    prices: Array
    parts: int


@np.errstate(all="ignore")
def solutions(g: Game, faces: Index) -> Solved:
    """Solve cells, given as (cells, servers) indices of faces.

    Of each cell at most `_MOST` combinations of solutions of its parts are examined.
    """
    servers, users, resources = g.use.shape
    for rounds in _ROUNDS:
        faces = faces[_bounded(g, g.support[faces], g.rows[faces], rounds)]
    fits, start = prices(g, faces)
    faces, start = faces[fits], start[fits]
    on = g.support[faces]
    if not len(faces):
        return Solved(np.zeros((0, servers, users)), np.zeros((0, servers, resources)), 0)
    member = connected(on)
    cell, first = np.nonzero(member.any(axis=2))
    member = member[cell, first]
    # Parts that occur in several cells are solved once.
    _, one, number = np.unique(np.where(member, faces[cell], -1), axis=0, return_index=True, return_inverse=True)
    cell_of, member = cell[one], member[one][..., None]
    part, level = _roots(g, on[cell_of] & member, g.rows[faces[cell_of]] & member, start[cell_of])
    ends = np.searchsorted(part, np.arange(len(one) + 1))
    chosen = [
        (k, level[list(each)].max(axis=0))
        for k, parts in enumerate(np.split(number.ravel(), np.flatnonzero(np.diff(cell)) + 1))
        for each in islice(product(*(range(ends[q], ends[q + 1]) for q in parts)), _MOST)
    ]
    level = np.array([each[1] for each in chosen]).reshape(-1, servers, resources)
    return Solved(*_split(g, on[[each[0] for each in chosen]], level), len(one))


def _roots(g: Game, on: Mask, active: Mask, start: Array) -> tuple[Index, Array]:
    """Index of the solved part (solutions,), increasing, and log level prices (solutions, servers, resources).

    Parts with equal numbers of pairs, rows and users are solved together.

    Parameters
    ----------
    on : (parts, servers, users), pairs of each part
    active, start : (parts, servers, resources), rows of each part, and feasible prices
    """
    servers, _, resources = g.use.shape
    middle = _middles(g, on)
    sizes = np.stack([on.sum(axis=(1, 2)), active.sum(axis=(1, 2)), on.any(axis=1).sum(axis=1)], axis=1)
    found = []
    for size in np.unique(sizes, axis=0):
        some = np.flatnonzero((sizes == size).all(axis=1))
        parts = Parts.of(g, on[some], active[some], middle[some], start[some])
        which, w = parts.roots()
        level = np.full((len(which), servers, resources), -np.inf)
        level[np.arange(len(which))[:, None], parts.host[which], parts.resource[which]] = w
        found.append((some[which], level))
    part, level = (np.concatenate(each) for each in zip(*found, strict=True))
    each = np.column_stack([part, np.round(level, _DECIMALS).reshape(len(part), servers * resources)])
    order = np.unique(each, axis=0, return_index=True)[1]  # sorted by part, without duplicates
    return part[order], level[order]


def _bounded(g: Game, on: Mask, active: Mask, rounds: int) -> Mask:
    r"""Mask of cells that are not excluded by propagation of bounds on tasks and prices.

    In each round capacities bound tasks, sums of tasks bound user tasks X, and user tasks bound prices by the costs

    .. math:: \sum_r D_{nir} v_{ir}^\alpha e^{-\alpha gain_{ni}} = X_n^{-\alpha},

    where outside the support the left-hand side is at least the right-hand side; prices bound user tasks by the same
    equation, and user tasks bound tasks. Bounds are arrays (2, ...): the lower bound, and minus the upper bound.
    """
    usable, sign = g.gain > -np.inf, np.array([1.0, -1.0])[:, None, None, None]
    use = np.where(on[..., None] & active[:, :, None], g.use / g.size[..., None], 0.0).swapaxes(2, 3)
    scale = np.exp(-g.alpha * np.where(usable, g.gain - g.middle[:, None], np.inf))
    cost = active[:, :, None] * g.use * scale[..., None]
    bounds_price = on | ((sign > 0) & usable)  # outside the support prices have no upper bound
    tasks, total, prices = (np.where(sign > 0, 0.0, one / -UNDERFLOW) for one in (on, on[:, :1] | True, active))
    for _ in range(rounds):
        tasks = _narrowed(use, sign - _SLACK, tasks)
        total = np.fmax(total, tasks.sum(axis=2, keepdims=True))
        level = np.where(bounds_price, sign * np.abs(total[::-1]) ** -g.alpha, -np.inf)
        prices = _narrowed(cost, level - _SLACK * np.abs(level), prices)
        level = sign * np.abs(np.matvec(cost, prices)[::-1]) ** (-1 / g.alpha)
        level = np.where(bounds_price, level - _SLACK * np.abs(level), -np.inf)
        total = np.fmax(total, level.max(axis=2, keepdims=True))
        tasks = _narrowed(on.swapaxes(1, 2)[:, :, None], total.swapaxes(2, 3), tasks.swapaxes(2, 3)).swapaxes(2, 3)
    good = [(one.sum(axis=0) <= -_SLACK * one[1]).all(axis=(1, 2)) for one in (tasks, total, prices)]
    return np.asarray(np.logical_and.reduce(good))


def _narrowed(factor: Array | Mask, level: Array, bounds: Array) -> Array:
    """Tighten bounds of unknowns by bounds `level` on `factor @ unknowns`, factor (..., conditions, unknowns) >= 0."""
    other = bounds[::-1]
    room = (level + np.matvec(factor, other))[..., None] / np.where(factor > 0, factor, np.nan)
    return np.asarray(np.fmax(bounds, np.fmax.reduce(room, axis=-2) - other - _LOST * np.abs(other)))


def _middles(g: Game, on: Mask) -> Array:
    """Reference log prices, (parts, servers), such that users with a tie of two servers have equal gains on both."""
    known = on.any(axis=2) & (np.cumsum(on.any(axis=2), axis=1) == 1)
    middle = np.where(known, g.middle, -np.inf)
    for _ in range(len(g.middle) - 1):
        own = np.where(on & known[..., None], middle[..., None] - g.gain, -np.inf).max(axis=1)
        level = np.where(on, own[:, None] + g.gain, -np.inf).max(axis=2)
        middle = np.where(known, middle, level)
        known = middle > -np.inf
    return middle


def _split(g: Game, on: Mask, level: Array) -> tuple[Array, Array]:
    """Tasks (solutions, servers, users) that fill rows at given prices, and prices; only best responses are kept.

    The parts of each user's tasks on servers solve linear equations: they sum to 1, and tasks fill the rows with a
    price.
    """
    servers, users, resources = g.use.shape
    terms = np.log(g.use) + g.alpha * level[:, :, None]
    top = terms.max(axis=3)
    log_tasks = g.gain - (top + np.log(np.exp(terms - top[..., None]).sum(axis=3))) / g.alpha
    log_total = np.take_along_axis(log_tasks, on.argmax(axis=1)[:, None], 1)
    good = (np.where(g.gain > -np.inf, log_tasks - log_total, -np.inf) <= HALF_PRECISION).all(axis=(1, 2))
    on, level, total = on[good], level[good], np.exp(np.minimum(log_total[good], LOG_RANGE / 2))
    use = g.use / g.size[..., None]
    of_rows = (np.eye(servers)[:, None, :, None] * use.swapaxes(1, 2)[:, :, None]).reshape(servers * resources, -1)
    active, pairs = (level > -np.inf).reshape(len(on), servers * resources, 1), on.reshape(len(on), 1, servers * users)
    of_users = np.tile(np.eye(users), servers) * pairs
    matrix = np.concatenate([of_users, of_rows * active * (on * total).reshape(pairs.shape)], axis=1)
    ones = matrix.any(axis=2, keepdims=True)
    part = np.linalg.pinv(matrix, CONVERGED) @ ones
    # Small negative parts are treated as rounding errors.
    good = (np.abs(ones - matrix @ part).max(axis=(1, 2)) <= SINGLE_ROUNDING) & (part.min(axis=(1, 2)) >= -NEGLIGIBLE)
    tasks = np.maximum(part, 0.0).reshape(on.shape) * total
    good &= np.einsum("ksn,snr->ksr", tasks, use).max(axis=(1, 2), initial=0.0) <= 1 + HALF_PRECISION
    return tasks[good], level[good]


@dataclass(frozen=True)
class Parts:
    """Parts with equal numbers of pairs, rows and users. The first pair of every user precedes all ties."""

    alpha: float
    host: Index  # (parts, rows)
    resource: Index  # (parts, rows)
    middle: Array  # (parts, rows), reference of log prices
    log_use: Array  # (parts, pairs, rows), log D, -inf without demand or on another server
    gain: Array  # (parts, pairs)
    away: Index  # (parts, ties), index of the user's first pair
    start: Array  # (parts, rows), prices
    tied: Array  # (parts, R - T, rows), basis of prices that satisfy all ties
    buys: Array  # (parts, R - T, users), y times the use of a task
    whole: Array  # (parts, R - T), sum of y
    unique: Mask  # (parts,), whether the split of tasks over pairs is unique

    @classmethod
    def of(cls, g: Game, on: Mask, active: Mask, middle: Array, start: Array) -> Parts:
        """Construct parts from pairs (parts, servers, users) and rows (parts, servers, resources)."""
        count, users = len(on), int(on[0].any(axis=0).sum())
        (user, server), (host, resource) = (
            [each.reshape(count, -1) for each in np.nonzero(one)[1:]] for one in (on.transpose(0, 2, 1), active)
        )
        # Pairs are sorted so that the first pair of each user precedes the ties.
        number: Index = np.cumsum(np.diff(user, axis=1, prepend=user[:, :1]) > 0, axis=1)
        tie, every = np.diff(number, axis=1, prepend=-1) == 0, np.arange(count)[:, None]
        order = every, np.argsort(tie, axis=1, kind="stable")
        user, server, number = user[order], server[order], number[order]
        at = server[..., None], user[..., None]
        use = np.where(at[0] == host[:, None], g.use[(*at, resource[:, None])], 0.0)
        middle, start = np.take_along_axis(middle, host, 1), start[every, host, resource]
        log_use, gain, per_task, away = np.log(use), g.gain[server, user], use / g.size[at], number[:, users:]
        cost = log_use - g.alpha * (gain[..., None] - middle[:, None])
        one, other = cost[:, users:], cost[every, away]
        top = np.maximum(one, other).max(axis=2, keepdims=True)
        tied, _ = _null(np.exp(one - top) - np.exp(other - top))
        y, unique = _null(per_task[:, users:] - per_task[every, away])
        buys, whole = y @ per_task[:, :users].transpose(0, 2, 1), y.sum(axis=2)
        start = start * np.exp(g.alpha * (g.middle[host] - middle))
        return cls(g.alpha, host, resource, middle, log_use, gain, away, start, tied, buys, whole, unique)

    def some(self, chosen: Index) -> Parts:
        """Select parts, possibly repeatedly."""
        return Parts(self.alpha, *(getattr(self, each.name)[chosen] for each in fields(self)[1:]))

    def log_prices(self, scaled: Array) -> Array:
        """Log level prices w from prices (parts, rows), with a lower bound relative to the largest price."""
        least = SUM_ROUNDING * scaled.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(scaled, least)) / self.alpha + self.middle)

    def levels(self, w: Array) -> tuple[Array, Array]:
        """Log tasks at log prices w, (parts, pairs), and shares of rows in the cost of a pair, (parts, pairs, rows)."""
        share = self.log_use + (self.alpha * w)[:, None]
        top = share.max(axis=2, keepdims=True)
        share = np.exp(share - top)
        total = share.sum(axis=2, keepdims=True)
        return np.minimum(self.gain - ((top + np.log(total)) / self.alpha)[..., 0], LOG_RANGE / 2), share / total

    def bought(self, w: Array) -> Array:
        """Left-hand sides `sum_n (y . a_n) X_n` of the capacity equations, (parts, R - T)."""
        return np.asarray(np.matvec(self.buys, np.exp(self.levels(w)[0][:, : self.buys.shape[2]])))

    def equations(self, w: Array) -> tuple[Array, Array]:
        """Negative residuals (parts, rows), and their Jacobian with respect to w, (parts, rows, rows)."""
        (level, share), users = self.levels(w), self.buys.shape[2]
        each, away = self.buys * np.exp(level[:, None, :users]), (np.arange(len(w))[:, None], self.away)
        rhs = np.concatenate([level[:, users:] - level[away], each.sum(axis=2) - self.whole], axis=1)
        return rhs, np.concatenate([share[:, users:] - share[away], each @ share[:, :users]], axis=1)

    def roots(self) -> tuple[Index, Array]:
        """Indices of parts with solutions, and their log prices (solutions, rows).

        Parts with non-unique splits are skipped, since their vertices are solutions in other cells.
        """
        free = self.tied.shape[1]
        if free == 1:
            which, w = np.arange(len(self.start)), self.log_prices(self.tied[:, 0] * np.sign(self.tied.sum(axis=2)))
        else:
            which, w = self._segment() if free == 2 else self._search()
        which, w = which[self.unique[which]], w[self.unique[which]]
        parts = self.some(which)
        size, whole = parts.bought(w), parts.whole
        w += np.log(np.maximum((size * whole).sum(axis=1) / (whole**2).sum(axis=1), TINY))[:, None]
        w, reached = parts.newton(w)
        return which[reached], w[reached]

    def _segment(self) -> tuple[Index, Array]:
        """Approximate roots for R - T = 2: parts, and log prices at the changes of sign of the equation in t."""
        inside = np.matvec(self.tied, self.start)
        beside = np.vecmat(np.stack([-inside[:, 1], inside[:, 0]], axis=1), self.tied)
        inside = np.vecmat(inside, self.tied)
        ends = []
        for along in (-beside, beside):
            far = np.where(along < 0, inside / -along, np.inf).min(axis=1, keepdims=True)
            ends.append(np.maximum(np.where(far < np.inf, inside + far * along, along), 0.0))
        which, low, high = np.arange(len(inside)), np.full(len(inside), -_LOG_ODDS), np.full(len(inside), _LOG_ODDS)
        for points in _GRIDS:
            u = np.linspace(low, high, points, axis=1)  # log t/(1 - t)
            t = (1 / (1 + np.exp(-u)))[..., None]
            each, line = self.some(np.repeat(which, points)), (1 - t) * ends[0][which, None] + t * ends[1][which, None]
            bought = each.bought(each.log_prices(line.reshape(-1, line.shape[2])))
            off = (bought[:, 0] * each.whole[:, 1] - bought[:, 1] * each.whole[:, 0]).reshape(u.shape)
            k, at = np.nonzero((off[:, :-1] * off[:, 1:] <= 0) & (off[:, :-1] != 0))
            low, high, which, line = u[k, at], u[k, at + 1], which[k], line[k, at + 1]
        return which, self.some(which).log_prices(line)

    def _search(self) -> tuple[Index, Array]:
        """Parts and log prices at which Newton's method starts.

        Without ties there is one start for each part, as a concave program has at most one solution.
        """
        count, rows = self.start.shape
        starts = _STARTS if self.away.shape[1] else 1
        k, r = np.arange(starts)[:, None], np.arange(rows)
        moved = np.where(k > 0, 2 * ((k * _IRREGULAR[0] * (r + 1) + _IRREGULAR[1] * r) % 1.0) - 1, 0.0)
        return np.repeat(np.arange(count), starts), (self.log_prices(self.start)[:, None] + moved).reshape(-1, rows)

    def newton(self, w: Array) -> tuple[Array, Mask]:
        """Solve by damped Newton steps from w; return the last points, and the mask (starts,) of solutions."""
        lengths, eye = _LENGTHS, SOLVE_ROUNDING * np.eye(w.shape[1])  # regularisation of singular Jacobians
        w, reached, going = w.copy(), np.zeros(len(w), bool), np.arange(len(w))
        for _ in range(_STEPS):
            parts = self.some(going)
            rhs, matrix = parts.equations(w[going])
            size = np.abs(rhs).max(axis=1)
            reached[going] = size <= _STUCK
            # If a column of the Jacobian vanishes, a price tends to 0, outside the interior of the cell.
            on = (size > _REACHED) & (size < np.inf) & (np.abs(matrix).max(axis=1).min(axis=1) > SUM_ROUNDING)
            if not on.any():
                break
            going, size, scale = going[on], size[on], 1 / np.abs(matrix[on]).max(axis=2, keepdims=True)
            step = stack_solved(matrix[on] * scale + eye, rhs[on, :, None] * scale)[..., 0]
            longest = np.maximum(np.abs(step).max(axis=1, keepdims=True), 1.0)
            trial = w[going, None] + lengths[:, None] * (step / longest)[:, None]
            found = self.some(np.repeat(going, len(lengths))).equations(trial.reshape(-1, w.shape[1]))[0]
            helps = (
                np.abs(found).max(axis=1).reshape(-1, len(lengths))
                <= (1 - DECREASE * lengths / longest) * size[:, None]
            )
            longer = np.flatnonzero(helps.any(axis=1))
            going = going[longer]
            w[going] = trial[longer, helps[longer].argmax(axis=1)]  # the longest step that decreases the residual
        return w, reached


def _null(matrix: Array) -> tuple[Array, Mask]:
    """Orthonormal null vectors (parts, columns - rows, columns) of matrices, and whether they span the null spaces."""
    count, rows, columns = matrix.shape
    if not rows:
        return np.broadcast_to(np.eye(columns), (count, columns, columns)), np.ones(count, bool)
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=2, keepdims=True), TINY)
    _, sizes, right = np.linalg.svd(matrix)
    return right[:, rows:], np.asarray((rows <= columns) & (sizes[:, -1] > REFINED * sizes[:, 0]))
