"""Use, shares and queues over time, from runs: sums of whole numbers, exact although they wrap around 2^64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..model._arrays import ratio
from .engine import Runs
from .loop.tables import EVICTED
from .workload import NEVER, SECOND, Whole, Workload

Numbers = NDArray[np.float64]


def _micro(times: Numbers) -> Whole:
    return np.asarray(np.rint(times * SECOND), dtype=np.int64)


def _sum_until(when: Whole, at: Whole, amounts: Whole) -> Whole:
    """(when, ...): the sum of amounts at or before each time; it may wrap around, and differences are exact."""
    order = np.argsort(at, kind="stable")
    total = np.zeros((len(at) + 1, *amounts.shape[1:]), dtype=np.int64)
    np.cumsum(amounts[order], axis=0, out=total[1:])
    return np.asarray(total[np.searchsorted(at[order], when, side="right")])


def at(w: Workload, runs: Runs, comes: NDArray[np.bool_], arrival: Whole, times: Numbers) -> pd.DataFrame:
    """What `Schedule.at` returns."""
    when = _micro(times)
    demand = w.demand[w.group_of_task[runs.task]]
    used = _sum_until(when, runs.start, demand) - _sum_until(when, runs.end, demand)
    ones = np.ones(len(runs.task), dtype=np.int64)
    started, ended = _sum_until(when, runs.start, ones), _sum_until(when, runs.end, ones)
    there, capacity = _servers(w, when)
    part = ratio(used, capacity, np.nan)
    columns: dict[str, object] = {name: part[:, r] for r, name in enumerate(w.resources)}
    columns |= {
        "running": started - ended,
        "waiting": _waiting(w, runs, comes, arrival, when) - started,
        "servers": there,
    }
    return pd.DataFrame(columns, index=pd.Index(times, name="time"))


def _waiting(w: Workload, runs: Runs, comes: NDArray[np.bool_], arrival: Whole, when: Whole) -> Whole:
    """Tasks that came into the queue, less those that left it with their users: all but those that started."""
    leaves = w.leaves[w.user]
    comes = comes & (arrival < leaves)
    size = np.diff(w.first)
    found = _sum_until(when, arrival[comes], size[comes])
    back = runs.how == EVICTED
    found = found + _sum_until(when, runs.end[back], np.ones(back.sum(), dtype=np.int64))
    # Who leaves takes along what waits: what came, less what started, and what came back.
    group = w.group_of_task[runs.task]
    net = size - np.bincount(group, minlength=w.groups) + np.bincount(group[back], minlength=w.groups)
    goes = comes & (leaves < NEVER)
    return found - _sum_until(when, leaves[goes], net[goes])


def _servers(w: Workload, when: Whole) -> tuple[Whole, Whole]:
    """How many servers are there, and what they have."""
    sign = np.where(w.change_up, 1, -1)
    first = np.ones(len(w.servers), dtype=np.int64)
    first[w.change_server[::-1]] = ~w.change_up[::-1]
    there = first.sum() + _sum_until(when, w.change_time, sign)
    capacity = first @ w.capacity + _sum_until(when, w.change_time, sign[:, None] * w.capacity[w.change_server])
    return there, capacity


def shares_at(w: Workload, runs: Runs, times: Numbers, names: Sequence[str]) -> pd.DataFrame:
    """What `Schedule.shares_at` returns."""
    when = _micro(times)
    order = np.argsort(when, kind="stable")
    column = np.full(len(w.users), -1, dtype=np.int64)
    column[[w.users.index(name) for name in names]] = np.arange(len(names))
    group = w.group_of_task[runs.task]
    who = column[w.user[group]]
    share = np.zeros((len(when), len(names)))
    for r in range(len(w.resources)):
        used = np.zeros((len(when) + 1, len(names)), dtype=np.int64)
        for times_, sign in ((runs.start, 1), (runs.end, -1)):
            first = np.searchsorted(when[order], times_, side="left")
            np.add.at(used, (first[who >= 0], who[who >= 0]), sign * w.demand[group, r][who >= 0])
        np.maximum(share, np.cumsum(used[:-1], axis=0) / w.total[r], out=share)
    found = np.empty_like(share)
    found[order] = share
    return pd.DataFrame(found, index=pd.Index(times, name="time"), columns=pd.Index(names, name="user"))


def _span(w: Workload, runs: Runs) -> tuple[int, int]:
    begun = int(w.arrival.min()) if w.groups else 0
    return begun, max(runs.time - begun, 0)


def mean_dominant_share(w: Workload, runs: Runs) -> Numbers:
    """(users,): the mean over time of `max_r used / C_r`."""
    _, span = _span(w, runs)
    if span == 0 or not len(runs.task):
        return np.zeros(len(w.users))
    group = w.group_of_task[runs.task]
    user = np.concatenate([w.user[group]] * 2)
    time = np.concatenate([runs.start, np.minimum(runs.end, runs.time)])
    order = np.lexsort([time, user])
    amounts = np.concatenate([w.demand[group], -w.demand[group]])[order]
    used = np.cumsum(amounts, axis=0)  # of every user from 0 to 0
    lasts = np.diff(time[order], append=0)
    share = (used / w.total).max(axis=1, initial=0.0)
    same = np.append(user[order][1:] == user[order][:-1], False)
    return np.asarray(np.bincount(user[order][same], (share * lasts)[same], minlength=len(w.users)) / span)


def utilization(w: Workload, runs: Runs) -> pd.Series:
    """What `Schedule.utilization` returns; in doubles, as microseconds times amounts overflow whole numbers."""
    _, span = _span(w, runs)
    group = w.group_of_task[runs.task]
    lasted = (np.minimum(runs.end, runs.time) - runs.start).astype(float)
    used = np.array([(lasted * column).sum() for column in (w.demand[group] / w.total).T])
    return pd.Series(used / max(span, 1), index=pd.Index(w.resources, name="resource"), name="utilization")
