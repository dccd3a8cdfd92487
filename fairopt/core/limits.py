r"""PS-DSF of a stack of small problems: equilibria at large alpha, what these tend to, and best responses.

At alpha = infinity pairs with tasks and rows with a price are, as a rule, those of a large alpha. With them the limit
is a system of equations,

.. math::
    x_n v_{ir} = \phi_n \gamma_{ni}, \qquad \sum_n D_{nir} z_{ni} = 1,

for every pair with tasks, r the dearest resource that n needs on i, and of every row, which Newton's method solves to
the last digit. Where that fails, as with the ties of zero demands, servers respond in turn, each with its max-min
allocation, until none owes anybody anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._libraries import lapack
from ..model.problem import Problem
from .choices import Choices
from .judge import infeasibility
from .maxmin import fractions, owed, response
from .solve import finite
from .system import Stack, stacked

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: alpha to begin with, in turn; what the equilibrium there is to reach, and has to.
_LARGE, _NEAR, _REACHED = (4096.0, 512.0, 64.0, 8.0), 1e-7, 1e-3
#: What a full row may idle and a user at its limit lack, and what is decided by more is not decided by rounding: parts.
_FULL = 1e-6
#: Newton steps end where no equation is off by more; singular values below this part of the largest are ties.
_EXACT, _TIE = 1e-15, 1e-11


class Found(NamedTuple):
    """Tasks (B, N, K), exploitabilities (B,), and what is the limit of equilibria for certain (B,)."""

    tasks: Array
    certificate: Array
    certain: Mask


def psdsf(problems: list[Problem], tol: float, alphas: int, rounds: int) -> Found:
    """PS-DSF of problems of one shape, from one large alpha after the other where those before did not lead to `tol`.

    Parameters
    ----------
    alphas : how many large alphas there are
    rounds : of best responses after each of them
    """
    q, count = stacked(problems, np.ones(len(problems))), len(problems)
    rate = q.gamma * np.stack([one.criterion.weight for one in problems], axis=-1)[:, None]
    idle: Mask = np.asarray((q.unused > 0).all(axis=0))
    tasks, certain = _greatest(q, rate)
    error = np.where(idle, 0.0, np.where(certain, _owed(q, rate, tasks), np.inf))
    certain |= idle
    nearest, distance = tasks.copy(), np.full(count, np.inf)
    for alpha in _LARGE[:alphas]:
        todo = np.flatnonzero(error > tol)
        if not len(todo):
            break
        near = finite([problems[k] for k in todo], _REACHED, _NEAR, np.full(len(todo), alpha))
        good = near.certificate <= _REACHED
        todo, start, log_rows = todo[good], near.tasks[good], near.log_rows[good]
        if not len(todo):
            continue
        some, own = q.some(todo), rate[..., todo]
        found, sure = _ends(some, own, start, np.exp(log_rows / alpha))
        missing = _owed(some, own, found)
        better = missing < error[todo]
        tasks[todo[better]], error[todo[better]] = found[better], missing[better]
        certain[todo] = np.where(better, sure & (alpha == _LARGE[0]), certain[todo])
        left = error[todo] > tol
        if rounds and left.any():
            missing = _owed(some.some(left), own[..., left], start[left])
            closer, todo = missing < distance[todo[left]], todo[left]
            nearest[todo[closer]], distance[todo[closer]] = start[left][closer], missing[closer]
    todo = np.flatnonzero((error > tol) & np.isfinite(distance))
    if len(todo):
        some, own = q.some(todo), rate[..., todo]
        found = _responses(some, own, nearest[todo], tol, rounds)
        missing = _owed(some, own, found)
        better = missing < error[todo]
        tasks[todo[better]], error[todo[better]] = found[better], missing[better]
        certain[todo[better]] = False
    return Found(tasks, np.maximum(error, infeasibility(q, fractions(q, tasks))), certain)


@dataclass
class _Pairs:
    """Those of a stack, in tasks over the user's largest gamma, as `choices.System`."""

    start: Index
    user: Index
    server: Index
    log_gain: Array
    per_task: Array
    row: Mask


def _greatest(q: Stack, rate: Array) -> tuple[Array, Mask]:
    """Tasks (B, N, K) of the greatest allocation, and where that is one: all need all, and no limit is met."""
    count, users, servers = (q.gamma.shape[k] for k in (2, 0, 1))
    tasks, known = np.zeros((count, users, servers)), ((q.use > 0) | ~(q.rows[:, None] & q.usable)).all(axis=(0, 1, 2))
    known &= (q.unused == 0).all(axis=0)
    if not known.any():
        return tasks, known
    some, own = q.some(known), rate[..., known]
    problem, user, server = np.nonzero(some.usable.transpose(2, 0, 1))
    here = user, server, problem
    pairs = _Pairs(
        np.searchsorted(problem * users + user, np.arange(some.usable.shape[2] * users + 1)),
        problem * users + user,
        problem * servers + server,
        np.log(own[here] / some.gamma[here] * some.size[here]),
        some.use[:, user, server, problem].T / some.size[here][:, None],
        some.rows.transpose(2, 1, 0).reshape(-1, len(some.rows)),
    )
    found = Choices(pairs, some.usable.shape[2])
    found.cool(1e-5)
    x, proved = found.greatest()
    z = np.zeros(some.gamma.shape)
    z[here] = x / some.size[here]
    tasks[known] = some.tasks(z)
    known[known] = proved & (tasks[known].sum(axis=2) < some.limit.T * (1 - 1e-9)).all(axis=1)
    return tasks, known


def _owed(q: Stack, rate: Array, tasks: Array) -> Array:
    """(B,), what servers owe; infinite where tasks are none."""
    none: Mask = np.asarray(~np.isfinite(tasks).all(axis=(1, 2)))
    return np.where(none, np.inf, owed(q, rate, np.where(none[:, None, None], 0.0, tasks), True))


def _responses(q: Stack, rate: Array, tasks: Array, tol: float, rounds: int) -> Array:
    """Servers respond in turn until what they owe is below `tol`, or for so many rounds.

    After a hundred they go beyond their responses, which ends long plateaus sooner, but in every tenth round.
    """
    here = np.ascontiguousarray(tasks.transpose(1, 2, 0))
    going = np.arange(here.shape[2])
    some, own = q, rate
    for k in range(rounds):
        if k % 10 == 0:
            left = owed(some, own, here[..., going].transpose(2, 0, 1), True) > tol
            if not left.any():
                break
            going, some, own = going[left], some.some(left), own[..., left]
        now = here[..., going]
        for i in range(now.shape[1]):
            wanted = response(some, own, i, np.maximum(now.sum(axis=1) - now[:, i], 0.0))
            now[:, i] = wanted if k < 100 or k % 10 == 9 else np.maximum(now[:, i] + 1.4 * (wanted - now[:, i]), 0.0)
        here[..., going] = now
    return here.transpose(2, 0, 1)


def _ends(q: Stack, rate: Array, tasks: Array, level: Array) -> tuple[Array, Mask]:
    """The limits on pairs with tasks and rows that are full and have a price `level` (B, K, R), and which are certain.

    Tasks (B, N, K) are NaN where Newton's method leads out of these.
    """
    pair = tasks > 0
    row = (q.used(fractions(q, tasks)) > 1 - _FULL).transpose(2, 1, 0) & (level > 0)
    found, certain = np.full(tasks.shape, np.nan), np.zeros(len(tasks), dtype=bool)
    size = np.stack([np.count_nonzero(pair, axis=(1, 2)), np.count_nonzero(row, axis=(1, 2))], axis=1)
    for kind in np.unique(size, axis=0):
        which = np.flatnonzero((size == kind).all(axis=1))
        most = max(200_000 // max(int(kind.sum()) ** 2, 1), 1)
        for first in range(0, len(which), most):
            chosen = which[first : first + most]
            system = _Limit(q.some(chosen), rate[..., chosen], tasks[chosen], level[chosen], pair[chosen], row[chosen])
            found[chosen], certain[chosen] = system.solved()
    return found, certain


class _Limit:
    """The limit's equations of problems with the same numbers of pairs and rows, in relative changes of both.

    Of users at their limit all tasks together are asked about only.
    """

    def __init__(self, q: Stack, rate: Array, tasks: Array, level: Array, pair: Mask, row: Mask) -> None:
        self.q, self.rate, count = q, rate, len(tasks)
        self.pair, self.row = pair, row
        self.at = np.arange(count)[:, None]
        self.user, self.server = (one.reshape(count, -1) for one in np.nonzero(pair)[1:])
        self.host, self.resource = (one.reshape(count, -1) for one in np.nonzero(row)[1:])
        self.x, self.v = tasks[self.at, self.user, self.server], level[self.at, self.host, self.resource]
        self.gamma = q.gamma[self.user, self.server, self.at]
        own = q.use[self.resource[:, :, None], self.user[:, None], self.server[:, None], self.at[:, :, None]]
        self.use = np.where(self.host[:, :, None] == self.server[:, None], own, 0.0)  # (B, rows, pairs)
        self.same = self.user[:, :, None] == self.user[:, None]
        self.of_user = self.user[:, None] == np.arange(pair.shape[1])[:, None]  # (B, N, pairs)
        self.limit = q.limit.T
        self.determined = np.zeros(count, dtype=bool)

    def equations(self) -> tuple[Array, Array]:
        """The matrix and the right-hand side."""
        total = np.matmul(self.same, self.x[:, :, None])[:, :, 0]
        part = self.use * (self.x / self.gamma)[:, None]
        whole = np.matmul(self.of_user, self.x[:, :, None])[:, :, 0]
        bound = whole >= self.limit * (1 - _FULL)
        priced = np.where(self.use > 0, self.v[:, :, None], 0.0)
        top = priced.max(axis=1, initial=0.0)
        asked = ~bound[self.at, self.user] & (top > 0)
        dearest = priced.argmax(axis=1) if priced.shape[1] else np.zeros(top.shape, dtype=np.intp)
        pairs, rows = self.x.shape[1], self.v.shape[1]
        matrix = np.zeros((len(self.x), pairs + rows, pairs + rows))
        matrix[:, :pairs, :pairs] = np.where(self.same & asked[:, :, None], self.x[:, None] / total[:, :, None], 0.0)
        if rows:
            matrix[self.at, np.arange(pairs), pairs + dearest] = asked
            matrix[:, pairs:, :pairs] = part
        worth = self.rate[self.user, self.server, self.at]
        rhs = np.concatenate(
            [
                np.where(asked, np.log(worth) - np.log(total * np.where(asked, top, 1.0)), 0.0),
                1 - part.sum(axis=2),
            ],
            axis=1,
        )
        if bound.any():
            limit = np.where(bound, self.limit, 1.0)[:, :, None]
            last = np.where(self.of_user & bound[:, :, None], self.x[:, None] / limit, 0.0)
            matrix = np.append(matrix, np.append(last, np.zeros((*last.shape[:2], rows)), axis=2), axis=1)
            rhs = np.append(rhs, np.where(bound, 1 - whole / limit[:, :, 0], 0.0), axis=1)
        return matrix, rhs

    @np.errstate(all="ignore")
    def solved(self) -> tuple[Array, Mask]:
        """Tasks and what is certain, as `_ends`."""
        good, going = np.ones(len(self.x), dtype=bool), np.ones(len(self.x), dtype=bool)
        for k in range(8):
            matrix, rhs = self.equations()
            good &= np.isfinite(rhs).all(axis=1) & np.isfinite(matrix).all(axis=(1, 2))
            going &= good & ((np.abs(rhs).max(axis=1, initial=0.0) >= _EXACT) | (k == 0))
            if not going.any():
                break
            step, apart = _least(matrix[going], rhs[going])
            self.determined[going] = apart > _FULL
            out = ~np.isfinite(step).all(axis=1) | (step.min(axis=1, initial=0.0) <= -0.9)
            good[np.flatnonzero(going)[out]] = False
            change = np.zeros(rhs.shape[:1] + step.shape[1:])
            change[going] = np.where(out[:, None], 0.0, step)
            self.x, self.v = self.x * (1 + change[:, : self.x.shape[1]]), self.v * (1 + change[:, self.x.shape[1] :])
        tasks, level = np.zeros(self.pair.shape), np.zeros(self.row.shape)
        tasks[self.at, self.user, self.server], level[self.at, self.host, self.resource] = self.x, self.v
        tasks = self._inside(tasks)
        certain = good & self.determined & self._strict(tasks, level)
        tasks[~good] = np.nan
        return tasks, certain

    def _inside(self, tasks: Array) -> Array:
        """Without that by what rounding a capacity or a limit is overused."""
        load = self.q.used(fractions(self.q, tasks)).max(axis=0)
        tasks = tasks / np.maximum(load, 1.0).T[:, None]
        over = np.where(self.limit > 0, tasks.sum(axis=2) / self.limit, 1.0)
        return np.asarray(tasks / np.maximum(over, 1.0)[:, :, None])

    def _strict(self, tasks: Array, level: Array) -> Mask:
        """Is everything decided at the limit itself, by more than rounding, and no task count met?

        Pairs without tasks are dearer than a task is worth there, rows without a price idle, the others have a part.
        Then equilibria at large alpha tend to it. Where that fails what decides them may be lost in rounding.
        """
        q, total = self.q, tasks.sum(axis=2)
        idle = self.row | ~q.rows.transpose(2, 1, 0) | (q.used(fractions(q, tasks)).transpose(2, 1, 0) <= 1 - _FULL)
        top = np.where(q.use.transpose(3, 1, 2, 0) > 0, np.where(self.row, level, 0.0)[:, None], 0.0).max(axis=3)
        dear = total[:, :, None] * top >= self.rate.transpose(2, 0, 1) * (1 + _FULL)
        apart = np.where(self.pair, tasks >= _FULL * total[:, :, None], dear | ~q.usable.transpose(2, 0, 1))
        free = (total < self.limit * (1 - _FULL)) | (q.unused.T > 0)
        return np.asarray(idle.all(axis=(1, 2)) & apart.all(axis=(1, 2)) & free.all(axis=1))


def _least(matrix: Array, rhs: Array) -> tuple[Array, Array]:
    """Least solutions, and a bound from below on the part of the least singular value in the largest, 0 for none."""
    apart, found = np.zeros(len(matrix)), np.zeros((len(matrix), matrix.shape[2]))
    if matrix.shape[1] == matrix.shape[2]:
        try:
            inverse = np.linalg.inv(matrix)
            size = np.linalg.norm(matrix, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
            apart = np.where(np.isfinite(size), 1 / np.maximum(size, 1.0), 0.0)
            found = np.matmul(inverse, rhs[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            pass
    for k in np.flatnonzero(apart < 1e-9):
        work = int(lapack.dgelsy_lwork(*matrix.shape[1:], 1, _TIE)[0])
        ties = np.zeros((matrix.shape[2], 1), dtype=np.int32)
        found[k] = lapack.dgelsy(matrix[k], rhs[k], ties, _TIE, work)[1][: matrix.shape[2]]
    return found, apart
