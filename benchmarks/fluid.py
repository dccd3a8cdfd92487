"""A mechanism re-solved over a day: `python -m benchmarks.fluid --help`.

Seconds of the processor of one thread, loops compiled before by a short run. `build` makes the cluster and what engines
need of it, `solve` is the engine, `certify` the judge; `warm` starts every solve from the one before, where the engine
can. Completion times and shares of both must agree, to what the tolerance allows: the largest difference is shown.
"""

from __future__ import annotations

import argparse
import os
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - threads are chosen first
import pandas as pd  # noqa: E402

from fairopt.errors import FairoptError  # noqa: E402
from fairopt.scheduling.fluid import fluid  # noqa: E402
from fairopt.scheduling.workload import Workload  # noqa: E402
from fairopt.workloads import google_like  # noqa: E402

MECHANISMS = ("ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)", "drfh", "tsf")
DAY = 86_400.0
#: Parts of jobs that run for less than five minutes, and for more than a day, if left alone (PF section 6).
SHORT, LONG = 0.38, 0.16
#: Standard normal quantiles of `SHORT` and `1 - LONG`.
_LOW, _HIGH = -0.30548, 0.99446


def day(
    seed: int, jobs: int = 1500, servers: int = 12_583, load: float = 1.2, sliced: bool = False, span: float = DAY
) -> Workload:
    """Jobs with demands and numbers of tasks like Google's, one a user, arriving evenly over a day.

    Durations are lognormal with PF's two quantiles; jobs that last for more than a day are there from its beginning to
    its end, as PF's trace of a day shows them, so that the cluster is as busy at first as later. Servers are made so
    large that what arrives needs `load` times what they can do in the day, of the resource that is short.
    `sliced`: a job brings its tasks anew for every five minutes that it lasts, `q_n = 300 max_r d_nr` each, until the
    end of the day. All that goes by one user, so that `by="user"` makes one player of it.
    """
    rng = np.random.default_rng(seed)
    cluster = google_like(rng, jobs, servers, max_tasks=True).cluster
    sigma = np.log(DAY / 300) / (_HIGH - _LOW)
    duration = np.exp(np.log(300) - _LOW * sigma + sigma * rng.standard_normal(jobs)).round(3)
    tasks = cluster.max_tasks.astype(int)
    arrival = np.where(duration < span, rng.uniform(0, span, jobs).round(3), 0.0)
    duration = np.minimum(duration, span)
    who = np.arange(jobs)
    if sliced:
        count = np.ceil(np.minimum(duration, span - arrival) / 300).astype(int)
        who = np.repeat(who, count)
        within = 300.0 * (np.arange(len(who)) - np.repeat(np.cumsum(count) - count, count))
        arrival, duration = arrival[who] + within, np.minimum(duration[who] - within, 300.0)
    duration = np.maximum(duration, 1.0)
    need = (tasks[who] * duration) @ cluster.demand[who] / span
    larger = float((need / cluster.pooled_capacity).max()) / load
    frame = pd.DataFrame(
        {"user": [f"user{n + 1}" for n in who], "arrival": arrival, "duration": duration, "tasks": tasks[who]}
        | {name: cluster.demand[who, r] for r, name in enumerate(cluster.resources)}
    )
    kinds, number = np.unique(cluster.capacity, axis=0, return_counts=True)
    table = pd.DataFrame({name: larger * kinds[:, r] for r, name in enumerate(cluster.resources)} | {"count": number})
    kind = "sliced" if sliced else "whole"
    return Workload.from_frames(frame, table, source=f"google-like day: {jobs} {kind} jobs, load {load:g}, seed {seed}")


def measured(workload: Workload, mechanism: str, warm: bool, limits: bool, by: str, until: float) -> dict[str, object]:
    """One row, and the schedule behind it."""
    begun = time.process_time()
    try:
        found = fluid(workload, mechanism, until=until, warm=warm, limits=limits, by=by, throw=False)
    except FairoptError as error:
        return {"mechanism": mechanism, "warm": warm, "error": str(error)[:60]}
    seconds, timeline = time.process_time() - begun, found.timeline
    solved = timeline[timeline["solved"]]
    return {
        "mechanism": mechanism,
        "warm": warm,
        "limits": limits,
        "solves": len(solved),
        "players": f"{solved['players'].mean():.0f} ({solved['players'].max()})",
        "build": solved["build"].sum(),
        "solve": solved["solve"].sum(),
        "certify": solved["certify"].sum(),
        "all": seconds,
        "ms a solve": 1e3 * seconds / max(len(solved), 1),
        "rounds": solved["rounds"].mean(),
        "certificate": solved["certificate"].max(),
        "flagged": int(solved["flagged"].astype(bool).sum()),
        "schedule": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1500)
    parser.add_argument("--servers", type=int, default=12_583)
    parser.add_argument("--load", type=float, default=1.2)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limits", action="store_true", help="no task runs faster than on its own")
    parser.add_argument("--sliced", action="store_true", help="jobs bring their tasks anew every five minutes")
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS))
    asked = parser.parse_args()
    workload = day(asked.seed, asked.jobs, asked.servers, asked.load, asked.sliced)
    print(workload, f"load {workload.load(DAY):.2f}")
    rows = []
    for mechanism in asked.mechanisms:
        until, by = 3600 * asked.hours, "user" if asked.sliced else "job"
        fluid(workload, mechanism, until=2400.0, limits=asked.limits, by=by, throw=False)
        pair = [measured(workload, mechanism, warm, asked.limits, by, until) for warm in (False, True)]
        schedules = [row.pop("schedule", None) for row in pair]
        if all(one is not None for one in schedules):
            one, other = (schedule.jobs["left"] / schedule.jobs["work"] for schedule in schedules)  # type: ignore[attr-defined]
            pair[1]["apart"] = float((one - other).abs().max())
        rows += pair
        print(pd.DataFrame(pair).to_string(index=False, float_format=lambda value: f"{value:.3g}"), flush=True)


if __name__ == "__main__":
    main()
