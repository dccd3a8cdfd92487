"""`ConcaveWelfare`: any differentiable, concave, increasing utility of a share, with what a certificate asks of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ._arrays import Array
from .criterion import Criterion

Slope = Callable[[Array], Array]


def _proportional(levels: Array) -> Array:
    """`1/t`: of log t, if no slope is given."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / levels)


@dataclass(frozen=True, eq=False)
class ConcaveWelfare(Criterion):
    """`F = sum_n phi_n U(t_n)` with `t_n = sigma_n / phi_n`, so that `dF/dx_n = u_n U'(t_n)`.

    In the game every server has a welfare of its own, of its users' `t_ni = x_n / (gamma[n,i] phi_n)`.

    Attributes
    ----------
    slope : function of levels t (any shape) that returns `U'(t)`, without a unit; infinite where there is none at 0
    alpha : 1, and not used: what it is elsewhere, `-d log U' / d log t`, depends on the level (`elasticity`)
    """

    slope: Slope = _proportional

    @property
    def stiffness(self) -> float:
        """1: errors of marginal utilities count in full, although steep utilities need less of a change of weights."""
        return 1.0

    @cached_property
    def starves(self) -> bool:
        """True if the first task is worth a finite amount, so that an optimum may give a user nothing."""
        return bool(np.isfinite(self.slope(np.zeros(1))).all())

    @property
    def scale_free(self) -> bool:
        return self.scope != "game"

    def log_marginal(self, user_tasks: Array) -> Array:
        """`log dF/dx_n = log u_n + log U'(u_n x_n / phi_n)`, shaped like `share`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            # Shares may be infinite.
            level = np.where(self._like_share(user_tasks) == 0, 0.0, self.levels(user_tasks))
            return np.asarray(np.log(self.share) + np.log(self.slope(level)))

    def elasticity(self, user_tasks: Array) -> Array:
        """`-d log U' / d log t`, shaped like `share`, by a difference; 0 where there are no tasks."""
        step = 1e-4  # in log t: errors of the difference, of order step^2 and 1e-16 / step, are about 1e-8 and 1e-12
        with np.errstate(all="ignore"):
            more, less = np.log(self.slope(np.stack([self.levels(user_tasks * np.exp(by)) for by in (step, -step)])))
            found = (less - more) / (2 * step)
        return np.where(np.isfinite(found) & (self._like_share(user_tasks) > 0), np.maximum(found, 0.0), 0.0)

    def measure(self, user_tasks: Array, reach: Array) -> Array:
        """Tasks that would change the marginal utility by a factor, at least those there are and at most the reach.

        In the game those of the server where this takes fewest.
        """
        if not self.starves:
            return user_tasks
        step = 1e-6 * reach
        with np.errstate(all="ignore"):
            change = (self.log_marginal(user_tasks) - self.log_marginal(user_tasks + step)) / self._like_share(step)
            needed = np.where(change > 0, 1 / change, np.inf).reshape(len(reach), -1).min(axis=1)
            return np.asarray(np.clip(needed, np.minimum(user_tasks, reach), reach))

    def bregman(self, tasks: Array, log_marginal: Array, price: Array, low: Array, high: Array) -> Array:
        """At least what each user's utility less the price of its tasks falls short of its maximum.

        Near an optimum at most four times that.
        Slopes fall: on the way to a point beyond the maximiser no task gains more than the first one.
        """
        marginal = np.exp(log_marginal)
        wants = marginal > price
        end = np.where(wants, high, low)
        parts = 2.0 ** -np.arange(59, -1, -1)[:, None]  # halvings of the way
        points = np.where(parts < 1, tasks + parts * (end - tasks), end)
        with np.errstate(all="ignore"):
            there = np.log(self.share) + np.log(self.slope(self.levels(points)))
            slope = np.exp(log_marginal + there - self.log_marginal(tasks))
            beyond = np.where(wants, slope <= price, slope >= price)
            beyond[-1] = True
            # The nearest point beyond the maximiser, or the end of the way.
            nearest = np.take_along_axis(points, beyond.argmax(axis=0)[None], axis=0)[0]
            loss = np.abs(marginal - price) * np.abs(nearest - tasks)
        return np.where(np.isnan(loss), np.inf, loss)
