"""Overhead of a sweep beyond its solutions, by executor: `python -m benchmarks.sweeps [CELLS]`.

Cells of a few milliseconds each, so that what the harness adds can be seen: drawing the cluster, measuring, making and
storing the row, sending it. Given per cell and worker, `(workers x wall - sum of solutions) / cells`: on a machine with
fewer free cores than workers plus one, waiting for a core counts as overhead too. CPU is that of all processes (Dask:
scheduler, workers and their start included), solutions and imports with it.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

from fairopt import harness

EXPERIMENT = """
title = "Small cells"
repetitions = {}
clusters.small = "lognormal?users=4&servers=3"
[[grid]]
mechanisms = "alphapf-vds"
alphas = [1, 2, 3]
[[grid]]
mechanisms = "alphapf-vds"
alphas = 2
engines = "best-response"
max_rounds = 20
"""


def _cpu() -> float:
    """CPU seconds of this process and of those that it started and that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def measure(name: str, folder: Path, workers: int, **how: object) -> harness.Store:
    """One sweep into a store of its own, and a line about it."""
    store = harness.Store(folder / name)
    wall, cpu, everybody = time.perf_counter(), time.process_time(), _cpu()
    frame = harness.sweep(folder / "small.toml", store=store, progress=False, **how)  # type: ignore[arg-type]
    wall, cpu, everybody = time.perf_counter() - wall, time.process_time() - cpu, _cpu() - everybody
    each = 1e3 / len(frame)
    print(
        f"{name:10} {len(frame)} cells in {wall:.1f} s: solutions {frame['seconds'].sum() * each:.2f} ms, "
        f"other in the cell {(frame['elapsed'] - frame['seconds']).sum() * each:.2f} ms, "
        f"overhead in all {(workers * wall - frame['seconds'].sum()) * each:.2f} ms per cell; "
        f"CPU {everybody * each:.2f} ms, of the process that stores {cpu * each:.2f} ms",
        flush=True,
    )
    return store


def main(cells: int) -> None:
    """Serial, two processes, and Dask with two workers; then whether they agree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "small.toml").write_text(EXPERIMENT.format(cells // 4))
        stores = [measure("serial", folder, 1), measure("processes", folder, 2, jobs=2)]
        from distributed import LocalCluster

        everybody = _cpu()
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
            stores.append(measure("dask", folder, 2, dask=local.scheduler_address))
        print(f"dask: CPU with workers {1e3 * (_cpu() - everybody) / cells:.2f} ms per cell")
        begun = time.perf_counter()
        first = stores[0].read()
        print(f"the store is read in {time.perf_counter() - begun:.3f} s")
        print("differences:", [first.same_as(store.read()) for store in stores[1:]])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
