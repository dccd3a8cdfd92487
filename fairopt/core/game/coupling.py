"""Games between the decoupled one and the real one, at one vector of log prices; see `entropy_homotopy`.

Close to the game temperatures are so small (1e-11) that differences of levels drown in their rounding. So levels are
rounded once, at the prices where Newton's method begins, and carried from there by

    log norm(p + s) = log norm(p) + log(1 + sum_r share_r (e^(a s_r) - 1))/a.

Rounding then is like other weights of the choices: it does not change between steps, and the answer should not depend
on it, which `CoupledGame.responses` measures.

Loops are one pass over pairs (user, server) each. Pairs whose part of a user's tasks is below e^-60, next to nothing in
doubles, count as having none: where many users meet few types of servers and temperatures are low, those are nearly
all. Exponentials and logarithms of pairs are taken between these loops, of whole arrays, which is several times faster.
"""

from __future__ import annotations

import numpy as np

from ...base.loops import compiled
from ...model._arrays import Array
from ..factors import LOG_RANGE, TINY, UNDERFLOW
from .equilibrium_system import EquilibriumSystem

#: Parts of a user's tasks below e^-NOTHING are none.
_NOTHING = 60.0
#: Levels so far from a limit, over tau, are as good as infinitely far.
_LARGEST = LOG_RANGE


@compiled
def below_highest(start, whole, share, short, highest):  # type: ignore[no-untyped-def]
    """Normalize shares, and fill in users' highest levels and the distances of pairs below them."""
    size = share.shape[1]
    for n in range(len(start) - 1):
        best = -np.inf
        for k in range(start[n], start[n + 1]):
            best = max(best, short[k])
            part = 1 / whole[k]
            for r in range(size):
                share[k, r] = share[k, r] * part if share[k, r] > UNDERFLOW * whole[k] else 0.0
        for k in range(start[n], start[n + 1]):
            short[k] -= best
        highest[n] = best


@compiled
def carried(start, server, share, short, rise, a, tau, new_share, new_short, grown):  # type: ignore[no-untyped-def]
    """Update shares where `a log v` grows by `rise` (servers, resources), and levels but for `log(1 + grown)/a`.

    Of pairs that have next to nothing a bound of the level is enough, and shares are not carried.
    """
    servers, size = rise.shape
    least, most = np.empty(servers), np.empty(servers)
    factor, growth = np.exp(rise), np.expm1(rise)
    for i in range(servers):
        least[i], most[i] = rise[i].min() / a, rise[i].max() / a
    for n in range(len(start) - 1):
        best = -np.inf
        for k in range(start[n], start[n + 1]):
            best = max(best, short[k] - most[server[k]])
        best -= _NOTHING * tau
        for k in range(start[n], start[n + 1]):
            i = server[k]
            bound = short[k] - least[i]
            grown[k] = 0.0
            if bound < best:
                new_short[k] = bound
                for r in range(size):
                    new_share[k, r] = share[k, r]
                continue
            more, whole = 0.0, 0.0
            for r in range(size):
                more += share[k, r] * growth[i, r]
                new_share[k, r] = share[k, r] * factor[i, r]
                whole += new_share[k, r]  # 1 + more, without the subtraction where little is left
            part = 1 / whole
            for r in range(size):
                new_share[k, r] *= part
            new_short[k] = short[k]
            if abs(more) < 0.5:
                grown[k] = more
            else:
                new_short[k] -= np.log(whole) / a


@compiled
def lower(start, short, tau, result):  # type: ignore[no-untyped-def]
    """Levels of pairs relative to the user's highest, over tau, -infinity below -NOTHING; and the highest, (users,)."""
    best = np.empty(len(start) - 1)
    for n in range(len(best)):
        top = -np.inf
        for k in range(start[n], start[n + 1]):
            top = max(top, short[k])
        for k in range(start[n], start[n + 1]):
            below = (short[k] - top) / tau
            result[k] = below if below > -_NOTHING else -np.inf
        best[n] = top
    return best


@compiled
def placed(start, server, per_task, highest, best, log_limit, tau, part, tasks, of_users, used):  # type: ignore[no-untyped-def]
    """Normalize parts of users' tasks, fill in tasks, and add their use to `used`.

    `of_users` is for (3, users): what having a choice adds to the log level, over tau; the distance of that above the
    log limit, over tau; and what part of a rise in level the limit leaves. A limit q bends the level X below it:
    `log X = -tau log(e^(-log level/tau) + q^(-1/tau))`.
    """
    size = per_task.shape[1]
    for n in range(len(start) - 1):
        total = 0.0
        for k in range(start[n], start[n + 1]):
            total += part[k]
        choice = best[n] / tau + np.log(total)
        over, kept, bend = -_LARGEST, 1.0, 0.0
        if log_limit[n] < np.inf:
            over = max((highest[n] - log_limit[n]) / tau + choice, over)
            kept = 1 / (1 + np.exp(min(over, _LARGEST)))
            bend = max(over, 0.0) + np.log1p(np.exp(-abs(over)))
        of_users[0, n], of_users[1, n], of_users[2, n] = choice, over, kept
        whole, scale = np.exp(highest[n] + tau * (choice - bend)), 1 / total
        for k in range(start[n], start[n + 1]):
            part[k] *= scale
            tasks[k] = part[k] * whole
            if tasks[k] > 0:
                for r in range(size):
                    used[server[k], r] += per_task[k, r] * tasks[k]


@compiled
def matrix(start, server, per_task, share, part, tasks, kept, full, tau, barrier, power, result):  # type: ignore[no-untyped-def]
    """Add derivatives of `log full` by log prices, (servers resources, servers resources).

    `barrier` is the share of barrier terms, of this `power` of prices.
    """
    size = per_task.shape[1]
    for i in range(len(full)):
        for r in range(size):
            result[i * size + r, i * size + r] -= power * barrier[i, r]
    column, weight = np.empty(len(result), np.intp), np.empty(len(result))
    for n in range(len(start) - 1):
        choice, count = 1 / tau - kept[n], 0
        for k in range(start[n], start[n + 1]):
            if part[k] > 0:
                for r in range(size):
                    if share[k, r] > 0:
                        column[count], weight[count] = server[k] * size + r, part[k] * share[k, r]
                        count += 1
        for k in range(start[n], start[n + 1]):
            if part[k] == 0:
                continue
            i = server[k]
            for r in range(size):
                answer = tasks[k] * per_task[k, r] / full[i, r]
                if answer == 0:
                    continue
                row = result[i * size + r]
                for s in range(size):
                    row[i * size + s] -= answer * share[k, s] / tau
                answer *= choice
                for j in range(count):
                    row[column[j]] += answer * weight[j]


#: Weight of barrier terms, relative to tau and to a price at which the server alone is full.
BARRIER = 0.01


class CoupledGame:
    """Game at temperature tau and log prices (servers, resources); `unit` (servers,) are log prices of the barrier.

    `origin` is the same game at prices lower by `risen`, from which levels are carried. `most` is the power of prices
    in barrier terms, unless alpha is less: for alpha > 1 curves bend less with .5 than with 1, and take a half to a
    quarter of the systems.
    """

    def __init__(
        self,
        q: EquilibriumSystem,
        price: Array,
        tau: float,
        unit: Array,
        origin: CoupledGame | None = None,
        risen: Array | None = None,
        most: float = 0.5,
    ) -> None:
        self.q, self.price, self.tau, self.unit, self.most = q, price, float(tau), unit, most
        self.origin, self.risen = origin, np.zeros_like(price) if risen is None else risen
        self.a = min(q.alpha, 1 / self.tau)
        self.share, self.highest, self.short = self._levels() if origin is None else self._carried(origin)
        self._choose()
        self.power = min(q.alpha, most)
        #: Log of what is full, use and barrier; the barrier's share of it; and it. 0, 1 and 1 without a price.
        taken = BARRIER * self.tau * np.exp(self.power * (unit[:, None] - price))
        self.full = np.where(q.row, self.used + taken, 1.0)
        self.barrier, self.residual = np.where(q.row, taken / self.full, 1.0), np.log(self.full)

    def moved(self, step: Array) -> CoupledGame:
        """The same game at other prices."""
        risen = self.risen + step
        if np.abs(self.a * risen).max() > 30:
            return CoupledGame(self.q, self.price + step, self.tau, self.unit, most=self.most)
        origin = self.origin or self
        return CoupledGame(self.q, origin.price + risen, self.tau, self.unit, origin, risen, self.most)

    def _levels(self) -> tuple[Array, Array, Array]:
        """Price shares of the pairs, users' highest log levels, and by how much those of the pairs are lower."""
        q = self.q
        highest = np.empty(len(q.weight))
        short, share, whole = q.levels(self.price, self.a)
        below_highest(q.start, whole, share, short, highest)
        return share, highest, short

    def _carried(self, origin: CoupledGame) -> tuple[Array, Array, Array]:
        """Shares and levels carried from the origin, whose highest levels stay the reference."""
        q, rise = self.q, self.a * self.risen
        share, short, grown = np.empty_like(origin.share), np.empty_like(origin.short), np.empty_like(origin.short)
        given = origin.share, origin.short, rise, self.a, self.tau
        carried(q.start, q.server, *given, share, short, grown)
        short -= np.log1p(grown) / self.a
        return share, origin.highest, short

    def _choose(self) -> None:
        """Evaluate choices of users: parts, tasks and use."""
        q, tau = self.q, self.tau
        self.part, self.tasks = np.empty((2, len(q.server)))
        best = lower(q.start, self.short, tau, self.part)
        np.exp(self.part, out=self.part)
        self.used, of_users = np.zeros(q.row.shape), np.empty((3, len(best)))
        found = self.part, self.tasks, of_users, self.used
        placed(q.start, q.server, q.per_task, self.highest, best, np.log(q.limit), tau, *found)
        self.choice, self.over, self.kept = of_users

    # -- derivatives -----------------------------------------------------------------------------

    def matrix(self) -> Array:
        """Jacobian of residuals by log prices, (servers resources, servers resources)."""
        q, size = self.q, self.price.size
        result = np.zeros((size, size))
        given = q.per_task, self.share, self.part, self.tasks, self.kept, self.full
        matrix(q.start, q.server, *given, self.tau, self.barrier, self.power, result)
        return result

    def solve(self, residual: Array) -> Array | None:
        """Newton step of log prices for a residual (servers, resources), or for several."""
        from scipy.linalg import lapack

        _, _, step, singular = lapack.dgesv(self.matrix(), residual.reshape(-1, self.price.size).T)
        return None if singular or not np.isfinite(step).all() else -step.T.reshape(residual.shape)

    def drift(self) -> Array:
        """Derivative of residuals by log tau."""
        q, change = self.q, -self.short / self.tau
        if q.alpha * self.tau > 1:
            change += self._flatter()
        mean = q.sums(self.part * change)
        bent = (1 - self.kept) * self.over - np.logaddexp(0.0, self.over)
        rise = self.tau * (self.kept * (self.choice + mean) + bent)
        return self._more_residual(change + (rise - mean)[q.user]) + np.where(q.row, self.barrier, 0.0)

    def slope(self) -> Array:
        """Derivatives of log prices by log tau along the curve."""
        found = self.solve(self.drift())
        return np.zeros_like(self.price) if found is None else found

    def outward(self) -> Array | None:
        """Derivatives of log prices by log alpha at constant `alpha tau`; None if singular."""
        return self.solve(self._more_residual(self._chosen(self._steeper())) - self.drift())

    def at_infinity(self) -> Array | None:
        """Tasks extrapolated to 1/alpha = 0 to first order; None if singular."""
        moved = self._answers(self._steeper()[None], np.zeros((1, *self.price.shape)))
        return None if moved is None else np.asarray(np.maximum(self.tasks * (1 + moved[0]), 0.0))

    def responses(self, choices: Array, barriers: Array) -> float:
        """Largest relative change of user tasks under perturbations of log weights that vanish in the limit.

        Choices carry weights (several, pairs) and so do barrier terms (several, servers, resources), 1 for want of a
        reason: `x_ni = X_n softmax(l_n/tau + choice)_i`. Where prices decide who runs where, answers are as small as
        tau. Where they do not, because they tell pairs apart by less than tau, answers are not small.
        """
        moved = self._answers(choices, barriers)
        if moved is None:
            return np.inf
        totals = np.add.reduceat(self.part * moved, self.q.start[:-1], axis=1)
        return float(np.abs(totals).max())

    def _flatter(self) -> Array:
        """Derivative of levels over tau by log tau where a = 1/tau: from `log sum_r D v^a` over a, it is
        `sum_r share_r log(share_r/D_r)`."""
        use = np.where(self.q.use > 0, self.q.use, 1.0)
        # A share of 0 adds nothing: it is multiplied by a finite logarithm.
        return np.asarray(np.einsum("pr,pr->p", self.share, np.log(np.maximum(self.share, TINY) / use)))

    def _steeper(self) -> Array:
        """Derivative of levels over tau by log alpha, where a = alpha."""
        return np.asarray(-self._flatter() / (self.q.alpha * self.tau))

    def _chosen(self, change: Array) -> Array:
        """Relative changes of tasks for changes of levels over tau, at constant prices."""
        user = self.q.polytope.pair_user
        mean = self.q.sums(self.part * change)
        return np.asarray(change - ((1 - self.tau * self.kept) * mean)[user])

    def _more_residual(self, moved: Array) -> Array:
        """Changes of residuals for relative changes of tasks."""
        return np.where(self.q.row, self.q.used(self.tasks * moved) / self.full, 0.0)

    def _answers(self, choices: Array, barriers: Array) -> Array | None:
        """Relative changes of tasks (several, pairs) for changes of levels over tau and barriers; prices adjust."""
        both = zip(choices, barriers, strict=True)
        residual = [self._more_residual(self._chosen(c)) + np.where(self.q.row, self.barrier * p, 0.0) for c, p in both]
        prices = self.solve(np.stack(residual))
        if prices is None:
            return None
        paid = [np.einsum("pr,pr->p", self.share, price[self.q.server]) for price in prices]
        return np.stack([self._chosen(c - p / self.tau) for c, p in zip(choices, paid, strict=True)])
