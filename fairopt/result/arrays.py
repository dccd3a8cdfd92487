"""Numbers of an allocation as arrays, which all of the package computes with: without labels, and without pandas."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

import numpy as np

from ..base.libraries import pd
from ..certificates import Certificate
from ..model._arrays import Array, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import Split


class Answer(Protocol):
    """An allocation, as far as its numbers, texts and pictures need to know it."""

    @property
    def mechanism(self) -> str:
        """Its label."""

    @property
    def cluster(self) -> Cluster:
        """The cluster that was shared."""

    @property
    def tasks(self) -> Array:
        """(users, servers)."""

    @property
    def _split(self) -> Split | None:
        """The tasks as those of merged servers."""

    @property
    def criterion(self) -> Criterion:
        """Criterion that was optimised."""

    @property
    def log_prices(self) -> Array | None:
        """(servers, resources); for max-min (levels, servers, resources)."""

    @property
    def certificate(self) -> Certificate:
        """Its quality."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the reader."""

    @property
    def flagged(self) -> bool:
        """True if the certificate misses the tolerance."""

    @property
    def _given(self) -> bool:
        """True if the tasks are somebody's, not an engine's."""

    @property
    def arrays(self) -> Arrays:
        """Its numbers."""

    @property
    def utilization(self) -> pd.Series:
        """Utilization by resource."""

    @property
    def used_parts(self) -> pd.DataFrame:
        """Used part of each capacity."""

    def summary(self) -> dict[str, Any]:
        """Its measures by name."""


def _kept(make: Callable[[Arrays], Array]) -> Callable[[Arrays], Array]:
    """Copies of an array that is computed once for an allocation, which keeps it."""
    name = f"_{make.__name__}"

    @wraps(make)
    def kept(arrays: Arrays) -> Array:
        known = vars(arrays._of)
        if name not in known:
            known[name] = make(arrays)
        return np.array(known[name])

    return kept


class Arrays:
    """Arrays of an `Allocation`, under the same names: axes are users, servers, resources of its cluster."""

    def __init__(self, allocation: Answer) -> None:
        self._of = allocation

    @property
    @_kept
    def user_tasks(self) -> Array:
        """`x_n = sum_i x[n,i]`, (users,)."""
        split = self._of._split
        return np.asarray(self._of.tasks.sum(axis=1)) if split is None else split.user_tasks

    @property
    @_kept
    def dominant_shares(self) -> Array:
        """`k_n x_n`, (users,); 0 for users who can run nothing."""
        tasks = self.user_tasks
        return np.multiply(self._of.cluster.dominant_share_per_task, tasks, out=np.zeros(len(tasks)), where=tasks != 0)

    @property
    def virtual_dominant_shares(self) -> Array:
        """`s[n,i] = x_n / gamma[n,i]`, (users, servers); NaN where n cannot run on i."""
        return ratio(self.user_tasks[:, None], self._of.cluster.gamma, np.nan)

    @property
    def usage(self) -> Array:
        """`x[n,i] d[n,r]`, (users, servers, resources), in resource units."""
        return np.asarray(self._of.tasks[:, :, None] * self._of.cluster.demand[:, None, :])

    @property
    def used_parts(self) -> Array:
        """Used part of each capacity, (servers, resources); NaN where there is none."""
        split, cluster = self._of._split, self._of.cluster
        used = self._of.tasks.T @ cluster.demand if split is None else split.use
        return ratio(used, cluster.capacity, np.nan)

    @property
    @_kept
    def utilization(self) -> Array:
        """Used part of the whole capacity, `sum use / sum_i c[i,r]`, (resources,); NaN where there is none."""
        cluster = self._of.cluster
        return ratio(self.user_tasks @ cluster.demand, cluster.pooled_capacity, np.nan)

    @property
    def prices(self) -> Array | None:
        """`lambda[i,r]` per resource unit, shaped like `log_prices`: scaled so that users' budgets sum to the weights.

        In the game each server's own prices are scaled so that the largest price of a capacity is 1.
        """
        log_prices = self._of.log_prices
        if log_prices is None:
            return None
        criterion, tasks = self._of.criterion, self.user_tasks
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
