"""Tables of an experiment from stored cells: one per cluster with a row per mechanism, or one of means."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ... import mechanisms
from ...base.libraries import pd
from ...base.names import apart
from ...core.game.selection import MAYBE_OTHERS
from ...properties import in_short
from ...study.compare import NOTE, marked
from .. import papers
from ..experiment import load
from ..schema import SIMULATIONS
from .export import write
from .stored import Results, StoredCells, means, reached, telling, with_means
from .typeset import INTERVAL, PAGE, base, differing

_SUMMARY = ("tasks", "min_share", "max_share")
#: Columns that identify rows; constant ones are omitted.
_BY = ("workload", "source", "policy", "until", "every", "thrashing")
_PROPERTIES = (
    "SI sharing incentive, EF envy-freeness, PO Pareto optimality, SP strategy-proofness, BF bottleneck fairness"
)
_MEASURES = ("utilization", "jobs_done", "tasks_done", "mean_response", "median_response", "mean_wait", "simulate")


@dataclass(frozen=True)
class Table:
    """Table of results, with its title and notes.

    Parameters
    ----------
    name, title : str
        Base name of its files, and the first sentence of the caption.
    frame : DataFrame
    notes : tuple of str
        Notes below the table.
    details : tuple of str
        Further sentences of the caption.
    groups : mapping
        Columns under common headings.
    whole : bool
        Columns were selected explicitly, and a LaTeX table that is too wide for them is an error.

    >>> import fairopt as fo
    >>> import pandas as pd
    >>> table = fo.report.Table("use", "Utilization", pd.DataFrame({"mechanism": ["DRF", "TSF"], "mean": [0.5, 0.6]}))
    >>> table.chosen(["mean"], ["TSF"]).frame.to_dict("list")
    {'mean': [0.6]}
    """

    name: str
    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    whole: bool = False

    @property
    def caption(self) -> str:
        """Caption: title and details in one line."""
        return ". ".join([self.title, *self.details])

    def write(self, folder: Path, inches: float = PAGE) -> list[Path]:
        """Write the table as `report.write` does, and return the paths."""
        return write(
            self.frame, folder, self.name, self.caption, inches, notes=self.notes, groups=self.groups, whole=self.whole
        )

    def chosen(self, columns: Sequence[str] | None, rows: Sequence[str] | None) -> Table | None:
        """Select columns and rows in the given order; None if nothing matches.

        Parameters
        ----------
        columns : sequence of str or None
            Names, or patterns such as `use_*`; half-widths of intervals come with their means.
        rows : sequence of str or None
            Values of any cell, or patterns such as `alphaPF-VDS*`.
        """
        frame = self.frame
        if rows is not None:
            cells = [[str(one).lower() for one in each] for each in frame.to_numpy()]
            every = [k for one in rows for k, each in enumerate(cells) if fnmatch.filter(each, one.lower())]
            frame = frame.iloc[list(dict.fromkeys(every))]
        if columns is not None:
            named = [name for one in columns for name in frame if fnmatch.fnmatch(base(name), one)]
            frame = frame[list(dict.fromkeys(named))]
        return replace(self, frame=frame.reset_index(drop=True), whole=columns is not None) if frame.size else None


def tables_of(experiment: str, results: Results) -> list[Table]:
    """Build the tables of an experiment by its key `table`: `clusters`, one for each, or `means` over repetitions.

    If games were played on several draws, a table `NAME-reached` has the rounds in which they reach each residual.

    Parameters
    ----------
    experiment : str
        Name or file.
    results : Results
        Stored cells.

    Returns
    -------
    list of Table

    Raises
    ------
    MissingCells
        The store lacks cells of the experiment; the message has the command that computes them.
    DataError
        There is no such experiment.

    >>> import fairopt as fo
    >>> fo.report.tables_of("pf_example", fo.report.Results())  # doctest: +SKIP
    """
    chosen, found = load(experiment, results.smoke), results.of(experiment)
    sources, simulated = _sources(found.cells, chosen.schema.source), chosen.schema is SIMULATIONS
    if simulated or chosen.table == "means":
        frame = simulated_means(found) if simulated else means(found)
        footnote = () if simulated or not found.cells["pooled"].any() else (NOTE,)
        details = (_draws(frame["n"], frame), *sources)
        made = [Table(chosen.name, chosen.title, frame, (*footnote, *found.notes), details)]
        if simulated and chosen.at:
            shares = shares_at(found, chosen.at)
            details = ("Dominant shares over time", _draws(frame["n"], shares), *sources)
            groups = {"dominant share at": [f"{time:g} s" for time in chosen.at]}
            made.append(Table(f"{chosen.name}-shares", chosen.title, shares, found.notes, details, groups))
        elif not simulated and chosen.repetitions > 1 and not (games := reached(found)).empty:
            # Medians of fewer than six draws have no interval.
            known = games.filter(regex=" low$").notna().any(axis=None)
            of = "95% intervals between order statistics in brackets" if known else "without intervals"
            details = (f"Medians of {_n(games['n'])} draws of when each residual is reached, {of}", *sources)
            made.append(Table(f"{chosen.name}-reached", chosen.title, games, found.notes, details))
    else:
        names = found.cells["cluster"].unique()  # clusters of which all cells failed have no table
        made = [_of_cluster(chosen.name, name, found) for name in names]
    return [_tiny(table) for table in made] if results.smoke else made


def _draws(counts: pd.Series[int], frame: pd.DataFrame) -> str:
    """Number of draws, and the kind of confidence intervals, if there is more than one draw."""
    if counts.max() == 1:
        return "n = 1 draw, without intervals"
    differ = (frame.filter(like=INTERVAL) > 0).any(axis=None)
    intervals = "\u00b1 half a 95% confidence interval (Student's t)" if differ else "all equal, without intervals"
    return f"Means of {_n(counts)} draws, {intervals}"


def _n(counts: pd.Series[int]) -> str:
    return f"n = {' to '.join(map(str, sorted({counts.min(), counts.max()})))}"


def _sources(cells: pd.DataFrame, column: str) -> tuple[str, ...]:
    """Sources of the data with their common parameters: `bitbrains?vms=100` becomes bitbrains (vms = 100)."""
    said = []
    for name, sources in cells.groupby(column, sort=False)["source"]:
        kind, *more = differing([*sources.unique()])[0] or ["="]
        if "=" not in kind:
            said.append(f"{name} from {kind}" + f" ({', '.join(more).replace('=', ' = ')})" * bool(more))
    return (f"Data: {'; '.join(said)}",) if 0 < len(said) < 9 else ()


def _tiny(table: Table) -> Table:
    """Mark the table of a tiny version in its title and in every row, as it must not be mistaken for a result."""
    frame = table.frame.copy()
    frame.insert(0, "TINY VERSION", "not a result")
    return replace(table, title=f"TINY VERSION, not a result: {table.title}", frame=frame)


def mechanism_table() -> Table:
    """Table of all registered mechanisms with their properties and sources.

    >>> import fairopt as fo
    >>> "drfh" in set(fo.report.mechanism_table().frame["name"])
    True
    """
    rows = [
        {"name": name, "mechanism": kind.title, "properties": in_short(kind), "source": kind.source}
        for name, kind in sorted(mechanisms.REGISTRY.items())
    ]
    return Table("mechanisms", "The mechanisms", pd.DataFrame(rows), (_PROPERTIES,))


def _of_cluster(experiment: str, cluster: str, found: StoredCells) -> Table:
    """Table of a cluster, one row per mechanism: tasks by user, or a summary; utilization; certificate, seconds."""
    cells = found.cells[found.cells["cluster"] == cluster].set_index("key").sort_values("pooled", kind="stable")
    chosen = [mechanisms.parse(text)[0] for text in cells["mechanism"]]
    frame = pd.DataFrame({"mechanism": marked(chosen, cells["pooled"])}, index=cells.index)
    instance = cells["source"].iloc[0].removeprefix("paper:") if cells["data"].iloc[0] == "paper" else ""
    done, use = (found.contents.long(name, cells.index) for name in ("allocated", "use"))
    use = use[use["class"] == "all"]
    used = use.pivot(index="key", columns="resource", values="utilization")[use["resource"].unique()].add_prefix("use_")
    last = cells[["jain", "certificate", "seconds"]]
    groups: dict[str, list[str]] = {}
    first = cells[list(_SUMMARY)]
    if len(done):
        users = done["user"].unique().tolist()
        taken = {"mechanism", "printed", *last, *used, *(user for user in users if user.startswith("use_"))}
        groups = {"tasks of": apart(users, taken, "user")}
        first = done.groupby(["key", "user"])["tasks"].sum().unstack()[users].set_axis(groups["tasks of"], axis=1)
        printed = [_printed(instance, one, len(users)) for one in chosen]
        if any(printed):
            first = first.assign(printed=pd.Series(printed, frame.index))
    frame = frame.join(first).join(used).join(last)
    notes = [NOTE] if cells["pooled"].any() else []
    said = cells["notes"].str.replace(MAYBE_OTHERS, MAYBE_OTHERS.partition(":")[0], regex=False)
    notes += [f"{', '.join(names)}: {text}" for text, names in frame.groupby(said)["mechanism"] if text]
    failed = found.failed[found.failed["cluster"] == cluster]
    notes += [f"{mechanisms.parse(text)[0]}: {error}" for text, error in failed[["mechanism", "error"]].to_numpy()]
    notes += [f"{name} misses its tolerance" for name in frame["mechanism"][cells["status"] == "missed"]]
    title = _heading(instance, cells)
    return Table(f"{experiment}-{cluster}", title, frame.reset_index(drop=True), tuple(notes), groups=groups)


def _heading(instance: str, cells: pd.DataFrame) -> str:
    """Description of a cluster: a paper's example, or a source with its numbers of users N and servers K."""
    if known := papers.instances().get(instance):
        about = f"{known.description} ({papers.CITATIONS.get(known.paper, known.paper)}, {known.where})"
        return about[0].upper() + about[1:]
    first = cells.iloc[0]
    about = first["about"].replace(": FAIROPT_TRACES is not set", "")
    return f"{about}; N = {first['users']:.0f} users, K = {first['servers']:.0f} servers"


def _printed(instance: str, mechanism: mechanisms.Mechanism, users: int) -> str:
    """Tasks that a paper prints for its example; '' if it prints none."""
    starts = tuple(f"{name}: tasks".lower() for name in (mechanism.title, mechanism.name))
    for claim in papers.claims():
        if claim.instance == instance and claim.printed and claim.statement.lower().startswith(starts):
            value = claim.printed.value
            if isinstance(value, tuple) and len(value) == users:
                return papers.show(value)
    return ""


def simulated_means(found: StoredCells) -> pd.DataFrame:
    """Means by workload and policy over `n` draws: utilization by resource, and all measures, with half-widths `+-`.

    `jobs_done` and `tasks_done` are fractions of all jobs and tasks.
    """
    cells = found.cells.copy()
    for what in ("jobs", "tasks"):
        cells[f"{what}_done"] = cells[f"{what}_done"] / cells[what]
    by = telling(cells, _BY, "policy")
    table = cells.groupby(by, sort=False, dropna=False).agg(n=("key", "size")).reset_index()
    use = found.long("use")
    for resource in use["resource"].unique():
        table = with_means(table, use[use["resource"] == resource], by, {"utilization": f"use_{resource}"})
    return with_means(table, cells, by, {measure: measure for measure in _MEASURES})


def shares_at(found: StoredCells, times: Sequence[float]) -> pd.DataFrame:
    """Dominant shares by workload, policy and user at the given seconds, from the last sample before each."""
    shares = found.long("shares")
    cells = telling(found.cells, _BY[:3], "policy")
    table = shares[[*cells, "user"]].drop_duplicates().reset_index(drop=True)
    for time in times:
        before = shares[shares["time"] <= time].groupby(["key", "user"], sort=False).tail(1)
        table = with_means(table, before, [*cells, "user"], {"share": f"{time:g} s"})
    return table
