"""DRF for tasks that cannot be divided: one task at a time to whoever is furthest behind."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from ..base.libraries import pd
from ..model.cluster import Cluster, expected
from ._filling import ordered


def discrete_drf(cluster: Cluster, ties: Sequence[str] | None = None, skip: bool = False) -> pd.DataFrame:
    """DRF's scheduler on one pool, a row per task started.

        repeat: pick the ready user with the lowest  s_n / phi_n,  s_n = max_r x_n d[n,r] / C_r  (x_n whole tasks);
                start one task of it if that fits, otherwise stop

    Several servers are pooled. A user is ready until it runs `max_tasks`; who can run nothing never is.
    A decision costs O(log n) by a heap (and O(resources) to see whether the task fits).

    Parameters
    ----------
    ties : user names, optional
        Who goes first among users with the same share (to 12 digits). Default: the cluster's order.
    skip : bool
        False: stop at the first user picked whose task does not fit, as the pseudocode does ("the cluster is full").
        True: only that user stops; the others go on, which section 4.2 has in mind when it remarks that users
        without need of the resource that ran out may continue.

    Returns
    -------
    DataFrame
        Indexed by `step`: `picked`, then per user the share of every resource and the dominant share after the
        step, then the share of every resource in use. See `tasks_of` for the final counts.

    Source: Ghodsi et al., NSDI 2011, section 4.2, algorithm 1 and table 1; weights as in section 4.3.
    """
    pool = expected(cluster).pool()
    rank = {user: position for position, user in enumerate(ordered(pool, ties, "ties"))}
    order = [rank[user] for user in pool.users]
    picks = np.fromiter(_decisions(pool, order, skip), dtype=np.intp)
    return _table(pool, picks)


def tasks_of(decisions: pd.DataFrame) -> pd.Series:
    """Tasks of every user at the end of `discrete_drf`, indexed by user."""
    counts = decisions["picked"].value_counts(sort=False)
    return counts.reindex(decisions["picked"].cat.categories).rename("tasks").rename_axis("user")


def _decisions(pool: Cluster, order: Sequence[int], skip: bool) -> Iterator[int]:
    """Users in the order in which their tasks start."""
    step = pool.dominant_share_per_task / pool.weight
    # What still counts as fitting: rounding errors of sums such as 0.1 + 0.2, relative to the capacity.
    room = pool.capacity[0] * (1 + 1e-9)
    used = np.zeros(len(room))
    tasks = np.zeros(len(step), dtype=np.int64)
    heap = [(0.0, order[n], n) for n in np.flatnonzero(pool.runnable & (pool.max_tasks >= 1)).tolist()]
    heapq.heapify(heap)
    while heap:
        _, rank, n = heapq.heappop(heap)
        after = used + pool.demand[n]
        if (after > room).any():
            if skip:
                continue
            return
        used = after
        tasks[n] += 1
        yield n
        if tasks[n] + 1 <= pool.max_tasks[n]:
            # Twelve digits: 3 * (4/18) and 2 * (3/9) have to tie, although rounding may tell them apart.
            heapq.heappush(heap, (float(f"{tasks[n] * step[n]:.12g}"), rank, n))


def _table(pool: Cluster, picks: np.ndarray[tuple[int], np.dtype[np.intp]]) -> pd.DataFrame:
    tasks = (picks[:, None] == np.arange(len(pool.users))).cumsum(axis=0)
    shares = tasks[:, :, None] * np.where(pool.runnable[:, None], pool.share_per_task, 0.0)
    each = np.concatenate([shares, shares.max(axis=2, keepdims=True)], axis=2)
    names = [f"{user} {what}" for user in pool.users for what in (*pool.resources, "dominant")]
    columns = [each.reshape(len(picks), len(names)), shares.sum(axis=1)]
    names += [f"total {name}" for name in pool.resources]
    steps = pd.RangeIndex(1, len(picks) + 1, name="step")
    frame = pd.DataFrame(np.hstack(columns), steps, names)
    frame.insert(0, "picked", pd.Categorical.from_codes(picks, categories=list(pool.users)))
    return frame
