r"""Smoothed game at one temperature tau and one vector of log prices: residuals and derivatives of `entropy_homotopy`.

With the use D of row r by the monopoly tasks of n on server i, and level prices v, the log level of a pair, from which
tasks follow as in `entropy_homotopy`, is

.. math:: l_{ni} = \log(\phi_n \gamma_{ni}) - \frac1a \log \sum_r D_{nir} v_{ir}^a, \qquad a = \min(\alpha, 1/\tau)

At the end tau is so small (1e-11) that differences of levels, divided by tau, are dominated by rounding. Levels are
therefore evaluated once, at the prices v where Newton's method begins, and updated for log prices log v + s with the
shares theta of rows in the cost,

.. math:: l_{ni}(\log v + s) = l_{ni}(\log v) - \frac1a \log\Big(1 + \sum_r \theta_{nir} (e^{a s_{ir}} - 1)\Big)

Rounding errors then are constant during Newton's method, and equivalent to other weights of the smoothed choice, on
which the solution should not depend; `CoupledGame.responses` measures this dependence.

Each compiled loop is one pass over pairs sorted by user, where user n has the pairs `start[n]` to `start[n + 1] - 1`.
Pairs whose part of the user's tasks is less than e^-60, far less than its rounding error, get no tasks: at low
temperatures nearly all pairs are of this kind. Exponentials and logarithms of pairs are evaluated between the loops on
whole arrays, which is several times faster.
"""

from __future__ import annotations

import numpy as np

from ...base.loops import compiled
from ...model._arrays import Array
from ..factors import LOG_RANGE, TINY, UNDERFLOW
from .equilibrium_system import EquilibriumSystem

#: Parts of a user's tasks below e^-60 are replaced by zero.
_NOTHING = 60.0
#: Largest distance of a log level from the log limit, over tau, whose exponential does not overflow.
_LARGEST = LOG_RANGE
#: Largest change of a log price, times a, up to which levels are updated: even shares as small as e^-30 then have
#: correct digits.
_CARRIED = 30


@compiled
def below_highest(start, whole, share, short, highest):  # type: ignore[no-untyped-def]
    """Divide shares (pairs, resources) by their sums `whole` (pairs,), and subtract the user's highest log level.

    Arrays are changed in place: `short` has log levels (pairs,), and gets their differences from the user's highest,
    which is filled in as `highest` (users,).
    """
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
    r"""Fill in shares and log levels after log prices, times a, have increased by `rise` (servers, resources).

    .. math:: l \leftarrow l - \frac1a \log(1 + grown), \qquad grown = \sum_r \theta_r (e^{rise_r} - 1)

    If `grown` (pairs,) is small, `new_short` is without the last term: the caller computes all logarithms together. For
    pairs without tasks an upper bound of the level is sufficient, and shares are copied.
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
                whole += new_share[k, r]  # equals 1 + more, without cancellation where prices decrease
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
    """Fill `result` (pairs,) with the differences of log levels `short` (pairs,) from the user's highest, over tau.

    Returns the highest log levels (users,). Differences below `-_NOTHING` become -infinity.
    """
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
    r"""Normalize the parts of users' tasks (pairs,), fill in `tasks` (pairs,), and add their use to `used`.

    Let L be the log level of a user without its limit q, which smoothly bounds total tasks X:
    :math:`\log X = -\tau \log(e^{-L/\tau} + q^{-1/\tau})`. `of_users` (3, users) gets the difference of L from
    `highest`, over tau; the difference of L from log q, over tau; and the derivative of log X in L.
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
    r"""Add the derivatives of residuals `log full` in log prices to `result` (servers resources, servers resources).

    With the parts t of users' tasks on servers, shares theta of rows in costs, and :math:`\kappa = d \log X / d L`,

    .. math::
        \frac{\partial F_{ir}}{\partial \log v_{js}} = -h\, barrier_{ir} [ir = js] - \sum_n
        \frac{x_{ni} d_{nr}}{full_{ir}} \Big(\frac{\theta_{nis}}\tau [i = j]
        - \Big(\frac1\tau - \kappa_n\Big) t_{nj} \theta_{njs}\Big)

    `barrier` (servers, resources) is the share of barrier terms in `full`; these terms are proportional to the power -h
    of prices.
    """
    size = per_task.shape[1]
    for i in range(len(full)):
        for r in range(size):
            result[i * size + r, i * size + r] -= power * barrier[i, r]
    column, weight = np.empty(len(result), np.intp), np.empty(len(result))
    for n in range(len(start) - 1):
        substitution, count = 1 / tau - kept[n], 0
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
                used = tasks[k] * per_task[k, r] / full[i, r]
                if used == 0:
                    continue
                row = result[i * size + r]
                for s in range(size):
                    row[i * size + s] -= used * share[k, s] / tau
                used *= substitution
                for j in range(count):
                    row[column[j]] += used * weight[j]


#: Weight of barrier terms, relative to tau, at the prices at which its users would fill the server if it were the only
#: one.
BARRIER = 0.01


class CoupledGame:
    r"""Smoothed game at temperature tau and log prices: choices of users, use of rows, and residuals.

    .. math:: F_{ir} = \log(y_{ir} + \epsilon\, (\bar v_i / v_{ir})^h), \qquad \epsilon = 0.01\, \tau, \quad
        h = \min(\alpha, most)

    with the use y of rows, level prices v, and the unit :math:`\bar v_i` of the prices of a server.

    Parameters
    ----------
    price : (servers, resources), log level prices
    unit : (servers,), :math:`\log \bar v_i`, at which its users would fill the server if it were the only one
    origin, risen : the game at log prices `price - risen`, whose levels are updated; None to evaluate levels
    most : largest power of prices in barrier terms. For alpha > 1 curves bend less with 0.5 than with 1, and need a
        half to a quarter as many linear systems.

    Attributes
    ----------
    part, tasks : (pairs,), fractions of users' tasks, and tasks
    used, full : (servers, resources), use, and the sum of use and barrier term; 1 for rows without users
    barrier : (servers, resources), share of the barrier term in `full`; 1 for rows without users
    residual : (servers, resources), F
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
        taken = BARRIER * self.tau * np.exp(self.power * (unit[:, None] - price))
        self.full = np.where(q.row, self.used + taken, 1.0)
        self.barrier, self.residual = np.where(q.row, taken / self.full, 1.0), np.log(self.full)

    def moved(self, step: Array) -> CoupledGame:
        """Game at log prices that differ by `step` (servers, resources).

        Levels are updated from the levels of the first game of a Newton iteration, unless prices have moved so far that
        shares of rows would lose their digits; in this case levels are evaluated anew.
        """
        risen = self.risen + step
        if np.abs(self.a * risen).max() > _CARRIED:
            return CoupledGame(self.q, self.price + step, self.tau, self.unit, most=self.most)
        origin = self.origin or self
        return CoupledGame(self.q, origin.price + risen, self.tau, self.unit, origin, risen, self.most)

    def _levels(self) -> tuple[Array, Array, Array]:
        """Shares of rows in costs (pairs, resources), users' highest log levels, and differences (pairs,) from them."""
        q = self.q
        highest = np.empty(len(q.weight))
        short, share, whole = q.levels(self.price, self.a)
        below_highest(q.start, whole, share, short, highest)
        return share, highest, short

    def _carried(self, origin: CoupledGame) -> tuple[Array, Array, Array]:
        """Shares, levels and differences, updated from the game `origin`, whose highest levels remain the reference."""
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
        """Newton step of log prices for a residual (servers, resources) or a stack; None if singular or not finite."""
        from scipy.linalg import lapack

        _, _, step, singular = lapack.dgesv(self.matrix(), residual.reshape(-1, self.price.size).T)
        return None if singular or not np.isfinite(step).all() else -step.T.reshape(residual.shape)

    def drift(self) -> Array:
        """Derivatives of residuals in log tau at constant prices, (servers, resources).

        Residuals depend on tau by the smoothed choice, by the exponent a if it is 1/tau, and by the barrier terms.
        """
        q, change = self.q, -self.short / self.tau
        if q.alpha * self.tau > 1:
            change += self._flatter()
        mean = q.sums(self.part * change)
        bent = (1 - self.kept) * self.over - np.logaddexp(0.0, self.over)
        rise = self.tau * (self.kept * (self.choice + mean) + bent)
        return self._more_residual(change + (rise - mean)[q.user]) + np.where(q.row, self.barrier, 0.0)

    def slope(self) -> Array:
        """Derivatives of log prices in log tau along the curve, (servers, resources); 0 if singular."""
        found = self.solve(self.drift())
        return np.zeros_like(self.price) if found is None else found

    def outward(self) -> Array | None:
        """Derivatives of log prices in log alpha at constant `alpha tau`, (servers, resources); None if singular."""
        return self.solve(self._more_residual(self._chosen(self._steeper())) - self.drift())

    def at_infinity(self) -> Array | None:
        """Tasks (pairs,) extrapolated to 1/alpha = 0 to first order; None if the Jacobian is singular."""
        moved = self._answers(self._steeper()[None], np.zeros((1, *self.price.shape)))
        return None if moved is None else np.asarray(np.maximum(self.tasks * (1 + moved[0]), 0.0))

    def responses(self, choices: Array, barriers: Array) -> float:
        r"""Largest relative change of user tasks under perturbations of log weights that vanish in the limit.

        The smoothed choice :math:`x_{ni} = X_n \mathrm{softmax}(l_n/\tau + weight)_i` has log weights, which are
        arbitrary and set to 0, and so have barrier terms. If prices determine the split of tasks, the changes are of
        the order of tau; if levels of pairs differ by less than tau, the changes are not small. The result is infinite
        if the Jacobian is singular.

        Parameters
        ----------
        choices : (several, pairs), perturbations of log weights of choices
        barriers : (several, servers, resources), perturbations of log weights of barrier terms
        """
        moved = self._answers(choices, barriers)
        if moved is None:
            return np.inf
        totals = np.add.reduceat(self.part * moved, self.q.start[:-1], axis=1)
        return float(np.abs(totals).max())

    def _flatter(self) -> Array:
        r"""Derivative of :math:`l_{ni}/\tau` in log tau by the exponent a = 1/tau, at a constant divisor, (pairs,).

        .. math:: \sum_r \theta_{nir} \log(\theta_{nir} / D_{nir})
        """
        use = np.where(self.q.use > 0, self.q.use, 1.0)
        # The logarithm is kept finite, so that its product with a share of 0 is 0.
        return np.asarray(np.einsum("pr,pr->p", self.share, np.log(np.maximum(self.share, TINY) / use)))

    def _steeper(self) -> Array:
        """Derivative of log levels over tau in log alpha, where a = alpha, (pairs,)."""
        return np.asarray(-self._flatter() / (self.q.alpha * self.tau))

    def _chosen(self, change: Array) -> Array:
        """Relative changes of tasks (pairs,) for changes of log levels over tau (pairs,), at constant prices."""
        mean = self.q.sums(self.part * change)
        return np.asarray(change - ((1 - self.tau * self.kept) * mean)[self.q.user])

    def _more_residual(self, moved: Array) -> Array:
        """Changes of residuals (servers, resources) for relative changes of tasks (pairs,)."""
        return np.where(self.q.row, self.q.used(self.tasks * moved) / self.full, 0.0)

    def _answers(self, choices: Array, barriers: Array) -> Array | None:
        """Relative changes of tasks (several, pairs) for changes of log levels over tau and of log barrier terms.

        Prices change so that residuals remain zero; None if the linear system is singular.
        """
        both = zip(choices, barriers, strict=True)
        residual = [self._more_residual(self._chosen(c)) + np.where(self.q.row, self.barrier * p, 0.0) for c, p in both]
        prices = self.solve(np.stack(residual))
        if prices is None:
            return None
        paid = [np.einsum("pr,pr->p", self.share, price[self.q.server]) for price in prices]
        return np.stack([self._chosen(c - p / self.tau) for c, p in zip(choices, paid, strict=True)])
