"""The equations of `augmented`: which pairs and rows take part, where to begin, and what is wrong at a point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...certificates.backward import log_price_per_task
from ...model.polytope import Polytope
from .state import AugmentedResiduals, AugmentedState, Options

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


class System:
    """The equations, with pairs and rows that take part."""

    def __init__(
        self,
        polytope: Polytope,
        log_marginal: Array,
        alpha: float | Array,
        tasks: Array,
        log_rows: Array,
        options: Options,
    ) -> None:
        self.polytope, self.options = polytope, options
        #: By user: how worth falls with tasks.
        self.alpha: Array = np.broadcast_to(np.asarray(alpha, dtype=float), (len(polytope.users),))
        self.scale = max(float(self.alpha.min(initial=np.inf)), 1.0)
        self.user = polytope.pair_user
        self.first: Index = polytope.start[:-1]
        self.unit = np.add.reduceat(tasks, self.first)
        self.log_marginal = log_marginal
        servers, resources = polytope.cluster.capacity.shape
        self.row_of = np.full((servers, resources), -1)
        self.row_of[polytope.row_server, polytope.row_resource] = np.arange(len(polytope.row_server))
        self.limited: Index = np.flatnonzero(np.isfinite(polytope.limit))
        self.possible = bool((self.unit > 0).all() and np.isfinite(tasks).all() and (tasks >= 0).all())
        self.possible = self.possible and len(tasks) > 0
        if not self.possible:
            return
        self.per_part = polytope.pair_use * (self.unit[self.user] / polytope.gamma)[:, None]  # use per y
        # A row without a price gets one that nobody notices, so that it can come back.
        self.start = tasks / self.unit[self.user], np.where(np.isfinite(log_rows), log_rows, -np.inf)
        self._choose(*self.start)

    @property
    def size(self) -> int:
        """Unknowns."""
        return len(self.pairs) + len(self.rows) + len(self.limits)

    # -- who takes part --------------------------------------------------------------------------

    def _choose(self, part: Array, log_rows: Array) -> None:
        """Who takes part, and mu, from a first point."""
        options = self.options
        cost = self._cost(log_rows)
        slack = (cost - self._marginal(part)) / self.scale
        at_limit = np.add.reduceat(part, self.first) * self.unit > self.polytope.limit * (1 - 1e-3)
        excess = np.zeros(len(self.unit))
        if at_limit.any():  # who is served in full pays less than its tasks are worth
            least = np.minimum.reduceat(np.where(part > 1e-6, slack, np.inf), self.first)
            excess = np.where(at_limit & (least < 0), -least, 0.0)
            excess = np.where(np.isfinite(excess), excess, 0.0)
            slack = slack + excess[self.user]
        idle = 1 - self._use(part)
        weight = self._largest_share(log_rows, cost)
        with_tasks = part > np.maximum(slack, 0)
        product = np.concatenate([(part * np.abs(slack))[with_tasks], np.abs(idle) * np.minimum(weight, 1.0)])
        mean = float(np.nan_to_num(product.mean(), posinf=1.0)) if len(product) else 0.0
        self.mu = min(max(mean, options.least_start), options.most_mu)
        self.pairs: Index = np.flatnonzero(with_tasks | (slack < self._near(slack)))
        taking = (weight > options.priced) | (weight > idle) | (idle < options.full)
        self.rows: Index = np.flatnonzero(taking | self._fullest(idle, taking))
        lost = part.copy()
        lost[self.pairs] = 0.0
        left = max(float(np.add.reduceat(lost, self.first).max()), float(self._use(lost).max(initial=0.0)))
        self.mu = min(max(self.mu, options.start_of_lost * left), options.most_mu)
        self.slack, self.idle, self.weight, self.excess = slack, idle, weight, excess
        self._assemble()

    def _near(self, slack: Array) -> float:
        """Below this slack pairs take part."""
        near = min(self.options.near, max(self.options.nearest, 100 * float(np.sqrt(self.mu))))
        most = int(self.options.most_pairs * (len(self.unit) + len(self.polytope.row_server)))
        if most >= len(slack):
            return near
        return min(near, float(np.partition(slack, most)[most]))

    def _fullest(self, idle: Array, taking: Mask) -> Mask:
        """(rows,): for every pair whose rows do not take part, the fullest one."""
        polytope, pairs = self.polytope, self.pairs
        rows = np.where(polytope.pair_use[pairs] > 0, self.row_of[polytope.pair_server[pairs]], -1)
        without = ~(taking[rows] & (rows >= 0)).any(axis=1)
        result = np.zeros(len(idle), dtype=bool)
        if without.any():
            rows = rows[without]
            fullest = np.where(rows >= 0, idle[rows], np.inf).argmin(axis=1)
            result[rows[np.arange(len(rows)), fullest]] = True
        return result

    def _assemble(self) -> None:
        """The structure of the matrix for the pairs and rows that take part."""
        pairs, polytope = self.pairs, self.polytope
        self.who = self.user[pairs]
        column = np.full(len(polytope.row_server), -1)
        column[self.rows] = np.arange(len(self.rows))
        of = self.row_of[polytope.pair_server[pairs]]
        self.column = np.where(of >= 0, column[of], -1)  # (pairs, resources)
        self.column = np.where(polytope.pair_use[pairs] > 0, self.column, -1)
        self.at_pair, self.resource = np.nonzero(self.column >= 0)
        self.to = self.column[self.at_pair, self.resource]
        self.limits: Index = self.limited[np.isin(self.limited, np.unique(self.who))]
        self.limit_of = np.full(len(self.unit), -1)
        self.limit_of[self.limits] = np.arange(len(self.limits))
        counts = np.bincount(self.who, minlength=len(self.unit))
        ends = np.cumsum(counts)
        self._starts: Index = (ends - counts)[counts > 0]
        self._rank: Index = (np.cumsum(counts > 0) - 1)[self.who]

    def begin(self) -> AugmentedState:
        """The point to begin from, with products of about mu."""
        part, log_rows = self.start
        mu, pairs, rows = self.mu, self.pairs, self.rows
        slack = self.slack[pairs]
        y = np.maximum(part[pairs], 0.1 * mu / np.maximum(slack, np.sqrt(mu)))
        z = np.maximum(slack, mu / np.maximum(y, np.sqrt(mu)))
        weight = self.weight[rows]
        idle = self.idle[rows]
        low = 0.1 * mu / np.maximum(idle, np.sqrt(mu))
        lifted = np.maximum(weight, low)
        log_row = np.where(weight > 0, log_rows[rows] + np.log(lifted / np.where(weight > 0, weight, 1.0)), 0.0)
        missing = ~(weight > 0)
        if missing.any():
            log_row[missing] = self._price_of_share(rows[missing], lifted[missing], log_rows)
        w = np.maximum(idle, mu / np.maximum(lifted, np.sqrt(mu)))
        q = self.polytope.limit[self.limits]
        whole = np.add.reduceat(part, self.first)[self.limits] * self.unit[self.limits] / q
        xi = np.maximum(self.excess[self.limits], 0.1 * mu / np.maximum(1 - whole, np.sqrt(mu)))
        v = np.maximum(1 - whole, mu / np.maximum(xi, np.sqrt(mu)))
        return self.excess_reset(AugmentedState(y, z, log_row, lifted, w, v, xi))

    def excess_reset(self, at: AugmentedState) -> AugmentedState:
        """Who is served in full pays what prices say: xi follows, as it is in no other equation."""
        if not len(self.limits):
            return at
        slack = self._slack(at)[0]
        used = at.part > at.slack
        most = np.full(len(self.unit), -np.inf)
        np.maximum.at(most, self.who[used], -slack[used])
        most = most[self.limits]
        return replace(at, excess=np.where((most > at.excess) & (at.room < 1e-2), most, at.excess))

    def _slack(self, at: AugmentedState) -> tuple[Array, Array]:
        """What the pairs that take part are dearer by than they are worth, over A, and the shares of their rows."""
        use = self.polytope.pair_use[self.pairs]
        log_cost = np.where(self.column >= 0, np.log(use) + at.log_row[self.column], -np.inf)
        top = log_cost.max(axis=1, initial=-np.inf, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        paid = np.exp(log_cost - top)
        whole = paid.sum(axis=1, keepdims=True)
        cost = (top + np.log(whole))[:, 0] - np.log(self.polytope.gamma[self.pairs])
        total = np.bincount(self.who, at.part, len(self.unit)) * self.unit
        marginal = self.log_marginal[self.pairs] - (self.alpha * np.log(total))[self.who]
        return (cost - marginal) / self.scale, paid / np.where(whole > 0, whole, 1.0)

    def _price_of_share(self, rows: Index, share: Array, log_rows: Array) -> Array:
        """The log price at which a row's part in what its users would pay is at most `share`."""
        polytope = self.polytope
        cost = np.maximum(self._cost(log_rows), self._marginal(self.start[0])) + np.log(polytope.gamma)
        result = np.empty(len(rows))
        for k, row in enumerate(rows):
            mine = (polytope.pair_server == polytope.row_server[row]) & (
                polytope.pair_use[:, polytope.row_resource[row]] > 0
            )
            use = np.log(polytope.pair_use[mine, polytope.row_resource[row]])
            result[k] = np.log(share[k]) + (cost[mine] - use).min()
        return result

    def recall(self, tasks: Array, log_rows: Array, state: AugmentedState) -> float:
        """By how much pairs or rows left aside are violated at an answer; if they are, they take part from now on.

        `begin` starts from the answer then, or, where that is far from what they want, from where it came from.
        """
        part = tasks / self.unit[self.user]
        cost = self._cost(log_rows)
        excess = np.zeros(len(self.unit))
        excess[self.limits] = state.excess
        slack = (cost - self._marginal(part)) / self.scale + excess[self.user]
        outside = np.ones(len(slack), dtype=bool)
        outside[self.pairs] = False
        back = np.flatnonzero(outside & (slack < 0.1 * self.options.near))
        idle = 1 - self._use(part)
        aside = np.ones(len(idle), dtype=bool)
        aside[self.rows] = False
        rows = np.flatnonzero(aside & (idle < 0))
        worst = max(float(-slack[back].min(initial=0.0)), float(-idle[rows].min(initial=0.0)))
        if worst <= 1e-13 and not len(rows):
            return 0.0
        if worst > self.options.astray:
            pairs, rows = np.union1d(self.pairs, back), np.union1d(self.rows, rows)
            self._choose(*self.start)
            self.pairs, self.rows = np.union1d(self.pairs, pairs), np.union1d(self.rows, rows)
        else:
            self.start = part, log_rows
            self.slack, self.idle, self.excess = slack, idle, excess
            self.weight = self._largest_share(log_rows, cost)
            self.mu = min(max(worst**2, self.options.least_start), self.options.most_mu)
            self.pairs, self.rows = np.union1d(self.pairs, back), np.union1d(self.rows, rows)
        self._assemble()
        return worst

    # -- parts of the equations ------------------------------------------------------------------

    def _cost(self, log_rows: Array) -> Array:
        return log_price_per_task(self.polytope, log_rows)

    def _marginal(self, part: Array) -> Array:
        """log m of all pairs."""
        total = np.add.reduceat(part, self.first) * self.unit
        return np.asarray(self.log_marginal - (self.alpha * np.log(total))[self.user])

    def _use(self, part: Array) -> Array:
        used = np.zeros(self.row_of.shape)
        for r in range(used.shape[1]):
            used[:, r] = np.bincount(self.polytope.pair_server, self.per_part[:, r] * part, len(used))
        return np.asarray(used[self.polytope.row_server, self.polytope.row_resource])

    def _largest_share(self, log_rows: Array, cost: Array) -> Array:
        """(rows,): the largest part of a row in what some pair costs, or would be worth."""
        polytope = self.polytope
        whole = np.maximum(cost, self._marginal(self.start[0])) + np.log(polytope.gamma)
        log_price = polytope.by_server(log_rows, unused=-np.inf)
        result = np.zeros_like(log_price)
        for r in range(result.shape[1]):
            paid = np.log(polytope.pair_use[:, r]) + log_price[polytope.pair_server, r]
            np.maximum.at(result[:, r], polytope.pair_server, np.exp(np.minimum(paid - whole, 0.0)))
        return np.asarray(result[polytope.row_server, polytope.row_resource])

    def at(self, at: AugmentedState) -> AugmentedResiduals:
        """What is wrong at a point."""
        slack, share = self._slack(at)
        marginal_part = np.exp(np.minimum(self.scale * slack, 0.0))  # the cost, as a part of what a task is worth
        total: Array = np.bincount(self.who, at.part, len(self.unit)).astype(float)
        xi = np.zeros(len(self.unit))
        xi[self.limits] = at.excess
        slack = slack + xi[self.who]
        used = np.bincount(self.to, self.entries * at.part[self.at_pair], len(self.rows))
        left = 1 - used
        q = self.polytope.limit[self.limits]
        room = 1 - total[self.limits] * self.unit[self.limits] / q
        part = at.part / total[self.who]
        # The largest share that a row has now: what its price counts.
        weight = np.zeros(len(self.rows))
        np.maximum.at(weight, self.to, share[self.at_pair, self.resource] * marginal_part[self.at_pair])
        error = max(
            float(np.where(slack < 0, -slack, np.minimum(part, slack)).max(initial=0.0)),
            float(np.where(left < 0, -left, np.minimum(weight, left)).max(initial=0.0)),
            float(np.where(room < 0, -room, np.minimum(at.excess, room)).max(initial=0.0)),
        )
        error = error if np.isfinite(slack).all() else np.inf
        return AugmentedResiduals(error, slack - at.slack, left - at.idle, room - at.room, share, total)

    @property
    def entries(self) -> Array:
        """What a part of a user's tasks uses of each row that it needs."""
        return self.per_part[self.pairs][self.at_pair, self.resource]

    def pruned(self, at: AugmentedState) -> AugmentedState:
        """The point without pairs whose tasks have become small beside their slack, if they are many."""
        stay = at.part > self.options.leave * at.slack
        stay |= at.part >= np.maximum.reduceat(at.part, self._starts)[self._rank]  # nobody loses all
        if stay.mean() >= self.options.marginal_leaving:
            return at
        self.pairs = self.pairs[stay]
        self._assemble()
        return replace(at, part=at.part[stay], slack=at.slack[stay])

    def answer(self, at: AugmentedState) -> tuple[Array, Array]:
        """Tasks of all pairs and log prices of all rows, -inf for those that do not take part."""
        tasks = np.zeros(len(self.user))
        tasks[self.pairs] = at.part * self.unit[self.who]
        log_rows = np.full(len(self.polytope.row_server), -np.inf)
        log_rows[self.rows] = at.log_row
        return tasks, log_rows
