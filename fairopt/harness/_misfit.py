"""How far answers at alpha are from observed tasks: `S(alpha) = sum_n p_n (log X_n - log x_n(alpha))^2`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import NotConverged, SolverError
from ..model.cluster import Cluster
from ..result.allocation import Allocation
from .alpha_path import Followed, Follower

Array = NDArray[np.float64]


class Curve:
    """Tasks as a function of alpha: every alpha is solved for once, each from the answer before."""

    def __init__(self, cluster: Cluster, mechanism: Followed, tol: float | None) -> None:
        self._follower = Follower(cluster, mechanism, tol)
        self.cluster, self._mechanism, self._tol = cluster, mechanism, tol
        self.title = self._follower.title
        self.found: dict[float, Allocation] = {}
        self.failed: dict[float, str] = {}

    def __call__(self, alpha: float) -> Allocation | None:
        """The certified answer at alpha; None where no engine has one, see `failed`."""
        alpha = float(alpha)
        if alpha not in self.found and alpha not in self.failed:
            try:
                self.found[alpha] = self._follower(alpha)[1]
            except (SolverError, NotConverged) as error:
                self.failed[alpha] = str(error)
        return self.found.get(alpha)

    def of(self, cluster: Cluster, alpha: float) -> Allocation:
        """The answer at alpha on the cluster whose proportional servers were merged into this one."""
        known = self.found.get(alpha)
        same = known is not None and len(cluster.servers) == len(self.cluster.servers)
        return known if known is not None and same else Follower(cluster, self._mechanism, self._tol)(alpha)[1]


class Misfit:
    """S(alpha) of one observation, all per-user arrays in the order of `users`.

    Parameters
    ----------
    users : which of the cluster's users are compared
    observed : their tasks, > 0
    precision : weights of their squares, mean 1
    free_scale : compare up to a common factor of all tasks
    """

    def __init__(
        self, curve: Curve, users: NDArray[np.intp], observed: Array, precision: Array, free_scale: bool
    ) -> None:
        self.curve, self.users, self.precision, self.free_scale = curve, users, precision, free_scale
        self._log = np.log(observed)

    @property
    def freedom(self) -> int:
        """Users less what is fitted: alpha, and the common factor if it is free."""
        return len(self.users) - 1 - int(self.free_scale)

    def log_scale(self, alpha: float) -> float:
        """The common factor by which observed tasks exceed the answer's, as a logarithm; 0 unless it is free."""
        return float(np.average(self._apart(alpha), weights=self.precision)) if self.free_scale else 0.0

    def residuals(self, alpha: float) -> Array:
        """`log X_n - log x_n(alpha)`, less the common factor if that is free; NaN where there is no answer."""
        return self._apart(alpha) - self.log_scale(alpha)

    def __call__(self, alpha: float) -> float:
        """S(alpha); NaN where there is no answer, infinite where it gives an observed user nothing."""
        return float((self.precision * self.residuals(alpha) ** 2).sum())

    def slope(self, alpha: float, step: float) -> float:
        """`|d log x / d log alpha|` in the metric of S, by a central difference of certified answers.

        A common factor that is free does not count. NaN at alpha = 0 and infinity.
        """
        if not 0 < alpha < np.inf:
            return np.nan
        ends = [self.residuals(alpha * np.exp(sign * step)) for sign in (-1, 1)]
        return float(np.sqrt((self.precision * ((ends[1] - ends[0]) / (2 * step)) ** 2).sum()))

    def _apart(self, alpha: float) -> Array:
        found = self.curve(alpha)
        if found is None:
            return np.full(len(self.users), np.nan)
        with np.errstate(divide="ignore"):
            return np.asarray(self._log - np.log(found.user_tasks[self.users]))
