"""Compiled: PS-DSF of one small cluster: an equilibrium at large alpha, what that tends to, and best responses.

At alpha = infinity pairs with tasks and rows with a price are, as a rule, those of a large alpha. With them the limit
is a system of equations: `x_n v_ir = phi_n gamma_ni` for every pair with tasks, r the dearest resource that n needs on
i, and `sum_n D_nir z_ni = 1` of the rows, which Newton's method solves to the last digit. Where that fails, as with the
ties of zero demands, servers respond in turn, each with its max-min allocation, until none owes anybody anything. The
limit's certificate, `exploitability`, decides.
"""

from __future__ import annotations

import numpy as np

from ..._loops import compiled
from ._servers import exploitability, filled
from .options import LIMIT


@compiled
def _numbered(q, tasks, log_rows):  # type: ignore[no-untyped-def]
    """The unknowns: numbers of pairs with tasks (users, servers) and of full rows with a price, -1 for others."""
    users, servers, resources = q.use.shape
    pair, row, count = np.full((users, servers), -1), np.full((servers, resources), -1), 0
    for n in range(users):
        for i in range(servers):
            if tasks[n, i] > 0:
                pair[n, i] = count
                count += 1
    for i in range(servers):
        for r in range(resources):
            used = 0.0
            for n in range(users):
                used += q.use[n, i, r] * tasks[n, i] / q.gamma[n, i] if tasks[n, i] > 0 else 0.0
            if used > 1 - LIMIT.full and log_rows[i, r] > -np.inf:
                row[i, r] = count
                count += 1
    return pair, row, count


@compiled
def _equations(q, tasks, level, pair, row, matrix, rhs):  # type: ignore[no-untyped-def]
    """Fill the limit's equations, linear in relative changes of tasks and of prices `level` (servers, resources).

    Of users at their limit only all tasks are asked about, in the last rows.
    """
    users, servers, resources = q.use.shape
    matrix[:], rhs[:] = 0.0, 0.0
    for i in range(servers):
        for r in range(resources):
            if row[i, r] >= 0:
                rhs[row[i, r]] = 1.0
    for n in range(users):
        total, last = tasks[n].sum(), len(rhs) - users + n
        bound = total >= q.limit[n] * (1 - LIMIT.full)
        rhs[last] = 1 - total / q.limit[n] if bound else 0.0
        for i in range(servers):
            a = pair[n, i]
            if a < 0:
                continue
            top, dearest = 0.0, -1
            for r in range(resources):
                b = row[i, r]
                if b >= 0 and q.use[n, i, r] > 0:
                    matrix[b, a] = q.use[n, i, r] * tasks[n, i] / q.gamma[n, i]
                    rhs[b] -= matrix[b, a]
                    if level[i, r] > top:
                        top, dearest = level[i, r], b
            if bound:
                matrix[last, a] = tasks[n, i] / q.limit[n]
            elif dearest >= 0:
                for j in range(servers):
                    if pair[n, j] >= 0:
                        matrix[a, pair[n, j]] = tasks[n, j] / total
                matrix[a, dearest] = 1.0
                rhs[a] = np.log(q.weight[n] * q.gamma[n, i]) - np.log(total * top)


@compiled
def _limit(q, tasks, level, pair, row, count):  # type: ignore[no-untyped-def]
    """Newton's method for the limit on these pairs and rows, in place; -1 where it leads out of them.

    1 where the equations determine all tasks and prices, else 0.
    """
    users, servers, resources = q.use.shape
    matrix, rhs, determined = np.empty((count + users, count)), np.empty(count + users), 0
    for k in range(LIMIT.steps):
        _equations(q, tasks, level, pair, row, matrix, rhs)
        if not np.isfinite(rhs).all() or not np.isfinite(matrix).all():
            return -1
        if np.abs(rhs).max() < LIMIT.exact and k > 0:
            break
        step, _, rank, values = np.linalg.lstsq(matrix, rhs, LIMIT.tie)
        determined = int(rank == count and values[-1] > LIMIT.determined * values[0])
        if not np.isfinite(step).all() or step.min() <= -LIMIT.fall:
            return -1
        for n in range(users):
            for i in range(servers):
                tasks[n, i] *= 1 + step[pair[n, i]] if pair[n, i] >= 0 else 1.0
        for i in range(servers):
            for r in range(resources):
                level[i, r] *= 1 + step[row[i, r]] if row[i, r] >= 0 else 1.0
    return determined


@compiled
def _inside(q, tasks):  # type: ignore[no-untyped-def]
    """Take away by what rounding a capacity or a limit is overused."""
    for i in range(tasks.shape[1]):
        most = 1.0
        for r in range(q.capacity.shape[1]):
            if q.capacity[i, r] > 0:
                most = max(most, (tasks[:, i] * q.demand[:, r]).sum() / q.capacity[i, r])
        tasks[:, i] /= most
    for n in range(len(tasks)):
        tasks[n] /= max(1.0, tasks[n].sum() / q.limit[n]) if q.limit[n] > 0 else 1.0


@compiled
def _responses(q, tol, rounds, tasks):  # type: ignore[no-untyped-def]
    """Servers respond in turn, in place, until what they owe is below `tol` or falls no more; what is owed then."""
    missing, own = exploitability(q, tasks, True, q.limit), np.empty(len(tasks))
    for k in range(rounds):
        if missing <= tol:
            break
        for i in range(tasks.shape[1]):
            elsewhere = np.zeros(len(tasks))
            for n in range(len(tasks)):
                elsewhere[n] = max(tasks[n].sum() - tasks[n, i], 0.0)
            filled(q, i, elsewhere, q.limit, own)
            tasks[:, i] = own
        if k % LIMIT.look == LIMIT.look - 1:
            missing = exploitability(q, tasks, True, q.limit)
    return exploitability(q, tasks, True, q.limit)


@compiled
def _strict(q, tasks, level, pair, row):  # type: ignore[no-untyped-def]
    """Is everything decided at the limit itself, by more than rounding, and no task count met?

    Pairs without tasks are dearer than a task is worth there, rows without a price idle, the others have a part. Then
    equilibria at large alpha tend to it. Where that fails what decides them may be lost in rounding.
    """
    users, servers, resources = q.use.shape
    for i in range(servers):
        for r in range(resources):
            used = 0.0
            for n in range(users):
                used += q.use[n, i, r] * tasks[n, i] / q.gamma[n, i] if tasks[n, i] > 0 else 0.0
            if q.row[i, r] and row[i, r] < 0 and used > 1 - LIMIT.clear:
                return False
    for n in range(users):
        total = tasks[n].sum()
        if total >= q.limit[n] * (1 - LIMIT.clear):
            return False
        for i in range(servers):
            if q.gamma[n, i] <= 0:
                continue
            top = 0.0
            for r in range(resources):
                if row[i, r] >= 0 and q.use[n, i, r] > 0:
                    top = max(top, level[i, r])
            if pair[n, i] >= 0 and tasks[n, i] < LIMIT.clear * total:
                return False
            if pair[n, i] < 0 and total * top < q.weight[n] * q.gamma[n, i] * (1 + LIMIT.clear):
                return False
    return True


@compiled
def psdsf(q, alpha, tol, rounds, found, log_rows, best, certain, tasks):  # type: ignore[no-untyped-def]
    """Better tasks (users, servers) from an equilibrium at `alpha`; exploitability, and is it the limit for certain?

    From tasks `found` and log prices of whole capacities (servers, resources), by at most so many rounds of responses.
    """
    followed, level = found.copy(), np.exp(log_rows / alpha)
    pair, row, count = _numbered(q, followed, log_rows)
    determined = _limit(q, followed, level, pair, row, count)
    if determined >= 0:
        _inside(q, followed)
        missing = exploitability(q, followed, True, q.limit)
        if missing < best:
            best, tasks[:], certain = missing, followed, determined == 1 and alpha == LIMIT.large[0]
            certain = certain and _strict(q, followed, level, pair, row)
    if best > tol:
        missing = _responses(q, tol, rounds, found)
        if missing < best:
            best, tasks[:], certain = missing, found, False
    return best, certain
