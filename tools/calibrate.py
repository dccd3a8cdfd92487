"""Calibrate the tables of generators to the traces: `python tools/calibrate.py --traces DIR`.

Writes `google.json`, `bitbrains.json` and `alibaba.json`: quantiles, fractions of zeros and rank correlations of the
users that the readers construct, and numbers of servers by kind. No row of a trace is stored.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import optimize, special, stats

from fairopt.workloads import alibaba, bitbrains, google2011
from fairopt.workloads._draw import PROBABILITY, Array, Marginals
from fairopt.workloads.jobs import google_sample

_SEED = 2011  # seed of the sample to which copulas are fitted
_HOUR = 3600
_DIGITS = 6
#: Folder of the tables in the package.
DATA = Path(__file__).resolve().parents[1] / "fairopt" / "workloads" / "data"


def google(traces: Path) -> str:
    """Table of users with tasks in the first part of `task_events` (84 minutes), and of the published machines."""
    cell = google2011.cluster(traces, at=0, window=1.5 * _HOUR, max_tasks=True).cluster
    machines = google2011.machines(traces, at=None)
    marginals = measure(("cpu", "memory", "tasks"), np.column_stack([cell.demand, cell.max_tasks]))
    about = (
        f"{len(cell.users)} users of the Google 2011 trace: mean request (parts of the largest machine) and number of "
        "tasks; servers: cpu, memory, number of machines"
    )
    return dumps(marginals, about, {"servers": _counts(machines)})


def google_jobs(traces: Path) -> str:
    """Table of jobs in the first part of `task_events`, and of machines of 2011 and of cell a of 2019."""
    rows = google_sample.lifetimes(traces)
    rows = rows[(rows[["cpu", "memory"]].fillna(0) > 0).any(axis=1)]
    jobs = rows.groupby("job").agg(user=("user", "first"), cpu=("cpu", "mean"), memory=("memory", "mean"),
                                   tasks=("task", "size"))  # fmt: skip
    columns = ("cpu", "memory", "tasks")
    marginals = measure(columns, jobs[list(columns)].to_numpy())
    marginals.quantiles[2, -1] = _top(jobs["tasks"].to_numpy(dtype=float), marginals.quantiles[2, -2])
    short = rows[rows["ended"] & ~rows["before"]]
    log = np.log(short["seen"])
    within = log - log.groupby(short["job"]).transform("mean")
    fresh, residual = google_sample.models(rows)
    others = {
        "jobs of a user": np.quantile(jobs.groupby("user").size(), PROBABILITY),
        "alike": float(np.mean([_alike(jobs, name) for name in ("cpu", "memory")])),
        "sd of durations within a job": float(np.sqrt((within**2).sum() / (len(within) - short["job"].nunique()))),
        "durations of tasks, median and sd of log": [fresh.median, fresh.sd],
        "what is left of tasks that run, median and sd of log": [residual.median, residual.sd],
        "servers 2011": _counts(google2011.machines(traces, at=None)),
        "servers 2019": _counts(machines_2019(traces)),
    }
    about = (
        f"{len(jobs)} jobs of the Google 2011 trace: mean request (parts of the largest machine) and number of tasks; "
        "alike: part of the variance of log requests between users; servers: cpu, memory, number"
    )
    return dumps(marginals, about, others)


def machines_2019(traces: Path) -> pd.DataFrame:
    """Machines that ever existed in a cell of Google's trace of 2019 (v3): `cpu`, `memory`, by `machine`.

    Each has its last known capacity. Rows of the file are not sorted by time, and some lack a capacity; machines
    without any are excluded.
    """
    parts = sorted((traces / "google-2019").rglob("machine_events-*.parquet"))
    columns = ["time", "machine_id", "type", "capacity"]
    events = pd.concat(pq.read_table(path, columns=columns).flatten().to_pandas() for path in parts)
    events = events.rename(columns={"machine_id": "machine", "capacity.cpus": "cpu", "capacity.memory": "memory"})
    known = events[(events["type"] != 2) & np.isfinite(events[["cpu", "memory"]]).all(axis=1)]
    last = known.sort_values("time", kind="stable").drop_duplicates("machine", keep="last")
    return last.set_index("machine").sort_index()[list(google2011.RESOURCES)]


def _top(values: NDArray[np.float64], last: float) -> float:
    """Upper end of the log-linear interpolation beyond the quantile `last` that yields the mean of larger values.

    Few values are larger, some by far; interpolation up to the maximum would overestimate their mean several times.
    """
    wanted = values[values > last].mean() / last
    return last * float(optimize.brentq(lambda ratio: (ratio - 1) / np.log(ratio) - wanted, 1 + 1e-9, 1e6))


def _alike(jobs: pd.DataFrame, column: str) -> float:
    """Between-user fraction of the variance of the logarithm of a positive column (one-way analysis of variance)."""
    some = jobs[jobs[column] > 0]
    log = np.log(some[column])
    users = log.groupby(some["user"])
    size = users.size()
    within = ((log - users.transform("mean")) ** 2).sum() / (len(log) - len(size))
    between = (size * (users.mean() - log.mean()) ** 2).sum() / (len(size) - 1)
    each = (len(log) - (size**2).sum() / len(log)) / (len(size) - 1)
    extra = max(float((between - within) / each), 0.0)
    return extra / (extra + float(within))


def bitbrains_vms(traces: Path) -> str:
    """Table of hourly means of virtual machines on the first day of both halves of the trace, at 0, 6, 12 and 18 h."""
    means = []
    for part in ("rnd-day", "fastStorage-day"):
        table = bitbrains.samples(traces, part=part)
        first = int(table["time"].min())
        means += [bitbrains.demands(table, first + hour * _HOUR, _HOUR) for hour in (0, 6, 12, 18)]
    demand = pd.concat(means)
    demand = demand[(demand > 0).any(axis=1)]
    marginals = measure(tuple(demand.columns), demand.to_numpy())
    about = f"{len(demand)} hourly means of Bitbrains virtual machines: cpu GHz, memory GB, disk MB/s, network Mb/s"
    return dumps(marginals, about, {})


def alibaba_groups(traces: Path) -> str:
    """Table of the groups of pods of `alibaba.cluster`, kinds of nodes, and constraints of GPU groups."""
    cell = alibaba.cluster(traces, max_tasks=True).cluster
    marginals = measure(("cpu", "memory", "gpu", "tasks"), np.column_stack([cell.demand, cell.max_tasks]))
    specs = pd.Series([user.split("/")[-1] for user in np.array(cell.users)[cell.demand[:, 2] > 0]]).value_counts()
    about = (
        f"{len(cell.users)} groups of pods of the Alibaba GPU 2023 trace: mean request (cores, GiB, GPUs) and number "
        "of pods; servers: cores, GiB, GPUs, model, number of nodes; specs: models, number of GPU groups"
    )
    common = sorted((-int(number), str(spec)) for spec, number in specs.items())
    others = {"servers": _counts(alibaba.nodes(traces)), "specs": [[spec, -number] for number, spec in common]}
    return dumps(marginals, about, others)


TABLES: dict[str, Callable[[Path], str]] = {
    "google": google,
    "google_jobs": google_jobs,
    "bitbrains": bitbrains_vms,
    "alibaba": alibaba_groups,
}


def _counts(servers: pd.DataFrame) -> list[list[object]]:
    """Distinct rows with their counts, in decreasing order."""
    counts = servers.groupby(list(servers.columns)).size().sort_values(ascending=False, kind="stable")
    return [[*row, int(number)] for row, number in counts.items()]


def measure(columns: tuple[str, ...], values: Array) -> Marginals:
    """Marginals of nonnegative `values`, (rows, columns)."""
    zero = (values == 0).mean(axis=0)
    quantiles = np.array([np.quantile(column[column > 0], PROBABILITY) for column in values.T])
    measured = Marginals(columns, zero, quantiles, rank_correlations(values), np.eye(len(columns)))
    # With this sample size the error of a rank correlation is about 0.005.
    first, second = np.random.default_rng(_SEED).standard_normal((2, 40_000))
    normal = np.eye(len(columns))
    for a in range(len(columns)):
        ranks = stats.rankdata(measured.value(a, special.ndtr(first)))
        for b in range(a):
            normal[a, b] = normal[b, a] = _fit(measured, b, measured.rank_correlation[a, b], ranks, first, second)
    return Marginals(columns, zero, quantiles, measured.rank_correlation, normal)


def rank_correlations(values: Array) -> Array:
    """Spearman's rank correlations, (columns, columns); values that differ by rounding only count as ties."""
    return np.asarray(stats.spearmanr(values.astype(np.float32)).statistic)


def _fit(table: Marginals, column: int, wanted: float, ranks: Array, first: Array, second: Array) -> float:
    """Normal correlation that yields a rank correlation, by root finding, as one increases with the other."""

    def missing(normal: float) -> float:
        other = table.value(column, special.ndtr(normal * first + np.sqrt(1 - normal**2) * second))
        return float(np.corrcoef(ranks, stats.rankdata(other))[0, 1]) - wanted

    return float(optimize.brentq(missing, -1, 1, xtol=4e-4))


def dumps(marginals: Marginals, about: str, others: Mapping[str, Any]) -> str:
    """JSON text of a table, with six digits per number and one entry per line."""
    columns, *arrays = vars(marginals).items()
    entries = dict([("about", about), columns, ("probability", PROBABILITY), *arrays]) | others
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {_text(value)}" for key, value in entries.items()) + "\n}\n"


def _text(value: Any) -> str:
    rows = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(rows, list | tuple):
        return json.dumps(rows)
    if isinstance(rows[0], list):
        return "[\n" + ",\n".join(f"  {_text(row)}" for row in rows) + "\n ]"
    return json.dumps([float(f"{x:.{_DIGITS}g}") if isinstance(x, float) else x for x in rows])


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the tables into the package, or to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True, help="folder that holds the traces")
    parser.add_argument("--out", type=Path, default=DATA, help="where to write the tables")
    parser.add_argument("--only", choices=sorted(TABLES), help="write this table alone")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        if options.only in (None, name):
            (options.out / f"{name}.json").write_text(table(options.traces), encoding="utf-8")


if __name__ == "__main__":
    main()
