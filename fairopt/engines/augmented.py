"""The last digits of an alpha-fair optimum or equilibrium: interior-point steps on the augmented system.

Given a point near the answer, keep the pairs (user, server) that may have tasks, and take Newton steps on

    log p_ni + xi_n = log m_ni + A z_ni,       y_ni z_ni = mu        (pairs; y_ni is n's tasks there over those in all)
    sum_n x_ni d_nr + w_ir = c_ir,             w_ir sigma_ir = mu    (rows; sigma is the part of r in what its users pay)
    x_n + v_n = q_n,                           v_n xi_n = mu         (limits)

in tasks and logarithms of prices, mu to next to nothing. m is what a task is worth: one number per user in a global
program, one per pair in the game. Other interior points here eliminate pairs, which squares what nearly ties: theirs end
with products of 1e-8, and a product of 1e-8 may be two numbers of 1e-4. Here slacks over tasks stay on the diagonal,
so that both factors become small. Pairs and rows left aside come back if they are violated.

Source: Wright, "Primal-Dual Interior-Point Methods" (1997), chapters 10 and 11 (augmented systems, Mehrotra).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse.linalg import splu

from ..certificates.backward import backward_error, log_price_per_task
from ..cluster import Cluster
from ..criteria import Criterion
from ..polytope import Polytope
from . import convex
from .declarative import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
#: What is asked for whatever the tolerance: a judge measures a little otherwise, and the last steps square the error.
_AIM = 1e-12

Solve = Callable[[Array], Array]


@dataclass(frozen=True)
class Options:
    """How the last digits are found."""

    #: Pairs take part with a slack (relative, in tasks) below a hundred times the root of mu, between these, and with
    #: more tasks than slack.
    near: float = 3e-3
    nearest: float = 1e-5
    #: They leave with less than this part of their slack in tasks, where fewer than that part of all would stay.
    leave: float = 1e-3
    worth_leaving: float = 0.8
    #: Of those without tasks at most so many times users and rows, the least slacks first.
    most_pairs: float = 2.0
    #: Rows whose part in what their users pay is above this take part, and so does every row that idles less.
    priced: float = 1e-9
    full: float = 1e-2
    #: mu begins between these, and ends at the last.
    most_mu: float = 1e-2
    least_start: float = 1e-14
    #: and at this part of the tasks of pairs that do not take part.
    start_of_lost: float = 1e-3
    least_mu: float = 1e-26
    #: Most steps, in systems of more unknowns than `large` fewer; steps without progress; times that pairs or rows come
    #: back.
    steps: int = 40
    large: int = 600
    large_steps: int = 30
    patience: int = 8
    returns: int = 5
    #: Pairs and rows come back where the run without them ended below this error.
    settled: float = 1e-6
    #: Multiple of the identity that makes up for splits and prices that are not unique.
    regular: float = 1e-9
    #: Up to so many unknowns the matrix is dense.
    dense: int = 150
    #: How much of the way to the boundary, and the most that a log price changes, in a step.
    part: float = 0.99
    nearly: float = 0.9
    short_part: float = 0.8
    longest: float = 3.0
    #: Where the step to mu = 0 is shorter than this, products are brought to their average first.
    blocked: float = 0.1


@dataclass(frozen=True)
class Refined:
    """Tasks (pairs,) and log prices of whole capacities (rows,), how wrong they are, and Newton steps taken."""

    tasks: Array
    log_rows: Array
    error: float
    steps: int


@dataclass(frozen=True)
class _State:
    part: Array  # (pairs,), y: tasks over those of the user at the start
    slack: Array  # (pairs,), z
    log_row: Array  # (rows,), log price of the whole capacity
    weight: Array  # (rows,), sigma
    idle: Array  # (rows,), w
    room: Array  # (limited,), v over q
    excess: Array  # (limited,), xi over A


def refined(
    polytope: Polytope,
    log_worth: Array,
    alpha: float,
    tasks: Array,
    log_rows: Array,
    aim: float,
    options: Options | None = None,
) -> Refined | None:
    """The point nearest to an optimum met on the way from `tasks` (pairs,) at `log_rows` (rows,), or `None`.

    `log_worth` (pairs,) is the logarithm of what the first task is worth, `log m + alpha log x_n`. Ends when the error,
    relative in tasks, is below `aim`; whether it is good enough is for a judge to say.
    """
    options = options or Options()
    with np.errstate(all="ignore"):
        problem = _Problem(polytope, log_worth, alpha, tasks, log_rows, options)
        if not problem.possible:
            return None
        best: Refined | None = None
        steps, most = 0, options.steps if problem.size <= options.large else options.large_steps
        for _ in range(options.returns):
            found = problem.run(aim, most - steps)
            steps = found.steps + steps
            if best is None or found.error <= best.error:
                best = replace(found, steps=steps)
            if steps >= most or found.error > options.settled or not problem.recall(found):
                break
        assert best is not None
        return best


def of_solution(cluster: Cluster, criterion: Criterion, solution: Solution) -> Solution | None:
    """A candidate answer with its last digits found, or `None` where that is not for this method."""
    log_prices = solution.log_prices
    if log_prices is None or type(criterion) is not Criterion:
        return None
    polytope = Polytope(cluster, criterion.limits(cluster))
    if not len(polytope.users):
        return None
    worth = criterion.log_marginal(np.ones(cluster.shape[0]))
    who = polytope.users[polytope.pair_user]
    log_worth = worth[who, polytope.pair_server] if worth.ndim == 2 else worth[who]
    begun = time.perf_counter()
    rows = polytope.log_row_prices(log_prices)
    if solution.log is None:  # in a solver's own scale
        rows = backward_error(polytope, criterion, solution.tasks, rows).every_row
    tasks = solution.tasks[who, polytope.pair_server]
    found = refined(polytope, log_worth, criterion.alpha, tasks, rows, _AIM)
    if found is None:
        return None
    run = convex.Run("augmented Newton", solution.status, 0.0, time.perf_counter() - begun, found.error)
    return replace(
        solution,
        tasks=polytope.allocation(polytope.inside(found.tasks / polytope.gamma)),
        prices=None,
        log=polytope.log_unit_prices(found.log_rows),
        runs=(*solution.runs, run),
        rounds=solution.rounds + found.steps,
    )


class _Problem:
    """The equations, with pairs and rows that take part."""

    def __init__(
        self, polytope: Polytope, log_worth: Array, alpha: float, tasks: Array, log_rows: Array, options: Options
    ) -> None:
        self.polytope, self.alpha, self.options = polytope, alpha, options
        self.scale = max(alpha, 1.0)
        self.user = polytope.pair_user
        self.first: Index = np.searchsorted(self.user, np.arange(len(polytope.users)))
        self.unit = np.add.reduceat(tasks, self.first)
        self.log_worth = log_worth
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
        self._choose()

    @property
    def size(self) -> int:
        """Unknowns."""
        return len(self.pairs) + len(self.rows) + len(self.limits)

    # -- who takes part --------------------------------------------------------------------------

    def _choose(self) -> None:
        options, (part, log_rows) = self.options, self.start
        cost = self._cost(log_rows)
        slack = (cost - self._worth(part)) / self.scale
        at_limit = np.zeros(len(self.unit), dtype=bool)
        total = np.add.reduceat(part, self.first) * self.unit
        excess = np.zeros(len(self.unit))
        for n in self.limited:
            if total[n] > self.polytope.limit[n] * (1 - 1e-3):
                at_limit[n] = True
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
        self.state = self._begin(part, log_rows)

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
        self.at, self.res = np.nonzero(self.column >= 0)
        self.to = self.column[self.at, self.res]
        self.limits: Index = self.limited[np.isin(self.limited, np.unique(self.who))]
        self.limit_of = np.full(len(self.unit), -1)
        self.limit_of[self.limits] = np.arange(len(self.limits))
        order = np.argsort(self.who, kind="stable")
        assert (order == np.arange(len(order))).all()
        counts = np.bincount(self.who, minlength=len(self.unit))
        ends = np.cumsum(counts)
        self._starts: Index = (ends - counts)[counts > 0]
        self._rank: Index = (np.cumsum(counts > 0) - 1)[self.who]
        # Every two pairs of one user.
        size = counts[self.who]
        self.left = np.repeat(np.arange(len(pairs)), size)
        offset = np.arange(len(self.left)) - np.repeat(np.cumsum(size) - size, size)
        self.right = np.repeat((ends - counts)[self.who], size) + offset

    def _begin(self, part: Array, log_rows: Array) -> _State:
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
        return self._excess_reset(_State(y, z, log_row, lifted, w, v, xi))

    def _excess_reset(self, at: _State) -> _State:
        """Who is served in full pays what prices say: xi follows, as it is in no other equation."""
        if not len(self.limits):
            return at
        slack = self._slack(at)[0]
        used = at.part > at.slack
        most = np.full(len(self.unit), -np.inf)
        np.maximum.at(most, self.who[used], -slack[used])
        most = most[self.limits]
        return replace(at, excess=np.where((most > at.excess) & (at.room < 1e-2), most, at.excess))

    def _slack(self, at: _State) -> tuple[Array, Array]:
        """What the pairs that take part are dearer by than they are worth, over A, and the shares of their rows."""
        use = self.polytope.pair_use[self.pairs]
        log_cost = np.where(self.column >= 0, np.log(use) + at.log_row[self.column], -np.inf)
        top = log_cost.max(axis=1, initial=-np.inf, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        paid = np.exp(log_cost - top)
        whole = paid.sum(axis=1, keepdims=True)
        cost = (top + np.log(whole))[:, 0] - np.log(self.polytope.gamma[self.pairs])
        total = np.bincount(self.who, at.part, len(self.unit)) * self.unit
        worth = self.log_worth[self.pairs] - self.alpha * np.log(total)[self.who]
        return (cost - worth) / self.scale, paid / np.where(whole > 0, whole, 1.0)

    def _price_of_share(self, rows: Index, share: Array, log_rows: Array) -> Array:
        """The log price at which a row's part in what its users would pay is at most `share`."""
        polytope = self.polytope
        cost = np.maximum(self._cost(log_rows), self._worth(self.start[0])) + np.log(polytope.gamma)
        result = np.empty(len(rows))
        for k, row in enumerate(rows):
            mine = (polytope.pair_server == polytope.row_server[row]) & (
                polytope.pair_use[:, polytope.row_resource[row]] > 0
            )
            use = np.log(polytope.pair_use[mine, polytope.row_resource[row]])
            result[k] = np.log(share[k]) + (cost[mine] - use).min()
        return result

    def recall(self, found: Refined) -> bool:
        """Do pairs or rows left aside come back, as they are violated? Then a new run starts from `found`."""
        part = found.tasks / self.unit[self.user]
        cost = self._cost(found.log_rows)
        excess = np.zeros(len(self.unit))
        excess[self.limits] = self.state.excess
        slack = (cost - self._worth(part)) / self.scale + excess[self.user]
        outside = np.ones(len(slack), dtype=bool)
        outside[self.pairs] = False
        back = np.flatnonzero(outside & (slack < 0.1 * self.options.near))
        idle = 1 - self._use(part)
        aside = np.ones(len(idle), dtype=bool)
        aside[self.rows] = False
        rows = np.flatnonzero(aside & (idle < 0))
        violated = (slack[back] < -1e-13).any() or len(rows)
        if not violated:
            return False
        self.start = part, found.log_rows
        self.slack, self.idle, self.excess = slack, idle, excess
        self.weight = self._largest_share(found.log_rows, cost)
        worst = max(float(-slack[back].min(initial=0.0)), float(-idle[rows].min(initial=0.0)))
        self.mu = min(max(worst**2, self.options.least_start), self.options.most_mu)
        self.pairs = np.union1d(self.pairs, back)
        self.rows = np.union1d(self.rows, rows)
        self._assemble()
        self.state = self._begin(part, found.log_rows)
        return True

    # -- parts of the equations ------------------------------------------------------------------

    def _cost(self, log_rows: Array) -> Array:
        return log_price_per_task(self.polytope, log_rows)

    def _worth(self, part: Array) -> Array:
        """log m of all pairs."""
        total = np.add.reduceat(part, self.first) * self.unit
        return np.asarray(self.log_worth - self.alpha * np.log(total)[self.user])

    def _use(self, part: Array) -> Array:
        used = np.zeros(self.row_of.shape)
        for r in range(used.shape[1]):
            used[:, r] = np.bincount(self.polytope.pair_server, self.per_part[:, r] * part, len(used))
        return np.asarray(used[self.polytope.row_server, self.polytope.row_resource])

    def _largest_share(self, log_rows: Array, cost: Array) -> Array:
        """(rows,): the largest part of a row in what some pair costs, or would be worth."""
        polytope = self.polytope
        whole = np.maximum(cost, self._worth(self.start[0])) + np.log(polytope.gamma)
        log_price = polytope.by_server(log_rows, unused=-np.inf)
        result = np.zeros_like(log_price)
        for r in range(result.shape[1]):
            paid = np.log(polytope.pair_use[:, r]) + log_price[polytope.pair_server, r]
            np.maximum.at(result[:, r], polytope.pair_server, np.exp(np.minimum(paid - whole, 0.0)))
        return np.asarray(result[polytope.row_server, polytope.row_resource])

    # -- steps -----------------------------------------------------------------------------------

    def run(self, aim: float, most: int) -> Refined:
        """Steps until the error is below `aim` or nothing helps."""
        options = self.options
        best: Refined | None = None
        since, least = 0, np.inf
        for number in range(most + 1):
            error, wrong = self._residuals()
            if best is None or error < best.error:
                best = Refined(*self._answer(), error, number)
            # Where products still fall there is progress, though the error does not show it yet.
            reached = min(error, float((self.state.part * self.state.slack).sum()))
            since = 0 if reached < 0.5 * least else since + 1
            least = min(least, reached)
            if error <= aim or since > options.patience or not np.isfinite(error):
                break
            if not self._step(wrong):
                break
            self._prune()
        assert best is not None
        return replace(best, steps=number)

    def _prune(self) -> None:
        """Pairs whose tasks have become small beside their slack leave, if they are many."""
        at = self.state
        stay = at.part > self.options.leave * at.slack
        stay |= at.part >= np.maximum.reduceat(at.part, self._starts)[self._rank]  # nobody loses all
        if stay.mean() < self.options.worth_leaving:
            self.pairs = self.pairs[stay]
            self._assemble()
            self.state = replace(at, part=at.part[stay], slack=at.slack[stay])

    def _answer(self) -> tuple[Array, Array]:
        tasks = np.zeros(len(self.user))
        tasks[self.pairs] = self.state.part * self.unit[self.who]
        log_rows = np.full(len(self.polytope.row_server), -np.inf)
        log_rows[self.rows] = self.state.log_row
        return tasks, log_rows

    def _residuals(self) -> tuple[float, tuple[Array, Array, Array]]:
        """How wrong the point is, relative in tasks, and what is wrong with the equations that do not involve mu."""
        at = self.state
        slack, self.share = self._slack(at)
        worth_part = np.exp(np.minimum(self.scale * slack, 0.0))  # the cost, as a part of what a task is worth
        self.total = np.bincount(self.who, at.part, len(self.unit))
        xi = np.zeros(len(self.unit))
        xi[self.limits] = at.excess
        slack = slack + xi[self.who]
        used = np.bincount(self.to, self._entries * at.part[self.at], len(self.rows))
        left = 1 - used
        q = self.polytope.limit[self.limits]
        room = 1 - self.total[self.limits] * self.unit[self.limits] / q
        part = at.part / self.total[self.who]
        # The largest share that a row has now: what its price counts.
        weight = np.zeros(len(self.rows))
        np.maximum.at(weight, self.to, self.share[self.at, self.res] * worth_part[self.at])
        error = max(
            float(np.where(slack < 0, -slack, np.minimum(part, slack)).max(initial=0.0)),
            float(np.where(left < 0, -left, np.minimum(weight, left)).max(initial=0.0)),
            float(np.where(room < 0, -room, np.minimum(at.excess, room)).max(initial=0.0)),
        )
        error = error if np.isfinite(slack).all() else np.inf
        return error, (slack - at.slack, left - at.idle, room - at.room)

    @property
    def _entries(self) -> Array:
        return self.per_part[self.pairs][self.at, self.res]

    def _step(self, wrong: tuple[Array, Array, Array]) -> bool:
        """One predictor-corrector step; is there one?"""
        at, options = self.state, self.options
        total = self.total[self.who]
        solve = self._factors()
        if solve is None:
            return False
        part = at.part / total
        products = part * at.slack, at.weight * at.idle, at.room * at.excess
        count = sum(len(each) for each in products)
        mu = sum(float(each.sum()) for each in products) / count
        none = tuple(-each for each in products)
        aim = self._direction(solve, wrong, none)
        if aim is None:
            return False
        t = self._longest(aim)
        after = self._mean_after(aim, t, count)
        blocked = t < options.blocked
        centre = 1.0 if blocked else min(max((after / mu) ** 3, 1e-6), 1.0)
        largest = max(float(np.abs(each).max(initial=0.0)) for each in wrong)
        target = max(centre * mu, options.least_mu, min(1e-4 * largest**2, mu))
        # What products change by to second order, unless that is of a step which is not there to take.
        bent = 0.0 if blocked else 1.0
        second = bent * aim[0] / total * aim[1], bent * at.weight * aim[2] * aim[3], bent * aim[4] * aim[5]
        wanted = tuple(
            np.clip(target - each, -np.inf, 10 * target) - product
            for each, product in zip(second, products, strict=True)
        )
        step = self._direction(solve, wrong, wanted)
        if step is None:
            return False
        t = self._longest(step)
        t = min(1.0, t * (max(options.part, 1 - target) if t > options.nearly else options.short_part))
        d_part, d_slack, d_row, d_idle, d_room, d_excess = step
        grown = 1 + t * d_row
        moved = _State(
            at.part + t * d_part,
            at.slack + t * d_slack,
            at.log_row + np.log(grown),
            at.weight * grown,
            at.idle + t * d_idle,
            at.room + t * d_room,
            at.excess + t * d_excess,
        )
        self.state = self._excess_reset(moved)
        return True

    def _factors(self) -> Solve | None:
        """The matrix over (parts, log prices, excess), factorised; rows of pairs are divided by the stiffness."""
        at, options = self.state, self.options
        p, r, k = len(self.pairs), len(self.rows), len(self.limits)
        size = self.size
        total = self.total
        same = np.full(len(self.left), self.alpha / self.scale)
        diagonal = at.slack / at.part * total[self.who]  # unknowns are dy / Y
        # The largest entry of every pair's row is 1 or so.
        row_scale = 1 / np.maximum(1.0, diagonal)
        shares = self.share[self.at, self.res] / self.scale
        uses = self._entries * total[self.who[self.at]]
        own = self.limit_of[self.who]
        has = np.flatnonzero(own >= 0)
        q = self.polytope.limit[self.limits]
        whole = (total * self.unit)[self.limits] / q
        idle_scale = 1 / np.maximum(1.0, at.idle)
        softness = at.room / at.excess
        limit_scale = 1 / np.maximum(1.0, softness)
        rows = np.concatenate(
            [
                self.left,
                np.arange(p),
                self.at,
                p + self.to,
                p + np.arange(r),
                has,
                p + r + own[has],
                p + r + np.arange(k),
            ]
        )
        columns = np.concatenate(
            [
                self.right,
                np.arange(p),
                p + self.to,
                self.at,
                p + np.arange(r),
                p + r + own[has],
                has,
                p + r + np.arange(k),
            ]
        )
        values = np.concatenate(
            [
                same * row_scale[self.left],
                diagonal * row_scale,
                shares * row_scale[self.at],
                uses * idle_scale[self.to],
                -at.idle * idle_scale,
                row_scale[has],
                whole[own[has]] * limit_scale[own[has]],
                -softness * limit_scale,
            ]
        )
        scale = np.concatenate([row_scale, idle_scale, limit_scale])
        regular = options.regular * np.concatenate([np.ones(p), -np.ones(r), -np.ones(k)])
        if size <= options.dense:
            matrix = np.bincount(rows * size + columns, values, size * size).reshape(size, size)
            regularised = matrix + np.diag(regular)
            factors, pivots, info = lapack.dgetrf(regularised)
            if info != 0:
                return None

            def once(rhs: Array) -> Array:
                return np.asarray(lapack.dgetrs(factors, pivots, rhs)[0])

            product = matrix
        else:
            product = sp.csc_matrix((values, (rows, columns)), shape=(size, size))
            try:
                lu = splu((product + sp.diags(regular)).tocsc())
            except RuntimeError:
                return None
            once = lu.solve

        def solve(rhs: Array) -> Array:
            rhs = rhs * scale
            found = once(rhs)
            for _ in range(2):
                found = found + once(rhs - product @ found)
            return np.asarray(found)

        return solve

    def _direction(
        self, solve: Solve, wrong: tuple[Array, ...], wanted: tuple[Array, ...]
    ) -> tuple[Array, Array, Array, Array, Array, Array] | None:
        """Steps that put right what is wrong, products changing by what is wanted.

        Of parts, slacks, log prices (relative growth), idle, room and excess.
        """
        at, (pair, row, limit) = self.state, wrong
        p, r = len(self.pairs), len(self.rows)
        total = self.total[self.who]
        # z + dz = true slack after the step; part dz + slack dy / Y = wanted.
        dz = wanted[0] / (at.part / total)
        dw = wanted[1] / at.weight
        dv = wanted[2] / at.excess
        found = solve(np.concatenate([dz - pair, row - dw, limit - dv]))
        if not np.isfinite(found).all():
            return None
        d_part = found[:p] * total
        d_row, d_excess = found[p : p + r], found[p + r :]
        d_slack = dz - at.slack / at.part * d_part
        d_idle = dw - at.idle * d_row
        d_room = dv - at.room / at.excess * d_excess
        return d_part, d_slack, d_row, d_idle, d_room, d_excess

    def _longest(self, step: tuple[Array, ...]) -> float:
        at = self.state
        t = 1.0
        ones = np.ones(len(at.log_row))
        for value, change in (
            (at.part, step[0]),
            (at.slack, step[1]),
            (ones, step[2]),
            (at.idle, step[3]),
            (at.room, step[4]),
            (at.excess, step[5]),
        ):
            if len(value):
                ratio = float((-change / value).max())
                t = min(t, 1 / ratio) if ratio > 0 else t
        grown = max(float(np.abs(step[2]).max(initial=0.0)), 1e-300)
        totals = np.bincount(self.who, step[0], len(self.unit)) / self.total
        grown = max(grown, float(np.abs(totals[self.total > 0]).max(initial=0.0)) * 1.0)
        return min(t, self.options.longest / grown)

    def _mean_after(self, step: tuple[Array, ...], t: float, count: int) -> float:
        at = self.state
        total = self.total[self.who]
        part = (at.part + t * step[0]) / total * (at.slack + t * step[1])
        row = at.weight * (1 + t * step[2]) * (at.idle + t * step[3])
        limit = (at.room + t * step[4]) * (at.excess + t * step[5])
        return float(part.sum() + row.sum() + limit.sum()) / count
