"""Componentwise backward error: by how much data must change for an allocation to be exactly optimal, in tasks.

Finite alpha, global programs and the per-server game. With log prices `L[i,r]` of whole capacities, what a task of n
is worth (`m_n`; in the game `m_ni`) and what it costs on server i (`p_ni = sum_r lambda_ir d_nr`, `p_n = min_i p_ni`),
x is optimal (an equilibrium) if and only if m and p agree wherever there are tasks, nobody would buy more, and what has
a price is used up. What these conditions are missed by is measured in changes of the data that would make up for it.

Given a level tau, rows that idle by more than tau lose their price, and pairs that are dearer than they need be by more
than tau lose their tasks. With `A = max(alpha, 1)` the error is the largest of

    |log p_n - log m_n| / A         of users (game: of pairs with tasks): their weights change by it; where m > p, of
                                    all pairs, and at most the room 1 - x_n/q_n: then the limit q_n does; where
                                    m < p (global) at most the surplus x_n/floor_n - 1: then the floor does
    log p_ni - log p_n              of pairs that keep tasks (global): demands of the pair change by it
    sum of what was dropped         per user, as a part of x_n, and per priced row, as a part of its capacity
    1 - use                         of rows that keep a price, and what any row or limit is overused by: capacities

so that x without what was dropped is the exact answer of data that differ by three (alpha < 1: five) times as much; the
proof is in docs/certificates.md. Any prices and any tau give a valid bound; the best of a few levels is returned.
It is linear in what is wrong, and knows users of tiny welfare as well as others.
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

#: Coefficients of the linear program of prices below this are left out.
_SMALLEST = 1e-12


#: Levels tau that are tried in turn, until the error is below the next: any gives a bound.
LEVELS = (1e-6, 1e-9, 1e-12)
#: Where the first does not do, larger ones: how wrong a bad answer is.
COARSE = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
#: Exponents so far below their sum's largest are computed on their own.
_FAR = 500.0
#: Prices so many times A below the largest, in logs, are none: rounding would hide what stands beside them.
_APART = 1e4


@dataclass(frozen=True)
class BackwardError:
    """The error, what it is largest for, and what proves it.

    Attributes
    ----------
    error : relative change of the data, to a factor of three (alpha < 1: five)
    where : in words
    log_rows : (rows,), log prices of whole capacities in the criterion's scale, -inf for those dropped
    pairs : (pairs,), which keep tasks
    every_row : (rows,), the same with those dropped
    of_pairs, of_rows : (pairs,), (rows,), what is wrong with each
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
    """The backward error of tasks at log prices of whole capacities, in any scale.

    The scale (in the game: of each server) that fits best is found; -inf stands for no price, and so does NaN.

    Parameters
    ----------
    polytope : the feasible set of a cluster under limits, `Polytope(cluster, criterion.limits(cluster))`
    criterion : of the same cluster, with finite alpha
    tasks : (users, servers), tasks of the polytope's cluster
    log_rows : (rows,), logarithms of prices, a row being a (server, resource) that somebody can use
    servers : their names in words, where they are not the cluster's (merged ones)

    Returns
    -------
    BackwardError
        infinite, with the reason in `where`, if tasks are none that have a price (nobody may run none, if alpha > 0)

    Source: the bound is proved in docs/certificates.md; the module's docstring has what it is the largest of.
    """
    return _Conditions(polytope, criterion, tasks, servers).least(log_rows)


def error_at(polytope: Polytope, criterion: Criterion, tasks: Array, log_rows: Array, tau: float) -> float:
    """The error at one level tau: a bound like any other, for engines on their way.

    At alpha = 0 also at smaller ones: a server may give users less than tau of what they could have in all.
    """
    problem, levels = _Conditions(polytope, criterion, tasks), LEVELS if criterion.alpha == 0 else ()
    if problem.impossible:
        return np.inf
    return min(problem.best(log_rows, level).error for level in (tau, *levels))


class _Conditions:
    """The parts of the conditions that do not depend on prices. A buyer is a user, in the game a pair."""

    def __init__(
        self, polytope: Polytope, criterion: Criterion, tasks: Array, servers: Sequence[str] | None = None
    ) -> None:
        self.polytope, self.criterion = polytope, criterion
        self.names = polytope.cluster.servers if servers is None else servers
        self.game = criterion.scope == "game"
        self.sellers = polytope.cluster.shape[1] if self.game else 1
        self.user, self.server = polytope.pair_user, polytope.pair_server
        who = polytope.users
        self.tasks = tasks[who[self.user], self.server]
        self.first = polytope.start[:-1]
        self.idle = 1 - polytope.used(tasks)
        self.scale = criterion.stiffness
        self.impossible = ""
        own, total = criterion.restrict(who), np.add.reduceat(self.tasks, self.first)
        unit = own.measure(total, polytope.reach)
        if not (unit > 0).all():
            n = who[int(np.argmin(unit))]
            self.impossible = f"user {polytope.cluster.users[n]!r}, who runs nothing, although it could"
            return
        room = np.where(np.isfinite(polytope.limit), np.maximum(1 - total / polytope.limit, 0.0), np.inf)
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
            self.impossible = f"{flat}, to whom more tasks are worth nothing, or less than numbers can say"
        elif not np.isfinite(self.marginal).all():
            self.impossible = "tasks beyond the range of numbers"

    def least(self, log_rows: Array) -> BackwardError:
        """The error at prices of whole capacities (rows,), in the best scale and at the best level."""
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
        """The error at one level, in the scale that prices come in or the one that fits best."""
        found = self.at(log_rows, tau, False)
        return found if found.error <= tau else min(found, self.at(log_rows, tau, True), key=lambda one: one.error)

    def at(self, log_rows: Array, tau: float, fitted: bool) -> BackwardError:
        """The error at one level, prices in the scale that fits best or as they are."""
        polytope, live = self.polytope, (self.idle <= tau) & (log_rows > -np.inf)
        of_rows = polytope.row_server if self.game else np.zeros(len(live), dtype=np.intp)
        top = np.full(self.sellers, -np.inf)
        np.maximum.at(top, of_rows[live], log_rows[live])
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # differences: large logarithms are not to swallow others
            every = log_rows - top[of_rows]
            live &= every >= -_APART * self.scale
            log_rows = np.where(live, every, -np.inf)
            off = self._of_buyers(log_price_per_task(polytope, log_rows), tau, None if fitted else top)
        short, dear, dropped, shift = off
        shift = shift[of_rows]
        kept = ~dropped & (self.tasks > 0)
        wrong = np.abs(np.where(live, self.idle, np.minimum(self.idle, 0.0)))
        errors: list[tuple[Array, Callable[[int], str]]] = [
            (short, self._pair if self.game else self._user),
            (np.where(kept, dear, 0.0), self._pair),
            (wrong, self._row),
        ]
        if dropped.any():
            lost = np.where(dropped, self.part, 0.0)
            errors.append((np.add.reduceat(lost, self.first), self._user))
            unused = np.where(dropped, self.tasks / polytope.gamma, 0.0)
            errors.append((np.where(live, polytope.use @ unused, 0.0), self._row))
        worst = [float(each.max(initial=0.0)) for each, _ in errors]
        k = int(np.argmax(worst))
        tied = errors[k][0] >= worst[k] * (1 - 1e-12)  # but for rounding: the first is named
        where = errors[k][1](int(tied.argmax())) if worst[k] > 0 else "nothing is wrong"
        of_pairs = np.maximum(short[self.buyer], np.where(dropped, self.part, dear))
        largest = worst[k] if not np.isnan(worst).any() else np.inf
        return BackwardError(largest, where, log_rows + shift, every + shift, kept, of_pairs, wrong)

    def _of_buyers(self, price: Array, tau: float, shift: Array | None) -> tuple[Array, Array, Mask, Array]:
        """Errors of buyers, dearness (pairs,), pairs dropped, shifts of log prices (sellers,), best if not given."""
        least = price if self.game else np.minimum.reduceat(price, self.first)
        off, bought = self.marginal - least, self.bought > tau
        if shift is None:
            shift = self._middles(off, bought & (self.surplus > tau), self.room > tau)
        off = (off - shift[self.seller]) / self.scale
        less = 0.0 if self.game else np.where(bought, np.minimum(-off, self.surplus), 0.0)
        error = np.where(off > 0, np.minimum(off, self.room), less)
        there, above = self.tasks > 0, -off if self.game else price - least[self.user]
        dear = np.where(there & (above > 0), above, 0.0)
        dropped = dear > tau if self.game else there & ((dear > tau) | ~bought[self.user])
        return error, dear, dropped, shift

    def _middles(self, off: Array, bought: Mask, hungry: Mask) -> Array:
        """(sellers,): the shifts that make the largest errors least, of those who have tasks or want some."""
        sellers, seller, known = self.sellers, self.seller, np.isfinite(off)
        high, low = np.full(sellers, -np.inf), np.full(sellers, np.inf)
        hungry = known & hungry
        np.maximum.at(high, seller[hungry], off[hungry])
        bought = known & bought
        if self.game:  # few tasks on a pair that is much too dear are dropped: they are not to move the others' prices
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
    """The error on each server, (servers,): the largest of its pairs and rows.

    Parameters
    ----------
    polytope : the one that the error was found with
    found : of `backward_error`
    """
    result = np.zeros(polytope.cluster.shape[1])
    np.maximum.at(result, polytope.pair_server, found.of_pairs)
    np.maximum.at(result, polytope.row_server, found.of_rows)
    return result


def log_price_per_task(polytope: Polytope, log_rows: Array) -> Array:
    """`log sum_r lambda[i,r] d[n,r]` of every pair, (pairs,), from log prices of whole capacities (rows,)."""
    log_price = polytope.by_server(log_rows, unused=-np.inf)
    top = log_price.max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)
    server = polytope.pair_server
    with np.errstate(divide="ignore"):
        log_gamma = np.log(polytope.gamma)
        whole = np.log(polytope.price_per_task(np.exp(log_rows - top[polytope.row_server]))) + log_gamma
        far = np.flatnonzero(whole < -_FAR)  # who needs only what is next to free beside other resources
        whole += top[server]
        if len(far):
            whole[far] = np.logaddexp.reduce(np.log(polytope.pair_use[far]) + log_price[server[far]], axis=1)
    return whole - log_gamma


def supporting(problem: _Conditions, leeway: float) -> Array | None:
    """Log prices of whole capacities (rows,) at which every server's error in tasks is least, to the first order.

    A linear program: minimise `sum_i t_i` over prices and t, where the price of a task in units of what it is worth,
    with the price of the limit and without that of the floor that its user (in the game: pair) is at, is at least
    `1 - t`, where a part of a buyer's tasks is placed at most `1 + t / part`, and a row's price times what idles is at
    most `t / alpha`. Rows are measured in the most that users with more than a part `leeway` there could pay for them,
    users who can pay far less than a row's unit in what that costs, so that no scale hides another.
    """
    polytope, pairs, idle = problem.polytope, np.arange(len(problem.part)), np.maximum(problem.idle, 0.0)
    servers, count = polytope.cluster.shape[1], len(idle)
    entries = polytope.use.tocoo()
    # log of marginal utility per unit of the row: what the price of the row alone could be for this user.
    worth = problem.marginal[problem.buyer] + np.log(polytope.gamma)
    can_pay = worth[entries.col] - np.log(entries.data)
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
    of_buyer = sp.csr_matrix((small, (pairs, problem.buyer)))
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
    # What is below the program's accuracy: a user that needs only rows that are next to free for all others.
    order = np.lexsort((-log_cost, entries.col))
    row = entries.row[order[np.unique(entries.col[order], return_index=True)[1]]]  # the one that costs it most
    missing = np.where(problem.room[problem.buyer] > leeway, small - cost @ prices, 0.0)
    np.maximum.at(prices, row, prices[row] + np.maximum(missing, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(prices) + log_unit)


def searched(
    polytope: Polytope, criterion: Criterion, tasks: Array, servers: Sequence[str] | None = None
) -> BackwardError:
    """The least backward error at prices that linear programs propose; infinite where none was solved."""
    problem = _Conditions(polytope, criterion, tasks, servers)
    best = problem.least(np.full(len(polytope.row_server), -np.inf))
    for leeway in (1e-10, 1e-8, 1e-6, 1e-4):
        if best.error <= 1e-9 or problem.impossible:
            break
        if (log_rows := supporting(problem, leeway)) is not None:
            best = min(best, problem.least(log_rows), key=lambda one: one.error)
    return best
