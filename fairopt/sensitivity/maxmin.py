"""The conditions of lexicographic max-min to first order, and how the data enter them.

Users of one level who share resources, directly or through others, rise and fall together, and what their level's
prices say is used up stays used up. With `t_g` the level of their group, in derivatives of logarithms,

    sum over n's pairs of dx_ni / x_n  =  dt_g + dphi_n - du_n      who is held by capacity
    sum over n's pairs of dx_ni / x_n  =  dq_n                      who is held by its task limit
    sum_n x_ni d_nr / c_ir (dx_ni / x_ni + dd_nr)  =  dc_ir         resources that have a price at some level

Prices of a level eliminate the tasks: with `P_n = sum_ir lambda_ir x_ni d_nr` of one level's prices,

    dt sum_G P_n  =  sum lambda_ir (c_ir dc_ir - sum_n x_ni d_nr dd_nr)
                     - sum_G P_n (dphi_n - du_n) - sum_frozen P_n dlog x_n

so that levels move one after the other. Where a user has tasks on several servers they go on to cost the same at the
prices of each level: else it leaves one, and the level has a kink. Prices are those that prove the levels
(`certificates.leximin`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .._libraries import sp
from ..certificates.leximin import by_level, kept, proved, rise_and_prices
from ..errors import SolverError
from ..model import polytope as polytopes
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from ._words import Words
from .conditions import Conditions, Entries, Inputs, parts, representative

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ZeroOptions:
    """What counts as nothing."""

    #: Tasks, prices, slacks and idle parts up to this count as 0; rises up to this are proved not to be.
    zero: float = 1e-7
    #: How much dearer pairs with `counts` of a user's tasks are than need be says how well prices are known.
    counts: float = 1e-3


#: What is used unless a caller says otherwise.
OPTIONS = ZeroOptions()


def conditions(polytope: Polytope, criterion: Criterion, tasks: Array, hint: Array | None) -> Conditions:
    """The equations of a max-min answer `tasks` (all users, servers); `hint` prices (levels, servers, resources).

    Raises
    ------
    SolverError
        No prices prove the levels to seven digits.
    """
    own = criterion.restrict(polytope.users)
    x = tasks[polytope.users[polytope.pair_user], polytope.pair_server]
    total: Array = np.bincount(polytope.pair_user, x, len(polytope.users)).astype(float)
    level = own.levels(total)
    limited = total >= polytope.limit * (1 - OPTIONS.zero)
    sets, blocked = _prices(polytope, tasks, total, level, limited, hint)
    priced, slack = np.zeros(len(polytope.row_server), dtype=bool), np.zeros(len(x))
    for rows in sets:
        cost = polytope.price_per_task(rows) * total[polytope.pair_user]
        least = np.minimum.reduceat(cost, polytope.start[:-1])[polytope.pair_user]
        unit = np.where(least > OPTIONS.zero * rows.sum(), least, max(float(rows.sum()), 1e-300))
        slack = np.maximum(slack, (cost - least) / unit)
        priced |= rows > OPTIONS.zero * rows.max(initial=0.0)
    part = x / total[polytope.pair_user]
    free = part > OPTIONS.zero
    known = max(OPTIONS.zero, float(slack[part > OPTIONS.counts].max(initial=0.0)))
    weak = ~free & (slack <= known)
    weak_rows = ~priced & (1 - polytope.used(tasks) <= OPTIONS.zero)
    answer = _Answer(
        polytope, criterion, total, part, level, free, weak, priced, weak_rows, limited, blocked, tuple(sets)
    )
    return answer.conditions()


def _prices(
    polytope: Polytope, tasks: Array, total: Array, level: Array, limited: Mask, hint: Array | None
) -> tuple[list[Array], Mask]:
    """Prices of whole capacities (rows,) that prove who is held by capacity, and who is, (users,)."""
    floor, groups = np.zeros(len(total)), by_level(level)
    sets, blocked = [], np.zeros(len(total), dtype=bool)
    for unit in [] if hint is None else list(hint):
        holds = proved(polytope, tasks, groups, unit[None], floor).rise <= OPTIONS.zero
        if holds.any():
            sets.append(polytope.row_prices(np.nan_to_num(np.maximum(unit, 0.0), posinf=0.0)))
            blocked |= holds
    for group in groups if len(polytope.gamma) <= polytopes.OPTIONS.large else []:
        hungry = group[~limited[group] & ~blocked[group]]
        if len(hungry):
            rows = rise_and_prices(polytope, total, kept(level <= level[group].max(), total, floor), hungry)[1]
            if rows is not None:
                holds = (
                    proved(polytope, tasks, groups, polytope.unit_prices(rows)[None], floor).rise <= 10 * OPTIONS.zero
                )
                sets += [rows] if holds.any() else []
                blocked |= holds
    if (~blocked & ~limited).any():
        name = polytope.cluster.users[polytope.users[int((~blocked & ~limited).argmax())]]
        raise SolverError(
            f"no prices prove the level of user {name!r} to seven digits, so that nothing is known of how it moves: "
            "solve with a smaller tol, such as solve(cluster, tol=1e-9)"
        )
    return sets, blocked


@dataclass(frozen=True)
class _Answer:
    """Tasks by user, their parts by pair, levels; what is free, weak, priced, held by its limit, by capacity."""

    polytope: Polytope
    criterion: Criterion
    total: Array
    part: Array
    level: Array
    free: Mask
    weak: Mask
    priced: Mask
    weak_rows: Mask
    limited: Mask
    blocked: Mask
    sets: tuple[Array, ...]

    def conditions(self) -> Conditions:
        """The equations of tasks and levels, then those of the prices of each level."""
        polytope = self.polytope
        users, servers, resources = polytope.cluster.shape
        active = np.concatenate([np.flatnonzero(self.priced), np.flatnonzero(self.weak_rows)])
        pairs = np.flatnonzero(self.free | self.weak)
        # Users of one level take from each other wherever they may, whether or not they do now.
        of_user, of_server = parts(polytope, np.arange(len(self.part)))
        left, entries = Entries(), {name: Entries() for name in Inputs.__dataclass_fields__}
        part, unknowns, at_level = self._of_tasks(active, of_user, of_server, left, entries)
        size = len(part)
        priced: list[int] = []
        mains = self.priced[active].tolist() + [True] * (size - len(active))
        for rows in self.sets:
            at, unknowns = self._of_prices(rows, pairs, (size, unknowns), left, entries)
            part = np.concatenate([part, of_server[polytope.pair_server[at]]])
            priced, size, mains = [*priced, *at.tolist()], size + len(at), mains + self._standing[at].tolist()
        columns = dict.fromkeys(("weight", "limit", "share"), users) | {"alpha": 1}
        columns |= dict.fromkeys(("demand", "tied_demand"), users * resources)
        columns |= dict.fromkeys(("capacity", "tied_capacity"), servers * resources)
        inputs = Inputs(**{name: each.matrix((size, columns[name])) for name, each in entries.items()})
        free = np.flatnonzero(self._standing)
        who = polytope.users[polytope.pair_user[free]]
        of_users = sp.csr_matrix((np.ones(len(free)), (who, np.arange(len(free)))), shape=(users, unknowns))
        x = np.zeros(users)
        x[polytope.users] = self.total
        matrix = left.matrix((size, unknowns))
        names = Words(polytope)

        def word(number: int) -> str:
            if number < len(active):
                return names.row(active[number])
            number -= len(active)
            if number < len(at_level):
                return f"user {names.user(at_level[number])}"
            return names.pair(priced[number - len(at_level)])

        def kinks(most: int) -> list[str]:
            return names.kinks(most, (self.free, self.weak), self.weak_rows, self.limited & self.blocked)

        main = np.asarray(mains, dtype=bool)
        none = np.zeros(0, dtype=np.intp)
        return Conditions(
            polytope, matrix, of_users, inputs, word, kinks, lambda most: [], x, part, of_user, none, main
        )

    def _of_tasks(
        self, active: Index, of_user: Index, of_server: Index, left: Entries, entries: dict[str, Entries]
    ) -> tuple[Index, int, Index]:
        """Rows that stay full, users who move with their level or their limit: parts, unknowns, these users."""
        polytope = self.polytope
        free, resources = np.flatnonzero(self._standing), polytope.cluster.shape[2]
        user, server = polytope.pair_user[free], polytope.pair_server[free]
        by_group, at_limit = np.flatnonzero(self.blocked), np.flatnonzero(self.limited)
        p, r = len(free), len(active)
        row_of = np.full(polytope.cluster.capacity.shape, -1)
        row_of[polytope.row_server[active], polytope.row_resource[active]] = np.arange(r)
        for k in range(resources):
            row = row_of[server, k]
            there = np.flatnonzero((row >= 0) & (polytope.pair_use[free, k] > 0))
            whole = polytope.pair_use[free, k] / polytope.gamma[free] * self.total[user]  # use by all of a user's tasks
            left.add(row[there], there, whole[there])
        self._uses(row_of, entries)
        cell = polytope.row_server[active] * resources + polytope.row_resource[active]
        entries["capacity"].add(np.arange(r), cell, -1.0)
        for begin, some in ((r, by_group), (r + len(by_group), at_limit)):
            own = np.full(len(self.total), -1)
            own[some] = begin + np.arange(len(some))
            mine = np.flatnonzero(own[user] >= 0)
            left.add(own[user[mine]], mine, 1.0)
        equation, who = r + np.arange(len(by_group)), polytope.users[by_group]
        rank = np.empty(len(self.total), dtype=np.intp)
        for g, members in enumerate(by_level(self.level)):
            rank[members] = g
        both = np.column_stack([rank, of_user[polytope.users]])
        group = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        left.add(equation, p + group[by_group], -1.0)
        entries["weight"].add(equation, who, -1.0)
        entries["share"].add(equation, who, 1.0)
        entries["limit"].add(r + len(by_group) + np.arange(len(at_limit)), polytope.users[at_limit], -1.0)
        part = [of_server[polytope.row_server[active]], of_user[who], of_user[polytope.users[at_limit]]]
        return np.concatenate(part), p + int(group.max(initial=-1)) + 1, np.concatenate([by_group, at_limit])

    @cached_property
    def _standing(self) -> Mask:
        """(pairs,): with tasks, enough of them to stand for all."""
        free, result = np.flatnonzero(self.free), np.zeros(len(self.free), dtype=bool)
        result[free[representative(self.polytope, free, self.part[free])]] = True
        return result

    def _uses(self, row_of: Index, entries: dict[str, Entries]) -> None:
        """How full rows are by demands: of all pairs with tasks."""
        polytope, resources = self.polytope, self.polytope.cluster.shape[2]
        free = np.flatnonzero(self.free)
        user, server = polytope.pair_user[free], polytope.pair_server[free]
        for k in range(resources):
            row = row_of[server, k]
            there = np.flatnonzero((row >= 0) & (polytope.pair_use[free, k] > 0))
            used = polytope.pair_use[free, k] / polytope.gamma[free] * self.total[user] * self.part[free]
            entries["demand"].add(row[there], polytope.users[user[there]] * resources + k, used[there])

    def _of_prices(
        self, rows: Array, pairs: Index, begin: tuple[int, int], left: Entries, entries: dict[str, Entries]
    ) -> tuple[Index, int]:
        """Where a user has tasks they go on to cost the same: pairs, unknowns."""
        polytope = self.polytope
        cost = polytope.price_per_task(rows) * polytope.gamma
        pairs = pairs[cost[pairs] > OPTIONS.zero * rows.max(initial=0.0)]
        user = polytope.pair_user[pairs]
        pairs = pairs[np.bincount(user, minlength=len(self.total))[user] > 1]
        if not len(pairs):
            return np.zeros(0, dtype=np.intp), begin[1]
        users, user = np.unique(polytope.pair_user[pairs], return_inverse=True)
        server, resources = polytope.pair_server[pairs], polytope.cluster.shape[2]
        price, number = polytope.by_server(rows), np.cumsum(polytope.by_server((rows > 0).astype(float))) - 1
        column = begin[1] + number.reshape(price.shape).astype(np.intp)
        equation, last = begin[0] + np.arange(len(pairs)), int(column.max(initial=-1)) + 1
        for k in range(resources):
            share = polytope.pair_use[pairs, k] * price[server, k] / cost[pairs]
            left.add(equation, column[server, k], share)
            entries["demand"].add(equation, polytope.users[users[user]] * resources + k, share)
            entries["capacity"].add(equation, server * resources + k, -share)
        left.add(equation, last + user, -1.0)
        return pairs, last + len(users)
