"""`google`: arrivals of tasks in Google's 2011 trace, with observed or assumed durations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np

from ...base.libraries import pd
from ...model._arrays import Array
from ...scheduling.workload import Workload
from .. import google2011
from .._draw import Amount, Lognormal, choose, fitted, needed
from ..sources import workload_reader

#: Start of the trace in seconds; earlier events have time 0.
_BEGIN = 600.0
_SHORTEST = 1e-3
_DAY = 86_400.0


def lifetimes(directory: str | Path, skip_malformed: bool = False) -> pd.DataFrame:
    """Observed lifetimes of all submitted tasks, one row per task in the order of submission.

    Columns are `job, task, user, cpu, memory` (of the first SUBMIT; NaN if missing), `arrival` in seconds from the
    start of the trace, `before` (True if the task was running at the start), `seen`, the seconds for which the task was
    observed to run, and `ended`, True if the task ended then; otherwise `seen` is a lower bound, and 0 for tasks that
    never started. Of 52,147 tasks that ended, 4,122 were started or submitted again.

    Raises
    ------
    DataError
        The trace is missing, or a row is malformed (unless `skip_malformed`).
    """
    events = google2011.events(directory, skip_malformed=skip_malformed)
    task = ["job", "task"]
    last = float(events["time"].max()) / 1e6
    rows = events[events["event"] == google2011.SUBMIT].drop_duplicates(task)
    start = events[events["event"] == google2011.SCHEDULE].drop_duplicates(task)
    end = events[events["event"].isin(google2011.ENDED)].drop_duplicates(task, keep="last")
    for some, what in ((start, "_start"), (end, "_end")):
        rows = rows.merge(some[[*task, "time"]], on=task, how="left", suffixes=("", what))
    began = np.maximum(rows["time_start"].to_numpy(dtype=float) / 1e6, _BEGIN)
    ended = rows["time_end"].to_numpy(dtype=float) / 1e6
    over = ended > began
    seen = np.where(over, ended, last) - began
    return pd.DataFrame(
        {
            **{name: rows[name].to_numpy() for name in ("job", "task", "user", "cpu", "memory")},
            "arrival": np.maximum(rows["time"].to_numpy(dtype=float) / 1e6 - _BEGIN, 0.0),
            "before": rows["time_start"].to_numpy(dtype=float) == 0,
            "seen": np.nan_to_num(seen),
            "ended": over,
        }
    )


@workload_reader(
    "google2011",
    "the tasks of Google's trace of 2011 (google2011[:DIR])",
    folder="google-2011",
    stand_in="google-day",
    alias="google",
)
def google_sample(
    directory: str | Path,
    durations: Literal["fitted", "seen", "day"] = "fitted",
    servers: Amount = None,
    users: Amount = None,
    rng: np.random.Generator | None = None,
    skip_malformed: bool = False,
) -> Workload:
    """Read the users, jobs and tasks of the trace, and its 12,583 machines.

    Each submitted task counts once, with the requests of its first SUBMIT; tasks submitted before the trace arrive at
    time 0. Most durations are censored: of 190,635 tasks with requests 52,000 end in the trace. Results depend on the
    treatment of the other tasks, so that variants should be compared.

    Parameters
    ----------
    directory : str or Path
        Folder of the trace, one of its two sub-folders, or a folder above it.
    durations : str
        `fitted`: censored durations are drawn from a lognormal distribution conditional on the observed part; it is
        fitted to tasks that started in the trace, or, for tasks running at its start, to their remaining time
        (`_draw.py`). `seen`: tasks end with the trace, and tasks that never start last for the median of the former
        distribution. `day`: tasks that do not end in the trace last for a day, or for the observed part if it is
        longer.
    servers, users : int, float or None
        Numbers to sample with `rng`, each as a number, a fraction, or None for all.
    rng : Generator, optional
        Random generator, for a sample and for `fitted`.
    skip_malformed : bool
        Skip malformed rows, and count them.

    Raises
    ------
    DataError
        The trace is missing, a row is malformed (unless `skip_malformed`), or `rng` is required.
    """
    machines = google2011.machines(directory, None, skip_malformed)
    hosts = machines.iloc[choose(len(machines), servers, rng, "servers")]
    rows = lifetimes(directory, skip_malformed)
    report: Counter[str] = Counter({"tasks submitted": len(rows)})
    known = rows[["cpu", "memory"]].notna().all(axis=1)
    report["tasks without requests, left out"] = int((~known).sum())
    asks = (rows[["cpu", "memory"]].fillna(0) > 0).any(axis=1)
    report["tasks that request nothing, left out"] = int((known & ~asks).sum())
    rows = rows[known & asks]
    fitting = models(rows)
    everybody = np.sort(rows["user"].unique())
    chosen = everybody[choose(len(everybody), users, rng, "users")]
    rows = rows[rows["user"].isin(chosen)]
    names = dict(zip(chosen, google2011.named(chosen), strict=True))
    report["tasks that end in the trace"] = int(rows["ended"].sum())
    report["tasks that never start in it"] = int((rows["seen"] == 0).sum())
    lasts = _durations(rows, durations, *fitting, rng)
    frame = rows.assign(user=rows["user"].map(names), job=rows["job"].astype(str), duration=lasts)
    where = pd.DataFrame(hosts.to_numpy(), columns=list(google2011.RESOURCES))
    where.insert(0, "server", [f"machine{machine}" for machine in hosts.index])
    return Workload.from_frames(
        frame[["user", "job", "arrival", "duration", "cpu", "memory"]],
        where,
        source=f"Google 2011 ({Path(directory).absolute().name}): {len(rows)} tasks of {len(chosen)} users; "
        f"durations {durations}",
        report=dict(report),
    )


def models(rows: pd.DataFrame) -> tuple[Lognormal, Lognormal]:
    """Fit distributions of the durations of tasks that started in the trace, and of the remaining times of others."""
    started = (~rows["before"] & (rows["seen"] > 0)).to_numpy()
    seen, ended = np.maximum(rows["seen"].to_numpy(), _SHORTEST), rows["ended"].to_numpy()
    old = rows["before"].to_numpy()
    return fitted(seen[started], ended[started]), fitted(seen[old], ended[old])


def _durations(
    rows: pd.DataFrame, how: str, fresh: Lognormal, residual: Lognormal, rng: np.random.Generator | None
) -> Array:
    seen, ended, old = (rows[name].to_numpy() for name in ("seen", "ended", "before"))
    if how == "seen":
        return np.where(seen > 0, np.maximum(seen, _SHORTEST), fresh.median)
    if how == "day":
        return np.asarray(np.where(ended, np.maximum(seen, _SHORTEST), np.maximum(seen, _DAY)))
    draw = needed(rng, "draw durations that the trace does not tell")
    unknown = ~ended
    result: Array = np.maximum(seen, _SHORTEST)
    for part, model in ((unknown & ~old, fresh), (unknown & old, residual)):
        result[part] = np.minimum(model.draw(draw, seen[part]), 29 * _DAY)
    return result
