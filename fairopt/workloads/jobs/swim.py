"""`swim`: Facebook's Hadoop jobs of 2009 and 2010 (SWIM), with assumptions for the data that the trace lacks.

Source: Y. Chen, A. Ganapathi, R. Griffith, R. Katz, "The case for evaluating MapReduce performance using workload
suites", MASCOTS 2011. A row is a job: its time of submission, and the bytes of map input, shuffle and reduce output.
Users, tasks, demands and durations are missing; the assumptions about missing data are options.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np

from ...base.errors import DataError
from ...base.libraries import pd
from ...scheduling.workload import Workload
from .. import _csv
from .._csv import Column
from .._draw import Count, Positive, needed, probability
from ..sources import workload_generator, workload_reader

_LAYOUT = "a folder with FB-*.tsv"
_FIELDS = ("job", "submitted", "gap", "input", "shuffle", "output")
_FORMAT = _csv.Format(
    fields=_FIELDS,
    columns=(Column("job", "text"), *(Column(name, "int") for name in ("submitted", "input", "shuffle", "output"))),
    separator="\t",
)
_MB = 1e6


@workload_reader("swim", "Facebook's Hadoop jobs (swim[:DIR])", folder="swim", stand_in="swim-like")
def swim(
    directory: str | Path,
    trace: str = "FB-2009_samples_24_times_1hr_0",
    servers: Count = 100,
    users: Count = 20,
    block: Positive = 256.0,
    rate: Positive = 20.0,
    most: Count = 100,
    heavy: Annotated[float, probability] = 0.3,
    hours: Positive = 25.0,
    rng: np.random.Generator | None = None,
    skip_malformed: bool = False,
) -> Workload:
    """Read the jobs of a file of SWIM as tasks, on servers of 16 cores and 32 GB (the servers of DRF, section 7.3).

    A job with b bytes of input and s bytes of shuffle has `ceil(b / block)` maps, at least one, and `ceil(s / block)`
    reduces, which also write the output. Each number is at most `most`, with more work per task, and reduces do not
    wait for maps. A task of b bytes lasts `1 + b / rate` seconds and needs one core and 1 GB; tasks of a fraction
    `heavy` of the jobs need 2 to 5 GB (DRF, figure 1: the dominant resource of most tasks is CPU, and of some tasks
    memory). Users of jobs are drawn, the k-th user with weight 1/k.

    Parameters
    ----------
    directory : str or Path
        Folder of the trace, or a folder above it.
    trace : str
        Name of the file without `.tsv`.
    servers, users, most : int
        Numbers of servers and of users, and largest number of maps, or of reduces, of a job.
    block, rate : float
        Block size in MB, and processing rate in MB/s.
    heavy : float
        Fraction in (0, 1] of jobs whose tasks need 2 to 5 GB.
    hours : float
        Exclude jobs that were submitted after this time in hours.
    rng : Generator
        Random generator, for draws of users and demands.
    skip_malformed : bool
        Skip malformed rows, and count them.

    Raises
    ------
    DataError
        There is no such file, a row is malformed (unless `skip_malformed`), no job remains, or `rng` is missing.
    """
    rng = needed(rng, "draw users and demands, which the trace does not have")
    folder = _csv.locate(directory, "swim", lambda path: any(path.glob("*.tsv")), _LAYOUT)
    path = folder / f"{trace}.tsv"
    if not path.is_file():
        has = ", ".join(sorted(one.stem for one in folder.glob("*.tsv")))
        raise DataError(f"{folder} has no {path.name}; it has {has}", ("trace",))
    report: Counter[str] = Counter()
    table = _csv.read(path, _FORMAT, skip_malformed, report)
    jobs = table[table["submitted"] <= hours * 3600].reset_index(drop=True)
    if jobs.empty:
        raise DataError(f"{path} has no job in the first {hours:g} hours; choose more", ("hours",))
    about = f"SWIM ({path.name}): {len(jobs)} jobs, {users} users and demands drawn"
    return _workload(jobs, rng, servers, users, block, rate, most, heavy, about, report)


@workload_generator("swim-like", "a day of Hadoop jobs like Facebook's")
def swim_like(
    rng: np.random.Generator,
    jobs: Count = 1000,
    servers: Count = 100,
    users: Count = 20,
    block: Positive = 256.0,
    rate: Positive = 20.0,
    most: Count = 100,
    heavy: Annotated[float, probability] = 0.3,
    hours: Positive = 24.0,
) -> Workload:
    """Draw jobs like those of `swim`: half of them read less than half a megabyte, and a tenth more than 2 GB.

    Input is lognormal with these two quantiles; a third of the jobs shuffle a tenth of their input, and there is no
    output. `jobs` is the number of jobs, which arrive uniformly within `hours`; the other options are those of `swim`.
    """
    size = np.exp(rng.normal(np.log(0.5 * _MB), np.log(4000) / 1.2816, jobs)).clip(1, 1e14)
    table = pd.DataFrame(
        {
            "job": [f"job{k}" for k in range(jobs)],
            "submitted": np.sort(rng.uniform(0, hours * 3600, jobs)),
            "input": size,
            "shuffle": np.where(rng.random(jobs) < 1 / 3, size / 10, 0.0),
            "output": 0.0,
        }
    )
    about = f"Hadoop jobs like Facebook's: {jobs} jobs of {users} users on {servers} servers"
    return _workload(table, rng, servers, users, block, rate, most, heavy, about, Counter())


def _workload(
    jobs: pd.DataFrame, rng: np.random.Generator, servers: int, users: int, block: float, rate: float, most: int,
    heavy: float, about: str, read: Counter[str],
) -> Workload:  # fmt: skip
    """Workload of the maps and reduces of jobs, with users and demands drawn from `rng`."""
    weight = 1 / np.arange(1, users + 1)
    user = rng.choice(users, len(jobs), p=weight / weight.sum())
    memory = np.where(rng.random(len(jobs)) < heavy, rng.integers(2, 6, len(jobs)), 1).astype(float)
    parts = []
    maps, moved, written = jobs[["input", "shuffle", "output"]].to_numpy(dtype=float).T
    # A job without input has one map, too.
    for least, size in ((1, maps), (0, moved)):
        number = np.maximum(np.minimum(np.ceil(size / (block * _MB)), most), least)
        some = number > 0
        size = size + np.where(some, written, 0.0) if least == 0 else size
        parts.append(
            pd.DataFrame(
                {
                    "user": [f"user{n + 1}" for n in user[some]],
                    "job": jobs.loc[some, "job"].to_numpy(),
                    "arrival": jobs.loc[some, "submitted"].to_numpy(dtype=float),
                    "duration": (1 + size[some] / number[some] / (rate * _MB)).round(3),
                    "tasks": number[some].astype(np.int64),
                    "cpu": 1.0,
                    "memory": memory[some],
                }
            )
        )
    tasks = pd.concat(parts, ignore_index=True)
    report = {
        "jobs": len(jobs),
        "tasks": int(tasks["tasks"].sum()),
        "rows skipped as malformed": read["rows skipped as malformed"],
    }
    hosts = pd.DataFrame({"count": [servers], "cpu": [16.0], "memory": [32.0]})
    return Workload.from_frames(tasks, hosts, source=about, report=dict(report))
