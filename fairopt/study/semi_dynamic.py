"""PF section 6, semi-dynamic: mechanisms re-solved every five minutes of a day, side by side on the same workloads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import mechanisms as registry
from .._libraries import pd
from .._progress import tqdm
from ..errors import DataError
from ..mechanisms import Mechanism
from ..scheduling.fluid import FluidSchedule, fluid
from ..scheduling.workload import Workload
from .intervals import interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: PF's, and those that it compares with.
MECHANISMS = ("alphapf-vds(alpha=1)", "alphapf-vds(alpha=3)", "ps-dsf", "drfh", "tsf")
DAY = 86_400.0
_KEYS = ["source", "mechanism"]


@dataclass(frozen=True)
class SemiDynamic:
    """What mechanisms made of some workloads, told apart by `source`.

    Attributes
    ----------
    cells : a row per workload and mechanism: `utilization`, the mean over resources and time, and `use of ...` each;
        `done`, the part of jobs; `work`, the part of the work; `quick`, the part of jobs done within five minutes;
        `median_response` [s] of all jobs (infinite if half are not done); solves, their seconds, certificates, flagged
    use : source, mechanism, time, resource, used: the used part from `time` to `time + every`
    jobs : source, mechanism, job, arrival, response [s] (NaN where a job was not done)
    """

    cells: pd.DataFrame
    use: pd.DataFrame
    jobs: pd.DataFrame
    every: float
    interrupted: bool = False

    def means(self, measures: Sequence[str] = ("utilization", "done", "work", "quick", "seconds")) -> pd.DataFrame:
        """A row per mechanism: mean and `+-` half 95% interval over workloads."""
        return _means(self.cells, ["mechanism"], measures)

    def gains(self, of: str, measure: str = "utilization") -> pd.DataFrame:
        """By how much a mechanism has more of a measure than each other one on the same workload, in per cent of it.

        A row per other mechanism: `mean`, `half` of the 95% interval over workloads, `n`.
        """
        wide = self.cells.pivot_table(index="source", columns="mechanism", values=measure, sort=False)
        if of not in wide:
            raise DataError(f"there is no {of!r} among {', '.join(wide.columns)}")
        gain = 100 * (wide[[of]].to_numpy() / wide.drop(columns=of) - 1)
        return interval(gain.melt(var_name="over", value_name="gain"), ["over"], "gain")

    def speedups(self, of: str) -> pd.DataFrame:
        """Figure 7: for jobs that both were done with, the logarithm to base 2 of how much sooner `of` was.

        A row per other mechanism: mean over workloads of the mean of `log2(response there / response of it)`, `half` of
        its interval, `n`; `sooner` and `later`, the parts of jobs that were done sooner or later by more than 1%, or
        done by one of the two alone.
        """
        times = self.jobs.pivot_table(index=["source", "job"], columns="mechanism", values="response", sort=False,
                                      dropna=False)  # fmt: skip
        if of not in times:
            raise DataError(f"there is no {of!r} among {', '.join(times.columns)}")
        times = np.log2(times.fillna(np.inf))
        rows = []
        for other in times.columns.drop(of):
            with np.errstate(invalid="ignore"):
                ratio = times[other] - times[of]
            both = ratio[np.isfinite(ratio)]
            by_source = both.groupby(level="source").mean()
            for source, gain in by_source.items():
                here = ratio.loc[[source]]
                rows.append({"over": other, "gain": gain, "sooner": (here > np.log2(1.01)).mean(),
                             "later": (here < -np.log2(1.01)).mean()})  # fmt: skip
        frame = pd.DataFrame(rows, columns=["over", "gain", "sooner", "later"])
        parts = frame.groupby("over", sort=False)[["sooner", "later"]].mean().reset_index()
        return interval(frame, ["over"], "gain").merge(parts, on="over")

    def plot(self, *, ax: Any = None) -> Figure:
        """PF's figures 4, 6 and 7: use over time, jobs done in so much time, gains over others; `ax` are three axes."""
        names = list(self.cells["mechanism"].unique())
        base = "PS-DSF" if "PS-DSF" in names else names[0]
        return plot(self.use, self.jobs, self.every, base, self.speedups(base), ax)


def pf_section6(
    workloads: Workload | Iterable[Workload],
    mechanisms: Iterable[str | Mechanism] = MECHANISMS,
    *,
    every: float = 300.0,
    until: float = DAY,
    by: str = "job",
    limits: bool = False,
    idle: bool = False,
    tol: float | None = None,
    throw: bool = False,
    before: SemiDynamic | None = None,
    progress: bool = False,
) -> SemiDynamic:
    """Serve workloads by every mechanism as `fluid` does, allocating anew every five minutes of a day.

    Parameters
    ----------
    workloads : one, or several, such as draws of a generator by seed; `source` tells them apart
    until : seconds from the first arrival on
    every, by, limits, idle, tol, throw : as `fluid`; a solve that misses its tolerance is counted (`flagged`) unless
        `throw`
    before : what an earlier call gave: what is in it is not computed again
    progress : show a bar. Ctrl-C ends it with the workloads and mechanisms that are done (`interrupted`).

    Raises
    ------
    DataError
        Two workloads have the same source, or as `fluid`.

    Source: Khamse-Ashari et al., arXiv 1712.10114, section 6, figures 4, 6 and 7; what is assumed: docs/fluid.md.
    """
    given = [workloads] if isinstance(workloads, Workload) else list(workloads)
    sources = [workload.source for workload in given]
    if len(set(sources)) < len(sources):
        twice = next(name for k, name in enumerate(sources) if name in sources[:k])
        raise DataError(f"two workloads have the source {twice!r}; give each one of its own")
    chosen = registry.chosen(mechanisms)
    cells, use, jobs = ([] if before is None else [table] for table in _tables(before))
    known = set() if before is None else set(zip(*(before.cells[key] for key in _KEYS), strict=True))
    todo = [(w, m) for w in given for m in chosen if (w.source, str(m)) not in known]
    interrupted = False
    for workload, mechanism in tqdm(todo, disable=not progress, unit="day"):
        end = float(workload.arrival.min()) / 1e6 + until
        found = fluid(
            workload, mechanism, every=every, by=by, limits=limits, idle=idle, until=end, tol=tol, throw=throw
        )
        if interrupted := found.interrupted:
            break
        about = {"source": workload.source, "mechanism": str(mechanism)}
        over_time = found.use_in(np.arange(end - until, end + every / 2, every))
        cells.append(pd.DataFrame([about | _measures(found, over_time, until)]))
        long = over_time.reset_index().melt(id_vars="time", value_name="used")
        use.append(long.assign(**about))
        jobs.append(found.jobs[["arrival", "response"]].reset_index().assign(**about))
    made = [pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=_KEYS) for rows in (cells, use, jobs)]
    return SemiDynamic(made[0], made[1], made[2], every, interrupted)


def _tables(before: SemiDynamic | None) -> tuple[pd.DataFrame | None, ...]:
    return (None,) * 3 if before is None else (before.cells, before.use, before.jobs)


def _measures(found: FluidSchedule, over_time: pd.DataFrame, until: float) -> dict[str, object]:
    """One row of numbers."""
    summary, jobs, run = found.summary(), found.jobs, found.run
    used = over_time.fillna(0.0).mean()
    response = jobs["response"].fillna(math.inf)
    row: dict[str, object] = {"utilization": float(used.mean())} | {f"use of {name}": x for name, x in used.items()}
    row |= {"done": float(jobs["end"].notna().mean()), "work": float(1 - run.left.sum() / run.work.sum())}
    row |= {"quick": float((response <= 300).mean()), "median_response": float(response.median())}
    return row | {name: summary[name] for name in ("solves", "seconds", "certificate", "flagged")}


def _means(frame: pd.DataFrame, by: list[str], measures: Sequence[str]) -> pd.DataFrame:
    table = frame.groupby(by, sort=False).size().rename("n").reset_index()
    for measure in measures:
        one = interval(frame, by, measure).rename(columns={"mean": measure, "half": f"+- {measure}"})
        table = table.merge(one.drop(columns="n"), on=by, how="left")
    return table


def plot(
    used: pd.DataFrame, jobs: pd.DataFrame, every: float, base: str, speedups: pd.DataFrame, ax: Any = None
) -> Figure:
    """Use over time (means over workloads and resources, moving average of an hour); response times; gains."""
    from ..result._plot import colours, from_zero, legend, looks, panels, plain

    names = list(dict.fromkeys(used["mechanism"]))
    figure, [use, response, gain] = panels(ax, (10.5, 3.2), 3)
    window = max(round(3600 / every), 1)
    for name, look in zip(names, looks(len(names)), strict=False):
        rows = used[used["mechanism"] == name]
        first = rows.groupby("source")["time"].transform("min")
        mean = rows.assign(hour=(rows["time"] - first) / 3600).groupby("hour")["used"].mean()
        use.plot(mean.index, mean.rolling(window, min_periods=1).mean(), label=plain(name), **look)
        times = jobs.loc[jobs["mechanism"] == name, "response"]
        done = np.sort(times.dropna().to_numpy()) / 60
        response.step(done, np.arange(1, len(done) + 1) / len(times), where="post", **look)
    from_zero(use, 1)
    use.set_xlabel("hours")
    use.set_ylabel("utilization (average of an hour)")
    response.set_xscale("log")
    from_zero(response, 1)
    response.set_xlabel("response time [minutes]")
    response.set_ylabel("part of all jobs")
    table = speedups
    gain.barh(np.arange(len(table)), table["mean"], xerr=table["half"].fillna(0.0), color=colours(1)[0], height=0.6)
    gain.set_yticks(np.arange(len(table)), [plain(name) for name in table["over"]], fontsize="small")
    gain.axvline(0, color="#111111", linewidth=0.6)
    gain.set_xlabel(f"jobs sooner with {base} [log2]")
    legend(ax, use, *use.get_legend_handles_labels(), "upper center", fontsize="x-small", ncols=len(names))
    return figure
