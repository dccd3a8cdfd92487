"""DRF for indivisible tasks: one task at a time for the user with the lowest share."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from ..base.libraries import pd
from ..model.cluster import Cluster, expected
from ._filling import ordered


def discrete_drf(cluster: Cluster, ties: Sequence[str] | None = None, skip: bool = False) -> pd.DataFrame:
    r"""Run DRF's scheduler of indivisible tasks on one pool, and return its decisions.

    Repeatedly, the ready user n with the lowest weighted dominant share starts one task, if the task fits:

    .. math:: \arg\min_n\ \frac{1}{\phi_n} \max_r \frac{x_n d_{nr}}{C_r}, \qquad x_n \in \{0, 1, 2, \dots\}

    where user n runs :math:`x_n` tasks. Servers are pooled: :math:`C_r` is their total capacity. A user is ready until
    it runs `max_tasks`. A decision takes O(log users + resources) time.

    Parameters
    ----------
    cluster : Cluster
    ties : sequence of str, optional
        Order of users whose shares agree to 12 digits. Default: the cluster's order.
    skip : bool
        False: stop at the first selected user whose task does not fit, as in the pseudocode. True: only that user
        stops, according to the remark of section 4.2 that users without demand for an exhausted resource may continue.

    Returns
    -------
    DataFrame by step
        `picked`, the user that starts a task; after the step, `USER RESOURCE` and `USER dominant`, the shares of every
        user, and `total RESOURCE`, the used share of every resource. `tasks_of` returns the final numbers of tasks.

    Raises
    ------
    DataError
        `ties` does not name every user once.

    Source: Ghodsi et al., NSDI 2011, section 4.2, algorithm 1 and table 1; weights as in section 4.3
    (doi:10.5555/1972457.1972490).

    >>> import fairopt as fo
    >>> fo.scheduling.discrete_drf(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))["picked"].tolist()
    ['user1', 'user2', 'user1', 'user2', 'user1']
    """
    pool = expected(cluster, "whole tasks").pool()
    rank = {user: position for position, user in enumerate(ordered(pool, ties, "ties"))}
    order = [rank[user] for user in pool.users]
    picks = np.fromiter(_decisions(pool, order, skip), dtype=np.intp)
    return _table(pool, picks)


def tasks_of(decisions: pd.DataFrame) -> pd.Series:
    r"""Final number of tasks of every user after the decisions of `discrete_drf`.

    .. math:: x_n = \#\{\text{steps that start a task of n}\}

    >>> import fairopt as fo
    >>> fo.scheduling.tasks_of(fo.scheduling.discrete_drf(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))).tolist()
    [3, 2]
    """
    counts = decisions["picked"].value_counts(sort=False)
    return counts.reindex(decisions["picked"].cat.categories).rename("tasks").rename_axis("user")


def _decisions(pool: Cluster, order: Sequence[int], skip: bool) -> Iterator[int]:
    """Yield the indices of users in the order in which their tasks start."""
    step = pool.dominant_share_per_task / pool.weight
    # Tolerance for rounding errors of sums such as 0.1 + 0.2, relative to the capacity.
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
            # Rounding to twelve digits preserves ties such as 3 * (4/18) = 2 * (3/9).
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
