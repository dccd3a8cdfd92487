"""Measure the generators' tables on the real traces: `python -m fairopt.workloads.calibrate --traces DIR`.

Writes `google.json`, `bitbrains.json` and `alibaba.json`: quantiles, fractions of zeros and rank correlations of
what the readers make users of, and how many servers of each kind there are. No row of a trace is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from .._libraries import pd
from . import _tables, alibaba, bitbrains, google2011
from ._marginals import measure

_SEED = 2011  # of the sample to which the copulas are fitted
_HOUR = 3600


def google(traces: Path) -> str:
    """Users with tasks in the first part of `task_events` (84 minutes); the machines of the published table."""
    cell = google2011.cluster(traces, at=0, window=1.5 * _HOUR, max_tasks=True).cluster
    machines = google2011.machines(traces, at=None)
    marginals = measure(
        ("cpu", "memory", "tasks"), np.column_stack([cell.demand, cell.max_tasks]), np.random.default_rng(_SEED)
    )
    about = (
        f"{len(cell.users)} users of the Google 2011 trace: mean request (parts of the largest machine) and number of "
        "tasks; servers: cpu, memory, number of machines"
    )
    return _tables.dumps(marginals, about, {"servers": _counts(machines)})


def bitbrains_vms(traces: Path) -> str:
    """Hourly means of each VM in the first day of both halves of the trace, taken at hours 0, 6, 12 and 18."""
    means = []
    for part in ("rnd-day", "fastStorage-day"):
        table = bitbrains.samples(traces, part=part)
        first = int(table["time"].min())
        means += [bitbrains.demands(table, first + hour * _HOUR, _HOUR) for hour in (0, 6, 12, 18)]
    demand = pd.concat(means)
    demand = demand[(demand > 0).any(axis=1)]
    marginals = measure(tuple(demand.columns), demand.to_numpy(), np.random.default_rng(_SEED))
    about = f"{len(demand)} hourly means of Bitbrains virtual machines: cpu GHz, memory GB, disk MB/s, network Mb/s"
    return _tables.dumps(marginals, about, {})


def alibaba_groups(traces: Path) -> str:
    """The groups of pods that `alibaba.cluster` makes by default; kinds of nodes; constraints of GPU groups."""
    cell = alibaba.cluster(traces, max_tasks=True).cluster
    marginals = measure(
        ("cpu", "memory", "gpu", "tasks"), np.column_stack([cell.demand, cell.max_tasks]), np.random.default_rng(_SEED)
    )
    specs = pd.Series([user.split("/")[-1] for user in np.array(cell.users)[cell.demand[:, 2] > 0]]).value_counts()
    about = (
        f"{len(cell.users)} groups of pods of the Alibaba GPU 2023 trace: mean request (cores, GiB, GPUs) and number "
        "of pods; servers: cores, GiB, GPUs, model, number of nodes; specs: models, number of GPU groups"
    )
    common = sorted((-int(number), str(spec)) for spec, number in specs.items())
    others = {"servers": _counts(alibaba.nodes(traces)), "specs": [[spec, -number] for number, spec in common]}
    return _tables.dumps(marginals, about, others)


TABLES: dict[str, Callable[[Path], str]] = {
    "google": google,
    "bitbrains": bitbrains_vms,
    "alibaba": alibaba_groups,
}


def _counts(servers: pd.DataFrame) -> list[list[object]]:
    """Each distinct row with its number, the most frequent first."""
    counts = servers.groupby(list(servers.columns)).size().reset_index(name="number")
    order = ["number", *servers.columns]
    ranked = counts.sort_values(order, ascending=[False, *[True] * len(servers.columns)])
    return [list(row) for row in ranked.astype(object).itertuples(index=False)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables into the package, or elsewhere with `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder that holds the traces")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data", help="where to write the tables")
    parser.add_argument("--only", choices=sorted(TABLES), help="write this table alone")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        if options.only in (None, name):
            (options.out / f"{name}.json").write_text(table(options.traces), encoding="utf-8")


if __name__ == "__main__":
    main()
