"""Empirical uniqueness of x_n: best responses from many random starts and orders, and how far apart they end."""

from __future__ import annotations

import numpy as np

from ..._libraries import pd
from ...model import _validate
from ...model._arrays import Array
from ...model.cluster import Cluster
from .distributed import best_response, generator_of


def multi_start(
    cluster: Cluster,
    alpha: float,
    starts: int = 10,
    *,
    rng: np.random.Generator | int,
    tol: float = 1e-8,
    max_rounds: int = 20_000,
) -> pd.DataFrame:
    """Play the game from random starts, in random order.

    Parameters
    ----------
    cluster : where the game is played
    alpha : in (0, infinity]; infinity is PS-DSF
    starts : how many, at least 2
    rng : seed or generator of starts and orders
    tol, max_rounds : where each game stops, as of `best_response`; one that misses `tol` is a row that has not
        `converged`, no error

    Returns
    -------
    DataFrame
        one row per start: `rounds`, `converged`, and `apart`, the largest difference in any user's tasks from those of
        the first start, relative. Far above `tol`, it shows that x_n is not unique (PS-DSF's is not, catalogue item
        41); below, it is evidence, not proof: best responses do not end at unstable equilibria (`equilibria` finds
        them on small clusters). `frame.attrs["user_tasks"]` is (starts, users).

    Raises
    ------
    DataError
        `starts` is below 2, or an argument is wrong, as of `best_response`.
    """
    starts, rng = _validate.whole(starts, "starts", least=2), generator_of(rng)
    rows, found = [], []
    for _ in range(starts):
        allocation = best_response(
            cluster, alpha, order="random", start=_random(cluster, rng), rng=rng, tol=tol, max_rounds=max_rounds,
            throw=False,
        )  # fmt: skip
        assert allocation.trace is not None
        found.append(allocation.arrays.user_tasks)
        scale = np.maximum(found[0], np.finfo(float).tiny)
        apart = float((np.abs(found[-1] - found[0]) / scale).max())
        rows.append({"rounds": allocation.trace.rounds, "converged": not allocation.flagged, "apart": apart})
    frame = pd.DataFrame(rows, index=pd.RangeIndex(1, starts + 1, name="start"))
    frame.attrs["user_tasks"] = np.array(found)
    return frame


def _random(cluster: Cluster, rng: np.random.Generator) -> Array:
    """Random allocation: random parts of every server's fullest resource."""
    parts = np.where(cluster.usable, rng.exponential(size=cluster.gamma.shape), 0.0)
    whole = parts.sum(axis=0)
    tasks = cluster.gamma * parts / np.where(whole > 0, whole, 1.0)
    room = np.minimum(1.0, cluster.max_tasks / np.maximum(tasks.sum(axis=1), np.finfo(float).tiny))
    return np.asarray(tasks * room[:, None])
