"""The tables of an experiment: one per cluster with a row per mechanism, or one of means. From stored cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .. import mechanisms, papers
from .._libraries import pd
from ..model._names import apart
from ..properties import in_short
from ..study.compare import NOTE, marked
from ..study.intervals import interval
from ..sweeps.experiment import load
from ..sweeps.schema import SIMULATIONS
from .stored import Results, StoredCells, means, reached

_SUMMARY = ("tasks", "min_share", "max_share")
#: What tells rows apart; columns that do not are left out.
_BY = ("workload", "source", "policy", "until", "every", "thrashing")
_MEASURES = ("utilization", "jobs_done", "tasks_done", "mean_response", "median_response", "mean_wait", "simulate")


@dataclass(frozen=True)
class Table:
    """A table, with the lines that belong below it."""

    name: str
    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = field(default=())

    @property
    def caption(self) -> str:
        """Title and notes in one line."""
        return ". ".join([self.title, *self.notes])


def tables_of(experiment: str, results: Results) -> list[Table]:
    """Tables as `table` in the experiment's file asks: `clusters`, one of each, or `means` over repetitions.

    Beside means stands `NAME-reached`, when games come to each residual, if there are games and several draws.

    Parameters
    ----------
    experiment : its name or file
    results : the stored cells

    Raises
    ------
    MissingCells
        The store lacks cells of it; the message names the sweep that computes them.
    DataError
        There is no such experiment.
    """
    chosen, found = load(experiment, results.smoke), results.of(experiment)
    if chosen.schema is SIMULATIONS:
        title = f"{chosen.title}: means with 95% confidence intervals"
        made = [Table(chosen.name, title, simulated_means(found), found.notes)]
        if chosen.at:
            title = f"{chosen.title}: dominant shares at these seconds, means with 95% confidence intervals"
            made.append(Table(f"{chosen.name}-shares", title, shares_at(found, chosen.at), found.notes))
    elif chosen.table == "means":
        title = f"{chosen.title}: means with 95% confidence intervals"
        footnote = (NOTE,) if found.cells["pooled"].eq(True).any() else ()
        made = [Table(chosen.name, title, means(found), (*footnote, *found.notes))]
        if chosen.repetitions > 1 and not (games := reached(found)).empty:
            title = f"{chosen.title}: medians of rounds, messages and seconds to each residual, with 95% intervals"
            made.append(Table(f"{chosen.name}-reached", title, games, found.notes))
    else:
        names = found.cells["cluster"].unique()  # one whose every cell failed has no table
        made = [_of_cluster(chosen.name, name, found) for name in names]
    return [_tiny(table) for table in made] if results.smoke else made


def _tiny(table: Table) -> Table:
    """A table of a tiny version, marked in title and in every row: nobody must take it for a result."""
    frame = table.frame.copy()
    frame.insert(0, "TINY VERSION", "not a result")
    return replace(table, title=f"TINY VERSION, not a result: {table.title}", frame=frame)


def mechanism_table() -> Table:
    """Every registered mechanism with its properties and source."""
    rows = [
        {"name": name, "mechanism": kind.title, "properties": in_short(kind), "source": kind.source}
        for name, kind in sorted(mechanisms.REGISTRY.items())
    ]
    return Table("mechanisms", "The mechanisms", pd.DataFrame(rows))


def _of_cluster(experiment: str, cluster: str, found: StoredCells) -> Table:
    """A row per mechanism: tasks of every user if they are stored, else a summary; use; certificate, seconds."""
    cells = found.cells[found.cells["cluster"] == cluster].set_index("key").sort_values("pooled", kind="stable")
    chosen = [mechanisms.parse(text)[0] for text in cells["mechanism"]]
    frame = pd.DataFrame({"mechanism": marked(chosen, cells["pooled"])}, index=cells.index)
    instance = cells["source"].iloc[0].removeprefix("paper:") if cells["data"].iloc[0] == "paper" else ""
    done, use = (found.contents.long(name, cells.index) for name in ("allocated", "use"))
    use = use[use["class"] == "all"]
    if len(done):
        users = done["user"].unique().tolist()
        by_user = done.groupby(["key", "user"])["tasks"].sum().unstack()
        taken = {"mechanism", "printed", "jain", "certificate", "seconds", *(f"use_{name}" for name in use["resource"])}
        taken |= {user for user in users if user.startswith("use_")}
        frame = frame.join(by_user[users].set_axis(apart(users, taken, "user"), axis=1))
        printed = [_printed(instance, one, len(users)) for one in chosen]
        if any(printed):
            frame["printed"] = printed
    else:
        frame = frame.join(cells[list(_SUMMARY)])
    frame = frame.join(use.pivot(index="key", columns="resource", values="utilization")[use["resource"].unique()]
                       .add_prefix("use_"))  # fmt: skip
    frame = frame.join(cells[["jain", "certificate", "seconds"]])
    notes = [NOTE] if cells["pooled"].any() else []
    notes += [f"{one}: {text}" for one, text in zip(frame["mechanism"], cells["notes"], strict=True) if text]
    failed = found.failed[found.failed["cluster"] == cluster]
    notes += [f"{mechanisms.parse(text)[0]}: {error}" for text, error in failed[["mechanism", "error"]].to_numpy()]
    notes += [f"{name} misses its tolerance" for name in frame["mechanism"][cells["status"] == "missed"]]
    return Table(f"{experiment}-{cluster}", _heading(instance, cells), frame.reset_index(drop=True), tuple(notes))


def _heading(instance: str, cells: pd.DataFrame) -> str:
    """The origin of a cluster: a paper's example, or a source."""
    first = cells.iloc[0]
    if known := papers.instances().get(instance):
        return f"{known.description} ({known.paper}, {known.where})"
    return f"{first['about']}; {first['users']} users, {first['servers']} servers"


def _printed(instance: str, mechanism: mechanisms.Mechanism, users: int) -> str:
    """The tasks that a paper prints for its example, or nothing."""
    starts = tuple(f"{name}: tasks".lower() for name in (mechanism.title, mechanism.name))
    about = (claim for claim in papers.claims() if claim.instance == instance)
    for claim in about:
        if claim.printed is not None and claim.statement.lower().startswith(starts):
            value = claim.printed.value
            if isinstance(value, tuple) and len(value) == users:
                return papers.show(value)
    return ""


def simulated_means(found: StoredCells) -> pd.DataFrame:
    """One row per workload and policy: `n` draws, the use of every resource, then every measure that there is, as its
    mean and `+-` its half interval. `jobs_done` and `tasks_done` are parts of all.
    """
    cells = found.cells.copy()
    for what in ("jobs", "tasks"):
        cells[f"{what}_done"] = cells[f"{what}_done"] / cells[what]
    by = [name for name in _BY if cells[name].nunique(dropna=False) > 1 or name == "policy"]
    table = cells.groupby(by, sort=False, dropna=False).agg(n=("key", "size")).reset_index()
    use = found.long("use").drop(columns="utilization_x", errors="ignore")
    for resource in use["resource"].unique():
        one = use[use["resource"] == resource]
        table = _joined(table, interval(one, by, "utilization"), by, f"use_{resource}")
    for measure in _MEASURES:
        if cells[measure].notna().any():
            table = _joined(table, interval(cells, by, measure), by, measure)
    return table


def shares_at(found: StoredCells, times: Sequence[float]) -> pd.DataFrame:
    """One row per workload, policy and user: its dominant share at each time, as the last sample before has it."""
    shares = found.long("shares")
    cells = [name for name in _BY[:3] if found.cells[name].nunique() > 1 or name == "policy"]
    table = shares[[*cells, "user"]].drop_duplicates().reset_index(drop=True)
    for time in times:
        before = shares[shares["time"] <= time].groupby(["key", "user"], sort=False).tail(1)
        table = _joined(table, interval(before, [*cells, "user"], "share"), [*cells, "user"], f"{time:g} s")
    return table


def _joined(table: pd.DataFrame, means: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    half = means["half"].where(~(means["half"] <= 1e-12 * means["mean"].abs()), 0.0)  # rounding of equal numbers
    one = means.assign(half=half).rename(columns={"mean": name, "half": f"+- {name}"}).drop(columns="n")
    return table.merge(one.dropna(axis=1, how="all"), on=by, how="left")
