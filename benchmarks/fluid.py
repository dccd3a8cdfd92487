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

import pandas as pd  # noqa: E402 - threads are chosen first

from fairopt.errors import FairoptError  # noqa: E402
from fairopt.scheduling.fluid import fluid  # noqa: E402
from fairopt.scheduling.workload import Workload  # noqa: E402
from fairopt.workloads import open_workload  # noqa: E402

MECHANISMS = ("ps-dsf", "alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)", "drfh", "tsf")


def measured(workload: Workload, mechanism: str, warm: bool, limits: bool, by: str, until: float) -> dict[str, object]:
    """One row, and the schedule behind it."""
    begun = time.process_time()
    try:
        found = fluid(workload, mechanism, until=until, warm=warm, limits=limits, by=by, throw=False, idle=True)
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
    parser.add_argument("--workload", default="google-day?tasks=200000&servers=2000&load=1.5&seed=1")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--by", choices=["job", "user"], default="job")
    parser.add_argument("--limits", action="store_true", help="no task runs faster than on its own")
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS))
    asked = parser.parse_args()
    workload = open_workload(asked.workload)
    print(workload, f"load {workload.load():.2f}")
    rows = []
    for mechanism in asked.mechanisms:
        until, by = 3600 * asked.hours, asked.by
        fluid(workload, mechanism, until=2400.0, limits=asked.limits, by=by, throw=False, idle=True)
        pair = [measured(workload, mechanism, warm, asked.limits, by, until) for warm in (False, True)]
        schedules = [row.pop("schedule", None) for row in pair]
        if all(one is not None for one in schedules):
            one, other = (schedule.jobs["left"] / schedule.jobs["work"] for schedule in schedules)  # type: ignore[attr-defined]
            pair[1]["apart"] = float((one - other).abs().max())
        rows += pair
        print(pd.DataFrame(pair).to_string(index=False, float_format=lambda value: f"{value:.3g}"), flush=True)


if __name__ == "__main__":
    main()
