r"""PS-DSF for positive demands, of one problem or a stack: Newton's method on smoothed choices, then exactly.

Where every user of a server needs all of its resources, all its users have one level there, so that the unknowns are
prices `p_i`, minus the logs of the levels. Choices are smoothed by a temperature tau and the fullest resource by
rho = 9 tau:

.. math::
    l_{ni} = \log(\phi_n \gamma_{ni}) - p_i, \quad X_n = e^{\tau \log \sum_i e^{l_{ni}/\tau}}, \quad
    x_{ni} = X_n \mathrm{softmax}(l_n/\tau)_i, \quad F_i(p) = \rho \log \sum_r u_{ir}^{1/\rho} = 0

Use u falls in a server's own price and rises in all others' (tau < 1), and F(p + t) = F(p) - t: minus the Jacobian is
an M-matrix whose rows add up to one, so that Newton's equations can always be solved. tau falls, faster while that is
easy, and goes back where it is not; prices are extrapolated in tau.

At a low tau it is known which pairs have tasks, the ties of users and servers. Max-min on ties, by the simplex method
or an interior point, says how far levels rise; servers stop where somebody of a higher level would come to them, who is
tied to them then. Where nobody would, the prices of these programs prove that there is no greater allocation
(docs/psdsf.md).

Users, servers and pairs of a stack follow each other, problem after problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..base.errors import SolverError
from ..base.libraries import csgraph, sp
from ..model._arrays import Array, Index, Mask
from ..model.linear import minimise
from ..model.problem import Problem
from . import simplex
from .algebra import Pairs
from .factors import stack_solved
from .judge import infeasibility
from .leximin import Levels
from .maxmin import fractions, owed
from .sparse import Factors, Order, ordered
from .system import stacked

#: tau at first; the temperature of resources in tau; most Newton steps at one tau.
_FIRST, _RESOURCES, _STEPS = 0.12, 9.0, 24
#: Pairs worse by so many tau are left out.
_NEAR = 100.0
#: Most numbers in a tableau of ties: linear programs of sparse matrices are faster beyond it. Most ties of users who
#: have several in these: an interior point, whose steps grow less, is faster beyond them.
_TABLEAU, _MANY = 5_000, 2_000
#: Larger parts may be ties; levels that differ by less, in logs, are the same, and parts below it none.
_TIED, _SAME = 3e-7, 1e-10
#: Most ties, times the users who would come to a server on the way to levels that fit: each such user may take a round.
_CROWD = 1e7


class System(Protocol):
    """Data of pairs, sorted by user and then by server; every user has a pair."""

    start: Index  # (users + 1,)
    user: Index  # (pairs,)
    server: Index  # (pairs,)
    log_gain: Array  # (pairs,), log of phi gamma
    per_task: Array  # (pairs, resources), of whole servers
    row: Mask  # (servers, resources), rows that some pair uses
    inverse: Array  # (servers, resources), 1/capacity, 0 for none


@dataclass
class Users:
    """Pairs of users as a `System`, in any units of theirs."""

    start: Index
    user: Index
    server: Index
    log_gain: Array
    per_task: Array
    row: Mask
    inverse: Array


class Choices:
    """Smoothed allocations of `count` problems of one shape, at ever lower temperatures.

    Attributes
    ----------
    price : (servers,), log p
    tau : (problems,), as low as each came
    total, used : (users,), tasks, and (servers, resources) of whole servers
    steps : Newton's, of all problems together
    """

    def __init__(self, q: System, count: int = 1) -> None:
        self.q, self.count, self.steps = q, count, 0
        self.users, self.servers = (len(q.start) - 1) // count, len(q.row) // count
        self.served = np.bincount(q.server, minlength=len(q.row)) > 0
        self.tau, self.factor = np.full(count, _FIRST), np.full(count, 0.9)
        # At first every server is the best of some user, or would be were it not for others, and nothing is overused.
        self.price = np.where(self.served, -np.inf, 0.0)
        best = np.maximum.reduceat(q.log_gain, q.start[:-1])
        np.maximum.at(self.price, q.server, q.log_gain - best[q.user])
        self._look()
        highest = np.where(self.served, self._excess(), -np.inf).reshape(count, -1).max(axis=1)
        self.price = self.price + np.where(self.served, np.repeat(highest, self.servers), 0.0)
        self.ended = np.zeros(count, dtype=bool)
        self.before = 2 * self.tau, self.price  # tau and prices of the last but one

    def _of(self, problem: Array, size: int) -> Array:
        """Values of problems repeated on their users or servers."""
        return problem if self.count == 1 else np.repeat(problem, size)

    def _look(self) -> None:
        """List the pairs that choices may fall on at these prices, and nearby."""
        q, tau = self.q, self._of(self.tau, self.users)
        level = q.log_gain - self.price[q.server]
        least = np.maximum.reduceat(level, q.start[:-1]) - _NEAR * tau
        self.pairs = np.flatnonzero(level > least[q.user])
        self.user, self.server = q.user[self.pairs], q.server[self.pairs]
        self.start = np.searchsorted(self.user, np.arange(len(q.start) - 1))
        self.gain, self.per_task = q.log_gain[self.pairs], q.per_task[self.pairs]
        self.rows = (self.server[:, None] * q.row.shape[1] + np.arange(q.row.shape[1])).ravel()
        self.order: Order | None = None

    def _excess(self) -> Array:
        """Choices at the prices, and F (servers,)."""
        tau, rho = self._of(self.tau, self.users), _RESOURCES * self._of(self.tau, self.servers)[:, None]
        level = self.gain - self.price[self.server]
        best = np.maximum.reduceat(level, self.start)
        level -= best[self.user]
        self.steep = 1 / (tau if self.count == 1 else tau[self.user])
        level *= self.steep
        part = np.exp(level, out=level)
        whole = np.add.reduceat(part, self.start)
        self.total = np.exp(best + tau * np.log(whole))
        part /= whole[self.user]
        self.near, self.tasks = part, part * self.total[self.user]
        row = self.q.row
        used = np.bincount(self.rows, (self.per_task * self.tasks[:, None]).ravel(), row.size).reshape(row.shape)
        self.used = np.maximum(used, 1e-300)
        log_used = np.log(self.used)
        top = log_used.max(axis=1, keepdims=True)
        share = np.exp((log_used - top) / rho)
        sums = share.sum(axis=1, keepdims=True)
        self.weight = share / (sums * self.used)
        return np.where(self.served, (top + rho * np.log(sums))[:, 0], 0.0)

    def _step(self, excess: Array, some: Index) -> Array:
        """Newton's step of the prices of some problems, (some, servers)."""
        self.steps += 1
        shape = self.count, self.users, self.servers
        cost = self.tasks * np.einsum("pr,pr->p", self.per_task, self.weight[self.server])
        sums = np.bincount(self.server, cost * (self.steep * (1 - self.near) + self.near), len(self.served))
        own: Array = np.where(sums > 0, sums, 1.0).reshape(self.count, -1)[some]
        wanted: Array = excess.reshape(self.count, -1)[some]
        spread = (self.steep - 1) * cost
        few = 4 * self.users < self.servers
        if self.count == 1 and not few and 5 * len(self.pairs) + 20_000 < self.users * self.servers:
            if self.order is None:
                self.order = ordered(self.user, self.server, self.servers)
            left = (spread / own[0, self.server])[self.order.member, None]
            return Factors(self.order, left, self.near[self.order.member, None]).solve(wanted[0] / own[0])[None]
        cell = self.user * self.servers + (self.server if self.count == 1 else self.server % self.servers)
        paid, part = np.zeros((2, self.count * self.users * self.servers))
        paid[cell], part[cell] = spread, self.near
        paid, part = paid.reshape(shape)[some], part.reshape(shape)[some]
        if few:
            return self._by_users(paid, part, own, wanted)
        matrix = -np.matmul(paid.swapaxes(1, 2), part)
        np.einsum("bii->bi", matrix)[:] = own
        return stack_solved(matrix, wanted[:, :, None])[:, :, 0]

    @staticmethod
    def _by_users(paid: Array, part: Array, own: Array, wanted: Array) -> Array:
        """The same where users are few: the matrix is `diag(own + sum_n paid part) - paid' part`."""
        own = own + (paid * part).sum(axis=1)
        per, step = part / own[:, None], np.zeros(wanted.shape)
        matrix = np.eye(part.shape[1]) - per @ paid.swapaxes(1, 2)
        for _ in range(2):  # the second time for what rounding left
            left = wanted - own * step + ((part @ step[:, :, None]).swapaxes(1, 2) @ paid)[:, 0]
            of_users = stack_solved(matrix, per @ left[:, :, None])
            step = step + (left + (of_users.swapaxes(1, 2) @ paid)[:, 0]) / own
        return step

    @np.errstate(all="ignore")
    def cool(self, last: float) -> None:
        """Lower tau to `last`, as far as each problem can be solved."""
        while (going := ~self.ended & (self.tau > last)).any():
            tau, price, factor = self.tau, self.price, self.factor
            self.tau = np.where(going, np.maximum(factor * tau, 0.5 * last), tau)
            way = (self.tau - tau) / (tau - self.before[0])
            self.price = price + self._of(way, self.servers) * (price - self.before[1])
            taken = self._solved(going.copy())
            found = taken >= 0
            on_found = np.repeat(found, self.servers)
            self.before = np.where(found, tau, self.before[0]), np.where(on_found, price, self.before[1])
            self.tau, self.price = np.where(found, self.tau, tau), np.where(on_found, self.price, price)
            easier = np.clip(factor * np.where(taken <= 6, 0.8, np.where(taken > 10, 1.3, 1.0)), 0.05, 0.9)
            self.factor = np.where(found, easier, np.where(going, np.sqrt(factor), factor))
            self.ended |= going & (self.factor > 0.97)
        self._look()
        self._excess()

    def _solved(self, going: Mask) -> Array:
        """Solve for `price` at the current tau; the number of evaluations by problem, -1 where it fails."""
        self._look()
        taken, norm, length = np.full(self.count, -1), np.full(self.count, np.inf), np.ones(self.count)
        self.price = self.price.copy()
        price = self.price.reshape(self.count, -1)
        sufficient = np.maximum(1e-2 * np.minimum(1, 10 * self.tau), 3e-15 / self.tau)
        here, step = price.copy(), np.zeros(price.shape)
        for k in range(_STEPS):
            excess = self._excess().reshape(self.count, -1)
            size = np.sqrt((excess**2).sum(axis=1))
            good = going & (size <= (1 - 0.1 * length) * norm)
            done = good & (np.abs(excess).max(axis=1) < sufficient)
            taken[done] = k
            going &= ~done & (good | (length > 1e-3))
            if not going.any():
                break
            some, shorter = np.flatnonzero(good & going), going & ~good
            if len(some):
                here[some], norm[some], length[some] = price[some], size[some], 1.0
                step[some] = self._step(excess.ravel(), some)
            length[shorter] *= 0.4
            price[going] = (here + length[:, None] * step)[going]
        return taken

    def tied(self) -> Array:
        """Round prices (servers,) to values at which ties are exact.

        Ties of the largest parts count, as far as they do not contradict each other: those of a forest.
        """
        users, servers = len(self.total), len(self.price)
        near, nodes = np.flatnonzero(self.near > _TIED), users + servers
        ends = self.user[near], users + self.server[near]
        graph = sp.csr_array((1 - np.log(self.near[near]), ends), (nodes, nodes))
        forest = csgraph.minimum_spanning_tree(graph).tocoo()
        # SciPy's indices are of 32 bits, which the number of a pair of nodes may exceed.
        edges = near[
            np.searchsorted(ends[0] * nodes + ends[1], np.sort(forest.row.astype(np.intp) * nodes + forest.col))
        ]
        user, server, gain = self.user[edges], users + self.server[edges], self.gain[edges]
        tree = self._connected(self.user[edges], self.server[edges])
        roots = np.zeros(nodes - len(edges), dtype=np.intp)
        roots[tree] = np.arange(nodes)  # servers, which are the last
        # Logs of tasks and prices add up to gains on ties, and roots have their prices.
        value, known = np.append(np.zeros(users), self.price), np.bincount(roots, minlength=nodes) > 0
        while (new := known[user] != known[server]).any():
            new = np.flatnonzero(new)
            there, here = np.where(known[user[new]], (server[new], user[new]), (user[new], server[new]))
            value[there] = gain[new] - value[here]
            known[there] = True
        return value[users:]

    @np.errstate(all="ignore")
    def greatest(self, rounds: int = 60) -> tuple[Array, Mask]:
        """Tasks (pairs,) of the greatest allocation, and of which problems it was found in so many rounds."""
        q, price, tasks = self.q, self.tied(), np.zeros(len(self.q.server))
        of_pair, tied = q.user // self.users, np.zeros(len(tasks), dtype=bool)
        found, going = np.zeros(self.count, dtype=bool), np.ones(self.count, dtype=bool)
        for _ in range(rounds):
            level = q.log_gain - price[q.server]
            best = np.maximum.reduceat(level, q.start[:-1])
            before, tied = tied, level > best[q.user] - _SAME
            fresh = np.ones(len(tasks), dtype=bool)
            if before.any():  # servers that ties connect rise together, and as before where these are the same
                tree = self._connected(q.user[tied], q.server[tied])[q.user]
                fresh = np.isin(tree, tree[tied & ~before])
            pairs, total = np.flatnonzero(tied & fresh), np.exp(best)
            if not len(pairs):
                break
            part, solved = self._fair(pairs, total)
            tasks[fresh] = 0.0
            tasks[pairs] = part * total[q.user[pairs]]
            rise, risen = np.add.reduceat(tasks, q.start[:-1]) / total, np.ones(len(price))
            runs = tasks > _SAME * total[q.user]
            risen[q.server[runs]] = rise[q.user[runs]]
            step, after = np.log(risen), best + np.log(np.where(rise > 0, rise, 1.0))
            above = level + step[q.server] - after[q.user]
            comes = (above > _SAME) & going[of_pair]
            room, length = (best[q.user] - level)[comes], np.ones(self.count)
            np.minimum.at(length, of_pair[comes], room / (room + above[comes]))
            ties, coming = (np.bincount(of_pair[which], minlength=self.count) for which in (pairs, comes))
            going &= solved & (ties * coming <= _CROWD)
            found |= going & (length == 1)
            going &= length < 1
            price = price - self._of(np.where(going, length, 0.0), self.servers) * step
        idle = q.row.any(axis=1) & (np.bincount(q.server, tasks, len(price)) <= 0)
        return tasks, found & ~idle.reshape(self.count, -1).any(axis=1)

    def _connected(self, user: Index, server: Index) -> Index:
        """Label connected components of users and servers joined by ties, (users + servers,)."""
        nodes, users = len(self.total) + len(self.price), len(self.total)
        ties = sp.csr_array((np.ones(len(user)), (user, users + server)), (nodes, nodes))
        return np.asarray(csgraph.connected_components(ties, directed=False)[1])

    def _fair(self, pairs: Index, total: Array) -> tuple[Array, Mask]:
        """Lexicographic max-min of parts of `total` (users,), of some problems, on ties, and where that is found."""
        q = self.q
        some, problem = np.unique(q.user[pairs] // self.users, return_inverse=True)
        count, resources = np.bincount(problem), q.row.shape[1]
        shape = len(some), int(count.max())
        if (self.users + self.servers * resources) * shape[1] > _TABLEAU:
            several = np.count_nonzero(np.bincount(q.user[pairs])[q.user[pairs]] > 1)
            return (self._programs if several < _MANY else self._levels)(pairs, total)
        column = np.arange(len(pairs)) - np.repeat(np.cumsum(count) - count, count)
        user, server = q.user[pairs], q.server[pairs]
        rows, levels = (np.zeros((shape[0], k, shape[1])) for k in (self.servers * resources, self.users))
        for r in range(resources):
            rows[problem, server % self.servers * resources + r, column] = q.per_task[pairs, r] * total[user]
        levels[problem, user % self.users, column] = 1.0
        found = simplex.lexicographic(rows, levels, np.ones(levels.shape[:2]))
        good = np.ones(self.count, dtype=bool)
        good[some] = found.rounds >= 0
        return found.columns[problem, column], good

    def _programs(self, left: Index, total: Array) -> tuple[Array, Mask]:
        """The same by linear programs of sparse matrices.

        .. math::
            \\max \\sum_g s_g, \\quad \\sum_i f_{ni} = s_{g(n)}, \\quad \\sum_n f_{ni} X_n a_{nir} \\le 1,

        g being groups of servers that ties connect; f of who has one tie is `s_g`, and no unknown. Who may go to a
        server without a price rises further, there.
        """
        q, users, servers, result = self.q, len(total), len(self.price), np.zeros(len(self.q.server))
        given, resources = left, q.row.shape[1]
        while len(left):
            user, server = q.user[left], q.server[left]
            group = self._connected(user, server)
            groups, of_pair = np.unique(group[user], return_inverse=True)
            split = np.flatnonzero(np.bincount(user)[user] > 1)
            who, number = np.unique(user[split], return_inverse=True)
            column = len(split) + of_pair
            column[split] = np.arange(len(split))
            use = (q.per_task[left] * total[user][:, None]).ravel()
            at = (server[:, None] * resources + np.arange(resources)).ravel(), np.repeat(column, resources)
            uses = sp.csr_array((use, at), (servers * resources, len(split) + len(groups)))
            of_user = np.searchsorted(groups, group[who])
            ends = np.append(number, np.arange(len(who))), np.append(column[split], len(split) + of_user)
            sums = sp.csr_array((np.repeat([1.0, -1.0], [len(split), len(who)]), ends), (len(who), uses.shape[1]))
            cost = np.repeat([0.0, -1.0], [len(split), len(groups)])
            answer = minimise(cost, uses, np.ones(uses.shape[0]), equal=sums, method="highs-ds")
            if answer is None:
                return result[given], np.zeros(self.count, dtype=bool)
            part, rise = np.maximum(answer.x[column], 0.0), answer.x[len(split) :]
            part[split] *= (rise[of_user] / np.maximum(np.bincount(number, part[split]), 1e-300))[number]
            price = answer.prices.reshape(servers, resources).sum(axis=1)
            free = price < 1e-9 / np.bincount(group[users:], minlength=group.max() + 1)[group[users:]]
            rises = np.zeros(users, dtype=bool)
            rises[user[free[server]]] = True
            result[left] = np.where(rises[user], 0.0, part)
            left = left[rises[user] & free[server]]
        return result[given], np.ones(self.count, dtype=bool)

    def _levels(self, pairs: Index, total: Array) -> tuple[Array, Mask]:
        """The same by an interior point (`Levels`), where all who have but one tie, to one server, are one user."""
        user, server = self.q.user[pairs], self.q.server[pairs]
        ties, servers, inverse = np.bincount(user)[user], len(self.price), self.q.inverse[server]
        number = np.unique(np.where(ties > 1, user, len(total) + server), return_inverse=True)[1]
        wanted = np.divide(self.q.per_task[pairs], inverse, out=np.zeros(inverse.shape), where=inverse > 0)
        wanted *= (total[user] / ties)[:, None]
        demand = np.stack([np.bincount(number, of_pairs).astype(float) for of_pairs in wanted.T], axis=1)
        cells, place = np.unique(number * servers + server, return_inverse=True)
        free, none = np.full(len(demand), np.inf), np.zeros(len(demand))
        try:
            found = Levels(Pairs(cells // servers, cells % servers, demand, self.q.inverse), free, none)
        except SolverError:
            return np.zeros(len(pairs)), np.zeros(self.count, dtype=bool)
        return found.amounts()[place], np.ones(self.count, dtype=bool)


def greatest(problems: list[Problem]) -> tuple[Array, Array]:
    """Solve a stack of problems: tasks (B, N, K) of their greatest PS-DSF allocations, and exploitabilities (B,).

    Infinite where there is none for certain: somebody can do without a resource, runs nowhere or meets a task count.
    """
    q = stacked(problems, np.ones(len(problems)))
    rate = q.gamma * np.stack([one.criterion.weight for one in problems], axis=-1)[:, None]
    count, users, servers = (q.gamma.shape[k] for k in (2, 0, 1))
    tasks, known = np.zeros((count, users, servers)), ((q.use > 0) | ~(q.rows[:, None] & q.usable)).all(axis=(0, 1, 2))
    known &= (q.unused == 0).all(axis=0)
    if known.any():
        some, own = q.some(known), rate[..., known]
        capacity = [problems[k].cluster.capacity for k in np.flatnonzero(known)]
        problem, user, server = np.nonzero(some.usable.transpose(2, 0, 1))
        here = user, server, problem
        pairs = Users(
            np.searchsorted(problem * users + user, np.arange(some.usable.shape[2] * users + 1)),
            problem * users + user,
            problem * servers + server,
            np.log(own[here] / some.gamma[here] * some.size[here]),
            some.use[:, user, server, problem].T / some.size[here][:, None],
            some.rows.transpose(2, 1, 0).reshape(-1, len(some.rows)),
            1 / np.concatenate([np.where(c > 0, c, np.inf) for c in capacity]),
        )
        found = Choices(pairs, some.usable.shape[2])
        found.cool(1e-5)
        x, proved = found.greatest()
        z = np.zeros(some.gamma.shape)
        z[here] = x / some.size[here]
        tasks[known] = some.tasks(z)
        known[known] = proved & (tasks[known].sum(axis=2) < some.limit.T * (1 - 1e-9)).all(axis=1)
    tasks[~known] = 0.0
    error = np.maximum(owed(q, rate, tasks, True), infeasibility(q, fractions(q, tasks)))
    return tasks, np.where(known, error, np.inf)
