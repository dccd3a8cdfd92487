"""Derived quantities of an allocation as arrays, without labels and without pandas."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

import numpy as np

from ..base.libraries import pd
from ..certificates import Certificate
from ..model._arrays import Array, Mask, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import Split


class Answer(Protocol):
    """Interface of an allocation for measures, texts and plots."""

    @property
    def mechanism(self) -> str:
        """Label of the mechanism."""

    @property
    def cluster(self) -> Cluster:
        """Cluster of the tasks."""

    @property
    def tasks(self) -> Array:
        """Tasks (users, servers)."""

    @property
    def _split(self) -> Split | None:
        """Tasks on merged servers; None if they are not known."""

    @property
    def criterion(self) -> Criterion:
        """Criterion of the mechanism."""

    @property
    def log_prices(self) -> Array | None:
        """Log prices (servers, resources), for max-min (levels, servers, resources); None without prices."""

    @property
    def certificate(self) -> Certificate:
        """Certificate of the tasks."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the allocation."""

    @property
    def flagged(self) -> bool:
        """True if the certificate misses the tolerance."""

    @property
    def _given(self) -> bool:
        """True if the tasks were given and not computed."""

    @property
    def arrays(self) -> Arrays:
        """Derived quantities as arrays."""

    @property
    def utilization(self) -> pd.Series:
        """Utilization by resource."""

    @property
    def used_parts(self) -> pd.DataFrame:
        """Used fraction of each capacity."""

    def summary(self) -> dict[str, Any]:
        """Values of measures by name."""


#: Without a criterion, tasks of a user count as rounding errors if their dominant share is at most NOTHING, and their
#: number at most SOME.
NOTHING, SOME = 1e-9, 1e-3
#: Under a criterion, tasks of a user count as rounding errors if their dominant share is at most the residual, which is
#: clipped to at least ROUNDING and at most MOST.
ROUNDING, MOST = 1e-12, 1e-6


def _kept(make: Callable[[Arrays], Array]) -> Callable[[Arrays], Array]:
    """Decorator that caches an array in the allocation, and returns copies of it."""
    name = f"_{make.__name__}"

    @wraps(make)
    def kept(arrays: Arrays) -> Array:
        known = vars(arrays._of)
        if name not in known:
            known[name] = make(arrays)
        return np.array(known[name])

    return kept


class Arrays:
    """Quantities of an `Allocation` under the same names, as arrays with axes (users, servers, resources)."""

    def __init__(self, allocation: Answer) -> None:
        self._of = allocation

    @property
    @_kept
    def user_tasks(self) -> Array:
        """Tasks on all servers, `x_n = sum_i x[n,i]`, (users,)."""
        split = self._of._split
        return np.asarray(self._of.tasks.sum(axis=1)) if split is None else split.user_tasks

    @property
    def work(self) -> Array:
        """Work on all servers, `w_n = sum_i a[n,i] x[n,i]`, (users,); equal to `user_tasks` without rates."""
        split, cluster = self._of._split, self._of.cluster
        if not cluster.rated:
            return self.user_tasks
        return cluster.work(self._of.tasks) if split is None else split.work

    @property
    @_kept
    def dominant_shares(self) -> Array:
        """Dominant shares `x_n max_r d[n,r] / C_r`, (users,); 0 for users that cannot run tasks."""
        tasks = self.user_tasks
        return np.multiply(self._of.cluster.dominant_share_per_task, tasks, out=np.zeros(len(tasks)), where=tasks != 0)

    @property
    def nothing(self) -> Mask:
        """Mask (users,) of users whose tasks the certificate does not distinguish from 0; these tasks print as 0.

        Under a criterion that may leave a user without tasks, the mask selects users whose dominant share is at most
        the residual (`ROUNDING`). Without a criterion, it selects users with few tasks and a small dominant share
        (`NOTHING`).
        """
        certificate, share = self._of.certificate, self.dominant_shares
        if not certificate.judged:
            return (share <= NOTHING) & (self.user_tasks <= SOME)
        return np.asarray((share <= np.clip(certificate.residual, ROUNDING, MOST)) & self._of.criterion.starves)

    @property
    def virtual_dominant_shares(self) -> Array:
        r"""Virtual dominant shares :math:`\sigma_{ni} = x_n / \gamma_{ni}`, (users, servers); NaN for unusable pairs.

        With rates, :math:`x_n` is work, and :math:`\gamma_{ni}` is monopoly work.
        """
        return ratio(self.work[:, None], self._of.cluster.monopoly_work, np.nan)

    @property
    def usage(self) -> Array:
        """Use `x[n,i] d[n,r]`, (users, servers, resources), in resource units."""
        return np.asarray(self._of.tasks[:, :, None] * self._of.cluster.demand[:, None, :])

    @property
    def used_parts(self) -> Array:
        """Used fraction of each capacity, (servers, resources); NaN where the capacity is 0."""
        split, cluster = self._of._split, self._of.cluster
        used = cluster.used(self._of.tasks) if split is None else split.use
        return ratio(used, cluster.capacity, np.nan)

    @property
    @_kept
    def utilization(self) -> Array:
        """Used fraction of the total capacity, `sum_n x_n d[n,r] / C_r`, (resources,); NaN where `C_r` is 0."""
        cluster = self._of.cluster
        return ratio(cluster.used(self.user_tasks), cluster.pooled_capacity, np.nan)

    @property
    def prices(self) -> Array | None:
        """Prices `lambda[i,r]` per resource unit, shaped like `log_prices`; None if the allocation has no prices.

        Prices of a global program at finite alpha are scaled such that the expenditures of all users sum to the sum of
        the weights. In the game the prices of each server are scaled such that the largest price of a whole capacity is
        1. Max-min prices are not scaled.
        """
        log_prices = self._of.log_prices
        if log_prices is None:
            return None
        criterion, tasks = self._of.criterion, self.work
        runs = np.flatnonzero(tasks > 0)
        if np.isinf(criterion.alpha):
            return np.exp(log_prices)
        with np.errstate(divide="ignore", invalid="ignore"):
            if criterion.scope == "game":
                scale = (log_prices + np.log(self._of.cluster.capacity)).max(axis=1, keepdims=True)
            else:
                own = criterion.restrict(runs)
                spent = np.logaddexp.reduce(own.log_marginal(tasks[runs]) + np.log(tasks[runs]))
                scale = spent - np.log(own.weight.sum())
        return np.exp(log_prices - np.where(np.isfinite(scale), scale, 0.0))
