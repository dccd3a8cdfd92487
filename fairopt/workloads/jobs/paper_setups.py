"""Set-ups of experiments with whole tasks in papers; parameters that the papers do not state are options."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...base.libraries import pd, stats
from ...scheduling.workload import Workload
from .._draw import Count, Positive, measured
from ..sources import workload_generator

#: DRF 7.1: demands (CPUs, GB) of tasks of job 1 and of job 2 in the three phases.
_PHASES = {"1": ((1, 10), (1, 1)), "2": ((2, 4), (1, 3)), "3": ((1, 7), (1, 4))}
#: DRFH, figure 4: `_TYPES` has CPU and memory of the six most frequent of Google's types of servers, `_FREQUENT` the
#: number of servers of each type.
_TYPES = ((0.5, 0.4995), (0.5, 0.2493), (0.5, 0.749), (1, 1), (0.25, 0.2498), (0.5, 0.1241))
_FREQUENT = (6732, 3863, 1001, 795, 126, 52)


@workload_generator("drf-dynamic", "DRF section 7.1: two jobs on 48 servers, one of the three phases")
def drf_7_1(
    rng: np.random.Generator, phase: Literal["1", "2", "3"] = "1", seconds: Positive = 10.0, spread: Positive = 0.5
) -> Workload:
    """Two jobs with more tasks than fit on 48 initially empty servers of 4 CPUs and 14 GB.

    Durations have mean `seconds`, of which a fraction `spread` is exponentially distributed and the rest constant, as
    the paper does not state durations. A phase lasts two minutes; there are enough tasks for five minutes.

    Parameters
    ----------
    phase : str
        Phase of the experiment, "1", "2" or "3", which determines the demands of both jobs.
    seconds : float
        Mean duration of tasks.
    spread : float
        Fraction of the mean duration that is exponentially distributed; values above 1 count as 1.
    """
    number = int(300 / seconds * 192)
    lasts = seconds * (1 - min(spread, 1.0) + min(spread, 1.0) * rng.exponential(1.0, (2, number)))
    parts = [
        pd.DataFrame(
            {"user": f"job {k + 1}", "job": f"job {k + 1}", "duration": lasts[k], "cpu": cpu, "memory": memory}
        )
        for k, (cpu, memory) in enumerate(_PHASES[phase])
    ]
    servers = pd.DataFrame({"count": [48], "cpu": [4], "memory": [14]})
    return Workload.from_frames(pd.concat(parts, ignore_index=True), servers, source=f"DRF 7.1, phase {phase}")


@workload_generator("drf-policies", "DRF section 7.2: users with small and large tasks on 48 servers")
def drf_policies(rng: np.random.Generator, seconds: Positive = 40.0, jobs: Count = 30, loop: bool = False) -> Workload:
    """Four users with jobs of 80 tasks of 1 CPU and .5 GB, and four of 2 CPUs and 2 GB, on servers of 8 CPUs and 6 GB.

    Durations have mean `seconds`, of which half is exponentially distributed, as the paper does not state durations.

    Parameters
    ----------
    seconds : float
        Mean duration of tasks.
    jobs : int
        Number of jobs of each user.
    loop : bool
        A user submits its next job when the last task of the previous job ends, as in the paper. False: all jobs are
        submitted at the start, so that a user always has tasks that can start.
    """
    parts = []
    for n in range(8):
        small = n < 4
        lasts = seconds * (0.5 + 0.5 * rng.exponential(1.0, jobs * 80))
        user = f"{'small' if small else 'large'} {n % 4 + 1}"
        names = [f"{user}, job {k + 1}" for k in range(jobs) for _ in range(80)]
        part = pd.DataFrame({"user": user, "job": names, "duration": lasts, "cpu": 1 if small else 2,
                             "memory": 0.5 if small else 2})  # fmt: skip
        parts.append(part.assign(after=[""] * 80 + names[:-80]) if loop else part)
    servers = pd.DataFrame({"count": [48], "cpu": [8], "memory": [6]})
    return Workload.from_frames(pd.concat(parts, ignore_index=True), servers, source="DRF 7.2")


@workload_generator("drfh-figure4", "DRFH figure 4: three users come to 100 servers, the first one leaves")
def drfh_figure4(
    rng: np.random.Generator,
    seconds: Positive = 20.0,
    servers: Literal["totals", "drawn"] = "totals",
    mix: Count = 1,
) -> Workload:
    """Users with tasks of (.2, .3), (.5, .1) and (.1, .3) of CPU and memory that arrive at 0, 200 and 500 s.

    The first user departs at 1080 s. Durations have mean `seconds`, half constant and half exponential, as the paper
    does not state durations. All users have enough tasks for 1500 s.

    Parameters
    ----------
    seconds : float
        Mean duration of tasks.
    servers : str
        `totals`: a mix of the first six types of table I with the printed totals, 52.75 CPUs and a memory of 51.32.
        `drawn`: 100 servers drawn from table I.
    mix : int
        Index, from 1, of the mix with the printed totals, in order of decreasing probability if servers are drawn from
        table I; an index beyond the last mix selects the last mix.
    """
    kinds, mixes = np.array(_TYPES), figure4_mixes()
    count = mixes[min(mix, len(mixes)) - 1]
    if servers == "drawn":
        table = np.array(measured("google_jobs")[1]["servers 2011"], dtype=float)
        kinds, count = table, rng.multinomial(100, table[:, 2] / table[:, 2].sum())
    hosts = pd.DataFrame(kinds[:, :2], columns=["cpu", "memory"]).assign(count=count)
    begins, asks = (0.0, 200.0, 500.0), ((0.2, 0.3), (0.5, 0.1), (0.1, 0.3))
    parts = []
    for n, (begin, (cpu, memory)) in enumerate(zip(begins, asks, strict=True)):
        number = int(1500 / seconds * 200)
        lasts = seconds * (0.5 + 0.5 * rng.exponential(1.0, number))
        parts.append(pd.DataFrame({"user": f"user {n + 1}", "job": f"job {n + 1}", "arrival": begin, "duration": lasts,
                                   "cpu": cpu, "memory": memory}))  # fmt: skip
    users = pd.DataFrame({"user": ["user 1", "user 2", "user 3"], "leaves": [1080.0, np.inf, np.inf]})
    tasks = pd.concat(parts, ignore_index=True)
    return Workload.from_frames(tasks, hosts[hosts["count"] > 0], users, source="DRFH, figure 4")


@cache
def figure4_mixes() -> NDArray[np.int64]:
    """Numbers of servers by type, (mixes, 6): mixes of 100 with the totals of DRFH figure 4, most probable first.

    With n4 servers of 1 CPU and n5 servers of .25 CPUs the total is 52.75 CPUs if and only if n4 = 5.5 + n5 / 2. Mixes
    outside of the ranges in the code have less than a thousandth of the probability of the first mix.
    """
    n5, n2, n3, n6 = np.meshgrid((1, 3, 5), np.arange(61), np.arange(41), np.arange(5), indexing="ij", sparse=True)
    n4 = (11 + n5) // 2
    n1 = 100 - n2 - n3 - n4 - n5 - n6
    every = np.stack(np.broadcast_arrays(n1, n2, n3, n4, n5, n6))
    memory = np.tensordot(np.array(_TYPES)[:, 1], every, 1)
    found = every[:, (np.abs(memory - 51.32) <= 0.005) & (n1 >= 0)].T
    part = np.array(_FREQUENT) / sum(_FREQUENT)
    return np.asarray(found[np.argsort(-stats.multinomial(100, part).logpmf(found), kind="stable")])


@workload_generator("mqdrf-figure2", "MQDRF figures 2 and 3: three users or more come to one server")
def mqdrf_figure2(rng: np.random.Generator, seconds: Positive = 10.0, users: Count = 3) -> Workload:
    """Users with tasks of (1%, 2%), (2%, 1%) and (1%, 1%) of CPU and memory in turn, arriving at 0, 100, 300, ... s.

    Every user has more tasks than it can run. The set-up is deterministic.

    Parameters
    ----------
    seconds : float
        Duration of tasks, which the paper does not state. If tasks end before the next arrival, caps apply at once.
    users : int
        Number of users.
    """
    n = np.arange(users)
    tasks = pd.DataFrame(
        {
            "user": [f"U{k + 1}" for k in n],
            "arrival": np.maximum(200.0 * n - 100, 0),
            "duration": seconds,
            "tasks": np.ceil((200 * users + 100) / seconds).astype(int) * 100,
            "cpu": np.where(n % 3 == 1, 0.02, 0.01),
            "memory": np.where(n % 3 == 0, 0.02, 0.01),
        }
    )
    return Workload.from_frames(tasks, pd.DataFrame({"cpu": [1.0], "memory": [1.0]}), source="MQDRF, figure 2")
