"""`google-day`: a day of jobs and servers like Google's, from small tables; no trace is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from ...base.errors import DataError
from ...base.libraries import pd
from ...model._arrays import Array
from ...scheduling.workload import Whole, Workload
from .. import google2011
from .._draw import (
    Count,
    Lognormal,
    Marginals,
    Positive,
    Probability,
    above_zero,
    eligible,
    measured,
    pf_jobs,
    placed,
    positive,
)
from ..sources import workload_generator

_DAY = 86_400.0
#: Longest duration of a task in seconds: the length of Google's trace, 29 days.
_LONGEST = 29 * _DAY


@workload_generator("google-day", "a day of jobs like Google's, on servers like Google's")
def google_day(
    rng: np.random.Generator,
    tasks: Count = 20_000,
    servers: Count = 200,
    users: Annotated[int | None, positive] = None,
    hours: Positive = 24.0,
    load: Annotated[float | None, above_zero] = None,
    machines: Literal["2011", "2019"] = "2011",
    durations: Literal["fitted", "seen", "day"] = "fitted",
    density: Probability = 1.0,
) -> Workload:
    """Draw a day of jobs with demands, numbers of tasks and users like those of Google's sample.

    Demands and numbers of tasks have the marginals and rank correlations of jobs in the 2011 sample. Jobs of one user
    are as similar as in the sample (the table has the between-user fraction of the variance of log demands), and a few
    users have most of the jobs. The duration of a job is lognormal with the quantiles that PF states for Google's day:
    38% of jobs end within five minutes, and 16% last longer than a day. The durations of the tasks of a job vary like
    the durations of tasks that ended in the sample.

    Parameters
    ----------
    rng : Generator
    tasks, servers : int
        Total number of tasks, and number of servers.
    users : int, optional
        Default: one per 380 tasks, as in the sample.
    hours : float
        Length of the interval in hours, in which jobs arrive uniformly.
    load : float, optional
        Scale all durations by one factor such that the work within the interval, if all tasks started on arrival, is
        this fraction of the capacity of the scarcest resource. Default: no scaling. `report` has the factor, and the
        resulting fractions of short and long jobs.
    machines : str
        Mix of servers: "2011", ten types, or "2019", the twelve types of cell a.
    durations : str
        Treatment of durations, as by the reader `google`: `fitted`, as drawn; `seen`, truncated at the end of the
        interval for a start on arrival; `day`, a day for tasks that would be truncated.
    density : float
        Probability in (0, 1] that a user may use a type of servers; each may use at least one type. A job whose tasks
        fit on none of its user's types may use all types on which they fit.

    Raises
    ------
    DataError
        The load cannot be attained, however long tasks last.
    """
    marginals, table = measured("google_jobs")
    kinds = np.array(table[f"servers {machines}"], dtype=float)
    drawn = np.sort(rng.choice(len(kinds), servers, p=kinds[:, -1] / kinds[:, -1].sum()))
    capacity = kinds[drawn, :-1]
    user, asks, number = _jobs(rng, marginals, table, tasks, users or max(2, round(tasks / 380)))
    # Requests are limited to the largest server, since larger tasks would wait forever.
    largest = capacity[capacity.sum(axis=1).argmax()]
    cut = (asks > largest).any(axis=1)
    arrival = np.sort(rng.uniform(0.0, hours * 3600, len(number)))
    of_job = pf_jobs().draw(rng, np.zeros(len(number)))
    job = np.repeat(np.arange(len(number)), number)
    # The value .23266 of the table was computed with too small a divisor (`tools/calibrate.py` measures .23075). It is
    # kept, since another value would change all draws.
    spread = Lognormal(1.0, table["sd of durations within a job"])
    duration = of_job[job] * spread.draw(rng, np.zeros(len(job)))
    demand = np.minimum(asks, largest)[job]
    factor = 1.0 if load is None else _factor(demand, duration, arrival[job], capacity.sum(axis=0), hours * 3600, load)
    left = hours * 3600 - arrival[job]
    duration = np.clip(duration * factor, 1e-3, _LONGEST)
    if durations != "fitted":
        duration = np.where(duration > left, left + 1e-3 if durations == "seen" else _DAY, duration)
    frame = pd.DataFrame(
        {
            "user": [f"user{n + 1}" for n in user[job]],
            "job": [f"job{j + 1}" for j in job],
            "arrival": arrival[job].round(6),
            "duration": duration,
            "cpu": demand[:, 0].round(8),
            "memory": demand[:, 1].round(8),
        }
    )
    present = np.unique(drawn)
    may = eligible(present.tolist(), int(user.max()) + 1, density, rng)
    if may is not None:
        fits = (np.minimum(asks, largest)[:, None] <= kinds[present, :-1]).all(axis=2)  # (jobs, types)
        on = np.where((may[user] & fits).any(axis=1, keepdims=True), may[user] & fits, fits)
        frame["on"] = np.array(["|".join(f"type{k + 1}" for k in present[row]) for row in on])[job]
    rows = pd.DataFrame(capacity, columns=list(google2011.RESOURCES)).assign(type=[f"type{k + 1}" for k in drawn])
    longest = pd.Series(duration).groupby(job).max()
    report: dict[str, int | float | str] = {
        "jobs": len(number),
        "durations times": factor,
        "part of jobs up to five minutes": float((longest <= 300).mean()),
        "part of jobs longer than a day": float((longest > 86_400).mean()),
        "jobs that ask for more than the largest server, cut": int(cut.sum()),
    }
    about = f"a day like Google's: {tasks} tasks of {len(number)} jobs, {servers} servers of {machines}"
    about += placed(density, "type")
    return Workload.from_frames(frame, rows, source=about, report=report)


def _jobs(
    rng: np.random.Generator, marginals: Marginals, table: Mapping[str, Any], tasks: int, users: int
) -> tuple[Whole, Array, Whole]:
    """Draw users, demands and numbers of tasks of jobs up to the given total, to which the last job is truncated."""
    active = Marginals.one("jobs", table["jobs of a user"]).draw(rng, users, 1)[:, 0]
    alike = table["alike"]
    of_user = rng.standard_normal((users, len(marginals.columns)))
    of_user[:, 2] = 0.0  # the number of tasks is independent of the user
    owner, rows = np.empty(0, dtype=np.int64), np.empty((0, 3))
    while not len(rows) or rows[:, 2].sum() < tasks:
        user = rng.choice(users, max(16, tasks // 40), p=active / active.sum())
        own = rng.standard_normal((len(user), len(marginals.columns)))
        share = np.array([alike, alike, 0.0])
        more = marginals.values(np.sqrt(share) * of_user[user] + np.sqrt(1 - share) * own)
        more[:, 2] = np.maximum(np.rint(more[:, 2]), 1)
        some = (more[:, :2] >= 1e-6).any(axis=1)
        owner, rows = np.concatenate([owner, user[some]]), np.vstack([rows, more[some]])
    so_far = rows[:, 2].cumsum()
    count = int(np.searchsorted(so_far, tasks)) + 1
    number = rows[:count, 2].astype(np.int64)
    number[-1] -= int(so_far[count - 1]) - tasks
    return owner[:count], rows[:count, :2], number


def _factor(demand: Array, duration: Array, arrival: Array, total: Array, end: float, load: float) -> float:
    """Factor of durations that yields the load, by bisection of its logarithm; the load increases with the factor."""

    def reached(factor: float) -> float:
        lasts = np.minimum(duration * factor, end - arrival)
        return float((lasts @ demand / total).max() / end)

    low, high = -40.0, 40.0
    if reached(np.exp(high)) < load:
        most = reached(np.exp(high))
        raise DataError(f"these tasks are a load of at most {most:.3g}, however long they last, not {load:g}; "
                        "draw more tasks or fewer servers")  # fmt: skip
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(np.exp(middle)) < load else (low, middle)
    return float(np.exp(high))
