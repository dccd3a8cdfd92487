r"""PS-DSF for positive demands, of one problem or a stack: Newton's method on smoothed choices, then linear programs.

Where every user of a server demands all resources of the server, all users with tasks on server i have the same level,
:math:`l_i = X_n / (\phi_n \gamma_{ni})`. The unknowns are the log prices :math:`\pi_i = -\log l_i`. User n chooses the
servers on which it would have the most tasks, :math:`e^{a_{ni}}`. This choice is smoothed by a temperature tau, and the
maximum over a server's resources by :math:`\rho = 9 \tau`. With the use y of rows, as a fraction of capacities,

.. math::
    a_{ni} = \log(\phi_n \gamma_{ni}) - \pi_i, \quad X_n = e^{\tau \log \sum_i e^{a_{ni}/\tau}}, \quad
    x_{ni} = X_n \mathrm{softmax}(a_n/\tau)_i, \quad F_i(\pi) = \rho \log \sum_r y_{ir}^{1/\rho} = 0

The use of a server decreases in its own price and increases in all other prices (tau < 1), and for every number c
:math:`F(\pi + c) = F(\pi) - c`: minus the Jacobian is an M-matrix with row sums of one, so that Newton's equations are
regular. tau decreases by a factor that adapts to the number of Newton steps, from prices that are extrapolated in tau.

At a low tau the pairs with tasks are identified: the ties of users and servers. Max-min over the split of tasks among
ties, by the simplex method or an interior-point method, determines how much the levels of servers can be raised
together. Levels are raised until a user would prefer another server, to which it is tied from then on. Where no level
can be raised, the dual solutions of these max-min problems prove that no PS-DSF allocation is greater (docs/psdsf.md).

Users, servers and pairs of the problems of a stack are concatenated.
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
from .accuracy import DECREASE, NEGLIGIBLE, REFINED, SHORTER, SHORTEST, SINGLE_ROUNDING
from .algebra import Pairs
from .factors import TINY, stack_solved
from .judge import infeasibility
from .leximin import Levels
from .maxmin import fractions, largest_rise
from .sparse import Factors, Order, ordered
from .system import AT_LIMIT, stacked

#: Initial tau (`_FIRST`), ratio rho / tau (`_RESOURCES`), and largest number of evaluations of Newton's method at one
#: tau (`EVALUATIONS`).
_FIRST, _RESOURCES, EVALUATIONS = 0.12, 9.0, 24
#: Pairs whose :math:`a_{ni}` is less than the user's largest by more than this multiple of tau are left out: their part
#: of the user's tasks, e^-100, is negligible.
_NEAR = 100.0
#: Factor by which tau is multiplied: its initial and largest value (`_SLOWEST`), its smallest value (`_FASTEST`), and
#: the value above which iterations of a problem end, since tau hardly decreases (`_STOPPED`).
_SLOWEST, _FASTEST, _STOPPED = 0.9, 0.05, 0.97
#: After at most `_FEW_EVALUATIONS` evaluations this factor is multiplied by `_EASIER`, after more than
#: `_MANY_EVALUATIONS` by `_HARDER`.
_FEW_EVALUATIONS, _EASIER, _MANY_EVALUATIONS, _HARDER = 6, 0.8, 10, 1.3
#: Largest |F| at which Newton's method ends at a large tau, where points only serve as starts (`_LOOSE_RESIDUAL`); and
#: rounding error of F, times tau, since choices depend on prices over tau (`_ROUNDING`).
_LOOSE_RESIDUAL, _ROUNDING = 1e-2, 3e-15
#: Ratio of servers to users above which Newton's equations are reduced to users.
_MORE_SERVERS = 4
#: The matrix is factored in sparse lists if the number of users times that of servers exceeds `_LIST_COST` times the
#: number of pairs plus `_LIST_OVERHEAD`; both constants were measured.
_LIST_COST, _LIST_OVERHEAD = 5, 20_000
#: Last tau of stacks, at which ties are identified.
LAST_TAU = 1e-5
#: Tasks are split among ties by the dense simplex method up to `_TABLEAU` entries of its tableau. For larger problems
#: sparse linear programs are used if users with several ties have less than `_MANY` ties together, and otherwise an
#: interior-point method.
_TABLEAU, _MANY = 5_000, 2_000
#: Part of a user's tasks above which a pair may be a tie (`_TIED`); difference of logs of tasks below which pairs are
#: tied (`_SAME`).
_TIED, _SAME = 3e-7, REFINED
#: Error of rises between ties, which an interior-point method leaves where exact splits have none.
_SPLIT_ERROR = SINGLE_ROUNDING
#: Default number of rounds in which levels are raised on ties.
_ROUNDS = 60
#: Rounds end if the product of the numbers of ties and of pairs about to become ties exceeds this bound, since each of
#: these pairs may need a round.
_CROWD = 1e7


class System(Protocol):
    """Data of pairs, sorted by user and then by server; every user has at least one pair."""

    start: Index  # (users + 1,)
    user: Index  # (pairs,)
    server: Index  # (pairs,)
    log_gain: Array  # (pairs,), log of phi gamma
    per_task: Array  # (pairs, resources), fraction of a capacity that a task uses
    row: Mask  # (servers, resources), rows that some pair uses
    inverse: Array  # (servers, resources), 1/capacity, 0 for a capacity of 0


@dataclass
class Users:
    """Pairs as a `System`, with tasks in an arbitrary unit of each user."""

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
    price : (servers,), log prices pi
    tau : (problems,), lowest temperature at which the equations were solved
    total : (users,), tasks X
    used : (servers, resources), use y as a fraction of capacities
    steps : number of Newton steps, of all problems together
    """

    def __init__(self, q: System, count: int = 1, start: Choices | None = None) -> None:
        """Begin at prices at which no server is overused, or at those of a problem with other users, `start`."""
        self.q, self.count, self.steps = q, count, 0
        self.users, self.servers = (len(q.start) - 1) // count, len(q.row) // count
        self.served = np.bincount(q.server, minlength=len(q.row)) > 0
        self.tau, self.factor = np.full(count, _FIRST), np.full(count, _SLOWEST)
        if start is not None:
            self.tau, self.factor = start.tau, start.factor
            self.price: Array = start.price
        else:
            # At the initial prices each server is as good for one of its users as that user's best server, and no
            # server is overused.
            self.price = np.where(self.served, -np.inf, 0.0)
            best = np.maximum.reduceat(q.log_gain, q.start[:-1])
            np.maximum.at(self.price, q.server, q.log_gain - best[q.user])
            self._look()
            highest = np.where(self.served, self._excess(), -np.inf).reshape(count, -1).max(axis=1)
            self.price = self.price + np.where(self.served, np.repeat(highest, self.servers), 0.0)
        self.ended = np.zeros(count, dtype=bool)
        self.before = 2 * self.tau, self.price  # tau and prices of the previous point

    def _of(self, problem: Array, size: int) -> Array:
        """Values (problems,) repeated for the `size` users or servers of each problem."""
        return problem if self.count == 1 else np.repeat(problem, size)

    def _look(self) -> None:
        """List the pairs that may have tasks at prices near the current ones."""
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
        """Evaluate choices at the current prices, and return F (servers,)."""
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
        self.used = np.maximum(used, TINY)
        log_used = np.log(self.used)
        top = log_used.max(axis=1, keepdims=True)
        share = np.exp((log_used - top) / rho)
        sums = share.sum(axis=1, keepdims=True)
        self.weight = share / (sums * self.used)
        return np.where(self.served, (top + rho * np.log(sums))[:, 0], 0.0)

    def _step(self, excess: Array, some: Index) -> Array:
        r"""Newton step of log prices of the problems `some`, (some, servers), for F = `excess` (servers,).

        With the parts t of users' tasks on servers, and the elasticities g of F in tasks of pairs,

        .. math::
            -\frac{\partial F_i}{\partial \pi_i} = \sum_n g_{ni} \Big(\frac{1 - t_{ni}}\tau + t_{ni}\Big), \qquad
            -\frac{\partial F_i}{\partial \pi_j} = -\sum_n \Big(\frac1\tau - 1\Big) g_{ni} t_{nj}
        """
        self.steps += 1
        shape = self.count, self.users, self.servers
        elasticity = self.tasks * np.einsum("pr,pr->p", self.per_task, self.weight[self.server])
        sums = np.bincount(self.server, elasticity * (self.steep * (1 - self.near) + self.near), len(self.served))
        own: Array = np.where(sums > 0, sums, 1.0).reshape(self.count, -1)[some]
        wanted: Array = excess.reshape(self.count, -1)[some]
        diverted = (self.steep - 1) * elasticity
        few = _MORE_SERVERS * self.users < self.servers
        if self.count == 1 and not few and _LIST_COST * len(self.pairs) + _LIST_OVERHEAD < self.users * self.servers:
            if self.order is None:
                self.order = ordered(self.user, self.server, self.servers)
            left = (diverted / own[0, self.server])[self.order.member, None]
            return Factors(self.order, left, self.near[self.order.member, None]).solve(wanted[0] / own[0])[None]
        cell = self.user * self.servers + (self.server if self.count == 1 else self.server % self.servers)
        table, part = np.zeros((2, self.count * self.users * self.servers))
        table[cell], part[cell] = diverted, self.near
        table, part = table.reshape(shape)[some], part.reshape(shape)[some]
        if few:
            return self._by_users(table, part, own, wanted)
        matrix = -np.matmul(table.swapaxes(1, 2), part)
        np.einsum("bii->bi", matrix)[:] = own
        return stack_solved(matrix, wanted[:, :, None])[:, :, 0]

    @staticmethod
    def _by_users(diverted: Array, part: Array, own: Array, wanted: Array) -> Array:
        r"""Newton step of `_step`, (some, servers), by a matrix (users, users), for few users.

        The matrix of `_step` is :math:`\mathrm{diag}(own + \sum_n g'_n t_n) - g'^T t`, with :math:`g' = (1/\tau - 1)
        g`. By the Sherman-Morrison-Woodbury formula its inverse follows from the inverse of a matrix (users, users).

        Parameters
        ----------
        diverted, part : (some, users, servers), g' and t
        own, wanted : (some, servers), the sums `own` of the diagonal, and right-hand sides
        """
        own = own + (diverted * part).sum(axis=1)
        per, step = part / own[:, None], np.zeros(wanted.shape)
        matrix = np.eye(part.shape[1]) - per @ diverted.swapaxes(1, 2)
        for _ in range(2):  # the second solve refines the first, since the formula cancels digits
            residual = wanted - own * step + ((part @ step[:, :, None]).swapaxes(1, 2) @ diverted)[:, 0]
            of_users = stack_solved(matrix, per @ residual[:, :, None])
            step = step + (residual + (of_users.swapaxes(1, 2) @ diverted)[:, 0]) / own
        return step

    @np.errstate(all="ignore")
    def cool(self, last: float) -> None:
        """Decrease tau to between `last / 2` and `last`, or as far as the equations of each problem can be solved."""
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
            easier = np.clip(
                factor
                * np.where(taken <= _FEW_EVALUATIONS, _EASIER, np.where(taken > _MANY_EVALUATIONS, _HARDER, 1.0)),
                _FASTEST,
                _SLOWEST,
            )
            self.factor = np.where(found, easier, np.where(going, np.sqrt(factor), factor))
            self.ended |= going & (self.factor > _STOPPED)
        self._look()
        self._excess()

    def _solved(self, going: Mask) -> Array:
        """Solve F = 0 for `price` at the current tau by damped Newton steps, for the problems of the mask `going`.

        Returns the index of the last evaluation (problems,), -1 outside the mask and where Newton's method fails.
        """
        self._look()
        taken, norm, length = np.full(self.count, -1), np.full(self.count, np.inf), np.ones(self.count)
        self.price = self.price.copy()
        price = self.price.reshape(self.count, -1)
        sufficient = np.maximum(_LOOSE_RESIDUAL * np.minimum(1, 10 * self.tau), _ROUNDING / self.tau)
        here, step = price.copy(), np.zeros(price.shape)
        for k in range(EVALUATIONS):
            excess = self._excess().reshape(self.count, -1)
            size = np.sqrt((excess**2).sum(axis=1))
            good = going & (size <= (1 - DECREASE * length) * norm)
            done = good & (np.abs(excess).max(axis=1) < sufficient)
            taken[done] = k
            going &= ~done & (good | (length > SHORTEST))
            if not going.any():
                break
            some, shorter = np.flatnonzero(good & going), going & ~good
            if len(some):
                here[some], norm[some], length[some] = price[some], size[some], 1.0
                step[some] = self._step(excess.ravel(), some)
            length[shorter] *= SHORTER
            price[going] = (here + length[:, None] * step)[going]
        return taken

    def tied(self) -> Array:
        r"""Log prices (servers,), changed by little more than rounding, at which nearly tied pairs are exactly tied.

        Pairs with more than the part `_TIED` of their user's tasks are nearly tied. As ties on a cycle may contradict
        each other, only the ties of a spanning forest of largest parts become exact. In every tree one server keeps its
        price, from which the prices of all other servers of the tree follow by

        .. math:: \log X_n + \pi_i = \log(\phi_n \gamma_{ni})
        """
        users, servers = len(self.total), len(self.price)
        near, nodes = np.flatnonzero(self.near > _TIED), users + servers
        ends = self.user[near], users + self.server[near]
        graph = sp.csr_array((1 - np.log(self.near[near]), ends), (nodes, nodes))
        forest = csgraph.minimum_spanning_tree(graph).tocoo()
        # The pairs of the forest, found by their indices among all pairs of nodes, which may exceed 32 bits.
        edges = near[
            np.searchsorted(ends[0] * nodes + ends[1], np.sort(forest.row.astype(np.intp) * nodes + forest.col))
        ]
        user, server, gain = self.user[edges], users + self.server[edges], self.gain[edges]
        tree = self._connected(self.user[edges], self.server[edges])
        roots = np.zeros(nodes - len(edges), dtype=np.intp)
        roots[tree] = np.arange(nodes)  # the last node of each tree, which is a server
        # log X of users, then pi of servers; every pass determines the neighbours of known nodes.
        value, known = np.append(np.zeros(users), self.price), np.bincount(roots, minlength=nodes) > 0
        while (new := known[user] != known[server]).any():
            new = np.flatnonzero(new)
            there, here = np.where(known[user[new]], (server[new], user[new]), (user[new], server[new]))
            value[there] = gain[new] - value[here]
            known[there] = True
        return value[users:]

    @np.errstate(all="ignore")
    def greatest(self, rounds: int = _ROUNDS) -> tuple[Array, Mask]:
        r"""Tasks (pairs,) of the greatest PS-DSF allocation, and the mask (problems,) where it was found and proved.

        In each of at most `rounds` rounds log levels of servers increase by s and log levels of users by s', which lead
        to the max-min solution on ties, or by the fraction of these increases at which a user n becomes tied to another
        server i,

        .. math:: \min_{ni} \frac{\log X_n - a_{ni}}{s_i - s'_n}
        """
        q, price, tasks = self.q, self.tied(), np.zeros(len(self.q.server))
        problem, tied = q.user // self.users, np.zeros(len(tasks), dtype=bool)
        found, going = np.zeros(self.count, dtype=bool), np.ones(self.count, dtype=bool)
        for _ in range(rounds):
            level = q.log_gain - price[q.server]
            best = np.maximum.reduceat(level, q.start[:-1])
            previous, tied = tied, level > best[q.user] - _SAME
            changed = np.ones(len(tasks), dtype=bool)
            if previous.any():  # connected components without new ties keep their solution
                component = self._connected(q.user[tied], q.server[tied])[q.user]
                changed = np.isin(component, component[tied & ~previous])
            pairs, total = np.flatnonzero(tied & changed), np.exp(best)
            if not len(pairs):
                break
            part, solved = self._fair(pairs, total)
            tasks[changed] = 0.0
            tasks[pairs] = part * total[q.user[pairs]]
            growth, server_growth = np.add.reduceat(tasks, q.start[:-1]) / total, np.ones(len(price))
            has_tasks = tasks > _SAME * total[q.user]
            server_growth[q.server[has_tasks]] = growth[q.user[has_tasks]]
            rise, best_after = np.log(server_growth), best + np.log(np.where(growth > 0, growth, 1.0))
            excess = level + rise[q.server] - best_after[q.user]
            enters = (excess > np.where(tied, _SPLIT_ERROR, _SAME)) & going[problem]
            lead, length = (best[q.user] - level)[enters], np.ones(self.count)
            np.minimum.at(length, problem[enters], lead / (lead + excess[enters]))
            ties, entries = (np.bincount(problem[which], minlength=self.count) for which in (pairs, enters))
            going &= solved & (ties * entries <= _CROWD)
            found |= going & (length == 1)
            going &= length < 1
            price = price - self._of(np.where(going, length, 0.0), self.servers) * rise
        idle = q.row.any(axis=1) & (np.bincount(q.server, tasks, len(price)) <= 0)
        return tasks, found & ~idle.reshape(self.count, -1).any(axis=1)

    def _connected(self, user: Index, server: Index) -> Index:
        """Label connected components of users and servers joined by ties, (users + servers,)."""
        nodes, users = len(self.total) + len(self.price), len(self.total)
        ties = sp.csr_array((np.ones(len(user)), (user, users + server)), (nodes, nodes))
        return np.asarray(csgraph.connected_components(ties, directed=False)[1])

    def _fair(self, pairs: Index, total: Array) -> tuple[Array, Mask]:
        """Lexicographic max-min of users' tasks over their `total` (users,), by the split of tasks among tied `pairs`.

        Returns the tasks of the pairs as fractions of `total`, and the mask (problems,) for which they were found.
        """
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

    def _programs(self, pairs: Index, total: Array) -> tuple[Array, Mask]:
        r"""Solve the problem of `_fair` by linear programs of sparse matrices.

        .. math::
            \max \sum_g h_g \quad \text{s.t.} \quad \sum_i f_{ni} = h_{g(n)}, \quad \sum_n f_{ni} X_n D_{nir} \le 1

        Unknowns are fractions :math:`f_{ni}` of the tasks :math:`X_n` of users with several ties, and the common factor
        :math:`h_g` of the tasks of all users in each group g of servers that ties connect; a user with a single tie has
        :math:`f_{ni} = h_g` there. Tasks of users who are tied to a server without a price are increased further, on
        such servers alone, in the next program.
        """
        q, users, servers, result = self.q, len(total), len(self.price), np.zeros(len(self.q.server))
        rising, resources = pairs, q.row.shape[1]
        while len(rising):
            user, server = q.user[rising], q.server[rising]
            group = self._connected(user, server)
            groups, group_of_pair = np.unique(group[user], return_inverse=True)
            # Columns are the fractions of pairs of users with several ties, `split`, then the factors h of groups.
            split = np.flatnonzero(np.bincount(user)[user] > 1)
            split_users, split_user = np.unique(user[split], return_inverse=True)
            group_of_user = np.searchsorted(groups, group[split_users])
            column = len(split) + group_of_pair
            column[split] = np.arange(len(split))
            use = (q.per_task[rising] * total[user][:, None]).ravel()
            at = (server[:, None] * resources + np.arange(resources)).ravel(), np.repeat(column, resources)
            uses = sp.csr_array((use, at), (servers * resources, len(split) + len(groups)))
            signs = np.repeat([1.0, -1.0], [len(split), len(split_users)])
            equation = np.append(split_user, np.arange(len(split_users)))
            of_signs = np.append(column[split], len(split) + group_of_user)
            sums = sp.csr_array((signs, (equation, of_signs)), (len(split_users), uses.shape[1]))
            cost = np.repeat([0.0, -1.0], [len(split), len(groups)])
            answer = minimise(cost, uses, np.ones(uses.shape[0]), equal=sums, method="highs-ds")
            if answer is None:
                return result[pairs], np.zeros(self.count, dtype=bool)
            part, rise = np.maximum(answer.x[column], 0.0), answer.x[len(split) :]
            scale = rise[group_of_user] / np.maximum(np.bincount(split_user, part[split]), TINY)
            part[split] *= scale[split_user]
            price = answer.prices.reshape(servers, resources).sum(axis=1)
            free = price < NEGLIGIBLE / np.bincount(group[users:], minlength=group.max() + 1)[group[users:]]
            rises = np.zeros(users, dtype=bool)
            rises[user[free[server]]] = True
            result[rising] = np.where(rises[user], 0.0, part)
            rising = rising[rises[user] & free[server]]
        return result[pairs], np.ones(self.count, dtype=bool)

    def _levels(self, pairs: Index, total: Array) -> tuple[Array, Mask]:
        """Solve the problem of `_fair` by an interior-point method (`Levels`).

        Users with a single tie to the same server have a common level: they are replaced by one user with the sum of
        their demands.
        """
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
    """Tasks (B, N, K) of the greatest PS-DSF allocations of a stack of problems, and exploitabilities (B,).

    The exploitability is infinite where a greatest allocation is not proved, or may not exist: where some user does not
    demand a resource of a server, can run nowhere, or attains its task limit.
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
        found.cool(LAST_TAU)
        x, proved = found.greatest()
        z = np.zeros(some.gamma.shape)
        z[here] = x / some.size[here]
        tasks[known] = some.tasks(z)
        known[known] = proved & (tasks[known].sum(axis=2) < some.limit.T * (1 - AT_LIMIT)).all(axis=1)
    tasks[~known] = 0.0
    error = np.maximum(largest_rise(q, rate, tasks, True), infeasibility(q, fractions(q, tasks)))
    return tasks, np.where(known, error, np.inf)
