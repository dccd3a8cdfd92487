r"""Componentwise backward error: the relative change of the data that makes an allocation exactly optimal.

The error is defined at finite alpha, for global programs and for the per-server game. Let :math:`\lambda_{ir}` be
prices per unit of resource, :math:`G_n` (in the game :math:`G_{ni}`) the marginal utility of a task of user n, and
:math:`p_{ni} = \sum_r \lambda_{ir} d_{nr}` the cost of a task on server i, with :math:`p_n = \min_i p_{ni}`. An
allocation x is optimal (an equilibrium) if and only if G = p at pairs with tasks, G <= p elsewhere, and resources with
a positive price are exhausted. A violation is measured by the change of the data that removes it.

Given a threshold tau, prices of rows with a slack above tau are set to zero, and tasks of pairs with a relative excess
cost above tau are dropped. With the criterion's `stiffness` A, max(alpha, 1) under alpha-fairness, the error is the
largest of

    |log p_n - log G_n| / A         for every user (game: every pair with tasks), a change of weights. Where G > p, it
                                    is also taken for pairs without tasks, and is at most the slack 1 - x_n/q_n, a
                                    change of the limit q_n; where G < p (global), it is at most the surplus
                                    x_n/floor_n - 1, a change of the floor
    log p_ni - log p_n              for every pair that keeps tasks (global), a change of the pair's demands
    sum of dropped tasks            for every user, relative to x_n, and every priced row, relative to its capacity
    1 - use                         for every row that keeps a price, and the overuse of any row or limit, a change of
                                    the capacity or limit

so that x without the dropped tasks is the exact solution for data that differ by three (alpha < 1: five) times the
error. If servers have rates, x is work, and costs are costs of work. In a global program the limit of a user whose
rates differ is a row of its own. If all but the fraction tau of the limit is used, its price is the least price mu_n at
which the user would buy no more: work on server i costs mu_n / rate_ni more, and the unused fraction of the limit
counts like the slack of a row. The proof is in docs/certificates.md. All prices and all tau give a valid bound; the
least bound of several tau is returned. The error is linear in the violations, and independent of the size of a user's
welfare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..base.libraries import sp
from ..model._arrays import Array, Mask
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from . import _linear

#: Coefficients below this value are dropped from the linear program of prices.
_SMALLEST = 1e-12


#: Thresholds tau, tried in turn until the error is at most the next threshold.
LEVELS = (1e-6, 1e-9, 1e-12)
#: Larger thresholds for inaccurate allocations.
COARSE = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
#: Costs whose logarithm is smaller than the log of the server's largest price by more than this are computed from
#: logarithms of prices.
_FAR = 500.0
#: Prices count as zero if their logs are below the largest log price by more than this multiple of A, since rounding
#: would hide other terms.
_APART = 1e4


@dataclass(frozen=True)
class BackwardError:
    r"""Backward error of an allocation, with the prices of its proof.

    .. math:: \varepsilon = \min \{e : x \text{ is optimal for data within factors } \exp(\pm e)
        \text{ of the given data}\}

    The attribute `error` is an upper bound on this minimum, up to a factor of three (alpha < 1: five).

    Attributes
    ----------
    error : float
        Relative change of the data, dimensionless.
    where : str
        User, pair or resource at which the error is attained, in words.
    log_rows : (rows,)
        Log prices of whole capacities in the criterion's scale, -inf for prices that were set to zero.
    every_row : (rows,)
        Log prices before some of them were set to zero.
    pairs : (pairs,) of bool
        Pairs that keep their tasks.
    of_pairs : (pairs,)
        Error of each pair.
    of_rows : (rows,)
        Error of each row.

    Source: docs/certificates.md, "The backward error".

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster, tasks = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[4.0], [1.6]])
    >>> rule, log_rows = fo.CEEI().criterion(cluster), np.log([1.8, 0.2])
    >>> found = fo.certificates.backward_error(Polytope(cluster, cluster.max_tasks), rule, tasks, log_rows)
    >>> isinstance(found, fo.certificates.BackwardError), round(found.error, 3)
    (True, 0.022)
    """

    error: float
    where: str
    log_rows: Array
    every_row: Array
    pairs: Mask
    of_pairs: Array
    of_rows: Array


def backward_error(
    polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, servers: Sequence[str] | None = None
) -> BackwardError:
    r"""Backward error of tasks at given prices: the largest violation of the optimality conditions, in the data.

    .. math:: \frac{|\log p_n - \log G_n|}{A}, \qquad \log \frac{p_{ni}}{p_n} \ (x_{ni} > 0), \qquad
        1 - \frac{\sum_n x_{ni} d_{nr}}{c_{ir}} \ (\lambda_{ir} > 0)

    with marginal utilities :math:`G_n`, costs :math:`p_{ni}`, :math:`p_n = \min_i p_{ni}` and the criterion's
    `stiffness` A, max(alpha, 1) under alpha-fairness; the module's docstring has all terms.

    Parameters
    ----------
    polytope : Polytope
        Feasible set, `Polytope(cluster, criterion.limits(cluster))`.
    criterion : Criterion
        Criterion of the same cluster, with finite alpha.
    tasks : (users, servers)
    log_rows : (rows,)
        Log prices of whole capacities, where a row is a usable (server, resource). Their scale is arbitrary and is
        fitted (in the game, for each server). Values -inf and NaN stand for a price of zero.
    servers : sequence of str, optional
        Names of merged servers in messages.

    Returns
    -------
    BackwardError
        Infinite, with the reason in `where`, for tasks without finite marginal utilities (zero tasks, if alpha > 0).

    Source: docs/certificates.md, "The backward error", has the proof.

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster, tasks = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[45 / 11], [18 / 11]])
    >>> rule, log_rows = fo.CEEI().criterion(cluster), np.log([1.8, 0.2])
    >>> place = Polytope(cluster, cluster.max_tasks)
    >>> bool(fo.certificates.backward_error(place, rule, tasks, log_rows).error < 1e-9)
    True
    """
    return _Conditions(polytope, criterion, tasks, servers).least(log_rows)


def error_at(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, tau: float) -> float:
    """Backward error at one threshold tau, an upper bound that engines use as a termination criterion.

    At alpha = 0 the thresholds `LEVELS` are tried as well, since tasks on a server may be less than the fraction tau of
    a user's monopoly tasks. The error is infinite for tasks without finite marginal utilities.
    """
    problem, levels = _Conditions(polytope, criterion, tasks), LEVELS if criterion.alpha == 0 else ()
    if problem.impossible:
        return np.inf
    return min(problem.best(log_rows, level).error for level in (tau, *levels))


class _Conditions:
    """Terms of the optimality conditions that do not depend on prices.

    The conditions describe a market in which each seller has its own scale of prices. In the game every server is a
    seller and every pair a buyer; otherwise the whole cluster is the only seller, and every user a buyer.
    """

    def __init__(
        self, polytope: Polytope, criterion: Criterion, tasks: Array, servers: Sequence[str] | None = None
    ) -> None:
        self.polytope, self.criterion = polytope, criterion
        self.names = polytope.cluster.servers if servers is None else servers
        self.game = criterion.scope == "game"
        self.sellers = polytope.cluster.shape[1] if self.game else 1
        self.user, self.server = polytope.pair_user, polytope.pair_server
        who = polytope.users
        self.tasks = polytope.work(tasks)
        self.first = polytope.start[:-1]
        self.idle = 1 - polytope.used(tasks)
        self.scale = criterion.stiffness
        self.impossible = ""
        own, total = criterion.restrict(who), np.add.reduceat(self.tasks, self.first)
        unit = own.measure(total, polytope.reach)
        if not (unit > 0).all():
            n = who[int(np.argmin(unit))]
            self.impossible = f"user {polytope.cluster.users[n]!r}, who has no tasks, although it could run some"
            return
        held = total / polytope.limit if polytope.rate is None else polytope.part_of_limit(self.tasks)
        room = np.where(np.isfinite(polytope.quota), np.maximum(1 - held, 0.0), np.inf)
        #: Users whose limit is a constraint with a price of its own; empty in the game, where a limit bounds the tasks
        #: on each server.
        self.timed = np.zeros(len(who), dtype=bool)
        self.timed[[] if self.game else polytope.timed] = True
        self.part = self.tasks / unit[self.user]
        if self.game:
            self.buyer, self.seller = np.arange(len(self.user)), self.server
            self.marginal, self.room = own.log_marginal_of(total, self.user, self.server), room[self.user]
            self.bought, self.surplus = self.part, np.full(len(self.user), np.inf)
        else:
            self.buyer, self.seller = self.user, np.zeros(len(who), dtype=np.intp)
            self.marginal, self.room = own.log_marginal(total), room
            self.bought, self.surplus = total / unit, own.surplus(total)
        if np.isneginf(self.marginal).any():
            k = int(np.argmin(self.marginal))
            flat = self._pair(k) if self.game else self._user(k)
            self.impossible = f"{flat}, whose marginal utility is 0 or below the range of numbers"
        elif not np.isfinite(self.marginal).all():
            self.impossible = "tasks beyond the range of numbers"

    def least(self, log_rows: Array) -> BackwardError:
        """Error at log prices of whole capacities (rows,), for the best scale and threshold.

        It is infinite if the tasks have no finite marginal utilities (`impossible`).
        """
        if self.impossible:
            none = np.zeros(len(self.user), dtype=bool)
            residual = np.full(len(none), np.inf)
            return BackwardError(np.inf, self.impossible, log_rows, log_rows, none, residual, np.zeros(len(log_rows)))
        log_rows = np.where(np.isnan(log_rows) | np.isposinf(log_rows), -np.inf, log_rows)
        best = self.best(log_rows, LEVELS[0])
        for tau in (*LEVELS[1:], *COARSE):
            if best.error <= tau:
                break
            best = min(best, self.best(log_rows, tau), key=lambda found: found.error)
        return best

    def best(self, log_rows: Array, tau: float) -> BackwardError:
        """Error at the threshold tau: the smaller of the errors for the given and for the fitted scale of prices."""
        found = self.at(log_rows, tau, False)
        return found if found.error <= tau else min(found, self.at(log_rows, tau, True), key=lambda one: one.error)

    def at(self, log_rows: Array, tau: float, fitted: bool) -> BackwardError:
        """Error at the threshold tau, with the scale of prices fitted to the tasks (`fitted`) or given."""
        polytope, live = self.polytope, (self.idle <= tau) & (log_rows > -np.inf)
        of_rows = polytope.row_server if self.game else np.zeros(len(live), dtype=np.intp)
        top = np.full(self.sellers, -np.inf)
        np.maximum.at(top, of_rows[live], log_rows[live])
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # differences avoid cancellation of large logarithms
            every = log_rows - top[of_rows]
            live &= every >= -_APART * self.scale
            log_rows = np.where(live, every, -np.inf)
            off = self._of_buyers(log_price_per_task(polytope, log_rows), tau, None if fitted else top)
        short, excess, dropped, shift, time = off
        shift = shift[of_rows]
        kept = ~dropped & (self.tasks > 0)
        wrong = np.abs(np.where(live, self.idle, np.minimum(self.idle, 0.0)))
        errors: list[tuple[Array, Callable[[int], str]]] = [
            (short, self._pair if self.game else self._user),
            (np.where(kept, excess, 0.0), self._pair),
            (wrong, self._row),
        ]
        if dropped.any():
            lost = np.where(dropped, self.part, 0.0)
            errors.append((np.add.reduceat(lost, self.first), self._user))
            unused = np.where(dropped, self.tasks / polytope.gamma, 0.0)
            errors.append((np.where(live, polytope.used_by(unused), 0.0), self._row))
            if time.any():
                errors.append(
                    (np.where(time, polytope.part_of_limit(np.where(dropped, self.tasks, 0.0)), 0.0), self._user)
                )
        if time.any():
            errors.append((np.where(time, self.room, 0.0), self._user))
        worst = [float(each.max(initial=0.0)) for each, _ in errors]
        k = int(np.argmax(worst))
        tied = errors[k][0] >= worst[k] * (1 - 1e-12)  # of errors that are equal up to rounding the first is reported
        where = errors[k][1](int(tied.argmax())) if worst[k] > 0 else "no violation"
        of_pairs = np.maximum(short[self.buyer], np.where(dropped, self.part, excess))
        largest = worst[k] if not np.isnan(worst).any() else np.inf
        return BackwardError(largest, where, log_rows + shift, every + shift, kept, of_pairs, wrong)

    def _of_buyers(self, price: Array, tau: float, shift: Array | None) -> tuple[Array, Array, Mask, Array, Mask]:
        """Errors (buyers,), excess costs and the mask of dropped pairs (pairs,), shifts of log prices (sellers,).

        The last result is the mask, (users,), of users whose own time has a price.
        """
        least = price if self.game else np.minimum.reduceat(price, self.first)
        off, bought = self.marginal - least, self.bought > tau
        if shift is None:
            shift = self._middles(off, bought & (self.surplus > tau), self.room > tau)
        time, room = np.zeros(len(self.timed), dtype=bool), self.room
        if self.timed.any():
            price, time = self._with_own_time(price, shift, tau)
            least, room = np.minimum.reduceat(price, self.first), np.where(self.timed, np.inf, room)
            off = self.marginal - least
        off = (off - shift[self.seller]) / self.scale
        less = 0.0 if self.game else np.where(bought, np.minimum(-off, self.surplus), 0.0)
        error = np.where(off > 0, np.minimum(off, room), less)
        there, above = self.tasks > 0, -off if self.game else price - least[self.user]
        excess = np.where(there & (above > 0), above, 0.0)
        dropped = excess > tau if self.game else there & ((excess > tau) | ~bought[self.user])
        return error, excess, dropped, shift, time

    def _with_own_time(self, price: Array, shift: Array, tau: float) -> tuple[Array, Mask]:
        r"""Log costs of work (pairs,) with prices of own time, and the mask (users,) of users whose time has a price.

        If all but the fraction tau of a user's time is used, the price of time is the least at which the user would buy
        no more work, :math:`\mu_n = \max(0, \max_i (G_n a_{ni} - \sum_r \lambda_{ir} d_{nr}))`.
        """
        rate, log_value = self.polytope.rate, (self.marginal - shift[self.seller])[self.user]
        assert rate is not None
        top = np.maximum.reduceat(np.maximum(log_value, price), self.first)[self.user]
        lacking = (np.exp(log_value - top) - np.exp(price - top)) * rate
        own = np.where(self.timed & (self.room <= tau), np.maximum.reduceat(lacking, self.first), 0.0)
        time = own > 0
        with np.errstate(divide="ignore"):
            paid = top + np.log(np.exp(price - top) + own[self.user] / rate)
        return np.where(time[self.user], paid, price), time

    def _middles(self, off: Array, bought: Mask, hungry: Mask) -> Array:
        """Shifts of log prices, (sellers,), that minimise the largest error of buyers with tasks or below limits."""
        sellers, seller, known = self.sellers, self.seller, np.isfinite(off)
        high, low = np.full(sellers, -np.inf), np.full(sellers, np.inf)
        hungry = known & hungry
        np.maximum.at(high, seller[hungry], off[hungry])
        bought = known & bought
        if self.game:  # a few tasks at a large excess cost are dropped, and must not affect the fitted shift
            bought &= self.part > (high[seller] - off) / self.scale
        np.minimum.at(low, seller[bought], off[bought])
        high, low = np.where(np.isfinite(high), high, low), np.where(np.isfinite(low), low, high)
        return np.where(np.isfinite(high), (high + low) / 2, 0.0)

    def _user(self, n: int) -> str:
        return f"user {self.polytope.cluster.users[self.polytope.users[n]]!r}"

    def _pair(self, k: int) -> str:
        return f"{self._user(int(self.user[k]))} on server {self.names[self.server[k]]!r}"

    def _row(self, k: int) -> str:
        cluster, server = self.polytope.cluster, self.polytope.row_server[k]
        how = "overused" if self.idle[k] < 0 else "unused or misused at a price"
        return f"{cluster.resources[self.polytope.row_resource[k]]!r} of server {self.names[server]!r}, {how}"


def by_server(polytope: Polytope, found: BackwardError) -> Array:
    r"""Backward error by server, (servers,): the largest error of the server's pairs and rows.

    .. math:: \varepsilon_i = \max\Big(\max_n \varepsilon_{ni},\ \max_r \varepsilon_{ir}\Big)

    Parameters
    ----------
    polytope : Polytope
        Feasible set with which the backward error was computed.
    found : BackwardError
        Backward error of an allocation.

    >>> import numpy as np, fairopt as fo
    >>> from fairopt.model.polytope import Polytope
    >>> cluster, tasks = fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[4.0], [1.6]])
    >>> place, rule = Polytope(cluster, cluster.max_tasks), fo.CEEI().criterion(cluster)
    >>> found = fo.certificates.backward_error(place, rule, tasks, np.log([1.8, 0.2]))
    >>> fo.certificates.by_server(place, found).round(3).tolist()
    [0.022]
    """
    result = np.zeros(polytope.cluster.shape[1])
    np.maximum.at(result, polytope.pair_server, found.of_pairs)
    np.maximum.at(result, polytope.row_server, found.of_rows)
    return result


def log_price_per_task(polytope: Polytope, log_rows: Array) -> Array:
    r"""Log cost of a task, :math:`\log \sum_r \lambda_{ir} d_{nr}`, (pairs,), at log prices of capacities (rows,)."""
    log_price = polytope.by_server(log_rows, unused=-np.inf)
    top = log_price.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    server = polytope.pair_server
    with np.errstate(divide="ignore"):
        log_gamma = np.log(polytope.gamma)
        whole = np.log(polytope.price_per_task(np.exp(log_rows - top[polytope.row_server]))) + log_gamma
        far = np.flatnonzero(whole < -_FAR)  # pairs whose resources all have negligible prices
        whole += top[server]
        if len(far):
            whole[far] = np.logaddexp.reduce(np.log(polytope.pair_use[far]) + log_price[server[far]], axis=1)
    return whole - log_gamma


def supporting(problem: _Conditions, leeway: float) -> Array | None:
    """Log prices of whole capacities (rows,) that minimise every server's error to first order; None if unsolved.

    The linear program minimises the sum of errors t of servers over prices and errors. Let c be the cost of a task
    relative to its marginal utility, plus the price of an active limit and minus the price of an active floor of its
    user (in the game: pair). Constraints are `c >= 1 - t` for every pair, `c <= 1 + t / part` for pairs with a fraction
    `part` of their user's tasks, and that the price of each row times its slack is at most `t / A`. The unit of a row's
    price is the largest price of this row alone at which the cost of no pair with `part > leeway` exceeds its marginal
    utility. The conditions of a pair are divided by the pair's largest cost of a unit price, so that pairs of all
    scales are resolved.
    """
    polytope, pairs, idle = problem.polytope, np.arange(len(problem.part)), np.maximum(problem.idle, 0.0)
    servers, count = polytope.cluster.shape[1], len(idle)
    entries = polytope.use.tocoo()
    # Log of the price of a row at which a pair's cost of this row alone equals its marginal utility.
    log_value = problem.marginal[problem.buyer] + np.log(polytope.gamma)
    can_pay = log_value[entries.col] - np.log(entries.data)
    present = problem.part > leeway
    log_unit = np.full(count, np.inf)
    known = present[entries.col]
    np.minimum.at(log_unit, entries.row[known], can_pay[known])
    unknown = np.isinf(log_unit)[entries.row]
    np.minimum.at(log_unit, entries.row[unknown], can_pay[unknown])
    log_cost = log_unit[entries.row] - can_pay
    scale = np.zeros(len(pairs))
    np.maximum.at(scale, entries.col, log_cost)
    scaled, small = np.exp(log_cost - scale[entries.col]), np.exp(-scale)
    scaled[scaled < _SMALLEST] = 0.0
    cost = sp.csr_matrix((scaled, (entries.col, entries.row)), shape=(len(pairs), count))
    # The price of own time is converted to a price per task, in units of the user's largest rate.
    per_task = small
    if problem.timed.any() and polytope.rate is not None:
        most = np.maximum.reduceat(polytope.rate, problem.first)[problem.user]
        per_task = np.where(problem.timed[problem.user], small * most / polytope.rate, small)
    of_buyer = sp.csr_matrix((per_task, (pairs, problem.buyer)))
    here = sp.csr_matrix((small, (pairs, problem.server)), shape=(len(pairs), servers))
    of_limit, of_floor = of_buyer[:, problem.room <= leeway], of_buyer[:, problem.surplus <= leeway]
    paid = sp.hstack([cost, of_limit, -of_floor], format="csr")
    all_of, placed = np.flatnonzero(small > _SMALLEST), np.flatnonzero(present & (small > _SMALLEST))
    part = problem.part[placed]
    of_row = sp.csr_matrix((np.ones(count), (np.arange(count), polytope.row_server)), shape=(count, servers))
    rows = sp.bmat(
        [
            [paid[all_of], here[all_of]],
            [-sp.diags(part) @ paid[placed], here[placed]],
            [-problem.scale * sp.diags(idle, shape=(count, paid.shape[1])), of_row],
        ],
        format="csr",
    )
    least = np.concatenate([small[all_of], -part * small[placed], np.zeros(count)])
    solved = _linear.maximise(-np.append(np.full(paid.shape[1], 1e-12), np.ones(servers)), [-rows], [-least])
    if solved is None:
        return None
    prices = np.maximum(solved[0][:count], 0.0)
    # Prices below the accuracy of the linear program are increased for users whose rows all have negligible prices.
    order = np.lexsort((-log_cost, entries.col))  # the first row of a pair has the largest cost
    row = entries.row[order[np.unique(entries.col[order], return_index=True)[1]]]
    missing = np.where(problem.room[problem.buyer] > leeway, small - cost @ prices, 0.0)
    np.maximum.at(prices, row, prices[row] + np.maximum(missing, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(prices) + log_unit)


def searched(
    polytope: Polytope, criterion: Criterion, tasks: Array, servers: Sequence[str] | None = None
) -> BackwardError:
    """Smallest backward error over zero prices and the prices of `supporting` for several values of its leeway.

    No further prices are tried once the error is at most 1e-9.
    """
    problem = _Conditions(polytope, criterion, tasks, servers)
    best = problem.least(np.full(len(polytope.row_server), -np.inf))
    for leeway in (1e-10, 1e-8, 1e-6, 1e-4):
        if best.error <= 1e-9 or problem.impossible:
            break
        if (log_rows := supporting(problem, leeway)) is not None:
            best = min(best, problem.least(log_rows), key=lambda one: one.error)
    return best
