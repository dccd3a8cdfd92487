"""Throughput of the simulator: decisions and events per second by engine, load, servers, resources and placement.

    python -m benchmarks.scheduling                 # one core; compiled before (`fairopt warmup`)
    python -m benchmarks.scheduling --only decision

Times are CPU seconds of a simulation; `build` is the preparation of a workload, once.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fairopt.errors import DataError
from fairopt.scheduling import engine as engines
from fairopt.scheduling import policies
from fairopt.scheduling.setup import NEAR, Setup
from fairopt.scheduling.workload import NEVER, Workload
from fairopt.workloads.sources import open_workload

DAY = "google-day?tasks={tasks}&servers={servers}&load={load}&seed=11"
Row = dict[str, object]


def measured(name: str, workload: Workload, policy: str, engine: str, until: int = NEVER) -> Row:
    """Run one simulation; `engine` is plain, or compiled with the index, a scan, or the default of both."""
    begun = time.process_time()
    setup = Setup(workload, policies.one(policy))
    setup.possible  # noqa: B018 - made once
    engines.run(setup, until=0)
    build = time.process_time() - begun
    begun = time.process_time()
    near = {"index": 0, "scan": len(workload.servers)}.get(engine, NEAR)
    runs = engines.run(setup, until, compiled=engine != "plain", near=near)
    seconds = time.process_time() - begun
    started = len(runs.task)
    events = started + int((runs.end < NEVER).sum()) + workload.groups
    return {
        "workload": name, "policy": policy, "engine": engine, "build": round(build, 2), "seconds": round(seconds, 2),
        "starts": started, "starts/s": round(started / seconds), "events/s": round(events / seconds),
        "us/start": round(1e6 * seconds / max(started, 1), 2),
        "GiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }  # fmt: skip


def day(tasks: int, servers: int, load: float) -> Workload:
    return open_workload(DAY.format(tasks=tasks, servers=servers, load=load))


def loads() -> Iterator[Row]:
    """190,000 tasks on 2,000 servers at loads from .9 to 2."""
    for load in (0.9, 1.3, 2.0):
        w = day(190_000, 2000, load)
        for policy in ("best-fit-drfh", "first-fit-drfh", "ps-dsf", "tetris", "fifo", "slots(n=14)"):
            yield measured(f"day, load {load:g}", w, policy, "compiled")


def decision(times: int = 7) -> Iterator[Row]:
    """Cost of a decision at 12,583 and 2,000 servers in alternation: microseconds, and ratios of neighbours."""
    small, large = (day(95 * servers, servers, 0.85) for servers in (2000, 12_583))
    for policy in ("best-fit-drfh", "first-fit-drfh", "ps-dsf"):
        both = np.array([
            [measured("", w, policy, "compiled")["us/start"] for w in (small, large)] for _ in range(times)
        ], dtype=float)  # fmt: skip
        quotient = both[:, 1] / both[:, 0]
        yield {
            "policy": policy, "2,000: median": np.median(both[:, 0]), "least": both[:, 0].min(),
            "12,583: median": np.median(both[:, 1]), "least ": both[:, 1].min(),
            "of the least": round(both[:, 1].min() / both[:, 0].min(), 2),
            "quotient: median": round(float(np.median(quotient)), 2), "largest": round(quotient.max(), 2),
        }  # fmt: skip


def sample() -> Iterator[Row]:
    """Google's sample, if available."""
    for servers in (2000, None):
        try:
            w = open_workload("google2011?" + (f"servers={servers}" if servers else ""))
        except DataError as error:
            print(f"no sample: {error}")
            return
        name = f"sample, {len(w.servers)} servers, {w.groups} groups"
        for policy in ("best-fit-drfh", "first-fit-drfh", "ps-dsf"):
            yield measured(name, w, policy, "index")
        if servers:
            yield measured(name, w, "best-fit-drfh", "scan")


def variants() -> Iterator[Row]:
    """Three resources, and tasks that are eligible on a part of the servers."""
    w = day(190_000, 2000, 1.3)
    frames = w.to_frames()
    rng = np.random.default_rng(0)
    tasks, servers = frames["tasks"], frames["servers"]
    by_job = pd.factorize(tasks["job"])[0]
    disk = rng.choice([0.02, 0.05, 0.1, 0.2], by_job.max() + 1)[by_job] * tasks["cpu"] ** 0.5
    third = Workload.from_frames(tasks.assign(disk=disk), servers.assign(disk=0.5), frames["users"])
    kinds = servers.assign(type=rng.choice(["x", "y", "z"], len(servers), p=[0.6, 0.39, 0.01]))
    on = rng.choice(["", "x", "y", "x|y", "z"], by_job.max() + 1, p=[0.6, 0.15, 0.15, 0.09, 0.01])[by_job]
    placed = Workload.from_frames(tasks.assign(on=on), kinds, frames["users"])
    for name, made in (("day, load 1.3", w), ("three resources", third), ("placement", placed)):
        for policy in ("best-fit-drfh", "first-fit-drfh", "ps-dsf"):
            yield measured(name, made, policy, "compiled")


def plainly() -> Iterator[Row]:
    """Policies in plain Python beside compiled ones, to show the speed of a user's own policy."""
    for servers, tasks in ((100, 9500), (2000, 95_000), (12_583, 600_000)):
        w = day(tasks, servers, 0.85)
        half = int(np.quantile(w.arrival, 20_000 / tasks)) if tasks > 20_000 else NEVER
        for policy in ("best-fit-drfh", "first-fit-drfh"):
            for engine in ("plain", "compiled"):
                yield measured(f"{servers} servers", w, policy, engine, half)


STUDIES = {
    "loads": loads,
    "decision": decision,
    "sample": sample,
    "variants": variants,
    "plain": plainly,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=STUDIES)
    options = parser.parse_args()
    for name, study in STUDIES.items():
        if options.only in (None, name):
            print(f"\n{name}: {study.__doc__}")
            print(pd.DataFrame(list(study())).to_string(index=False))


if __name__ == "__main__":
    main()
