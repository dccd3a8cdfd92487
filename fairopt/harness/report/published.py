"""Tables of an experiment from stored cells: one per cluster with a row per mechanism, or one of means."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ... import mechanisms
from ...base.errors import DataError
from ...base.libraries import pd
from ...base.names import alike, apart, meant
from ...core.game.selection import MAYBE_OTHERS
from ...properties import in_short
from ...study.compare import NOTE, marked
from .. import papers
from ..experiment import Experiment, load
from ..schema import SIMULATIONS
from .export import write
from .stored import (
    MEASURES,
    WAY,
    Results,
    StoredCells,
    means,
    reached,
    swept,
    telling,
    typed,
    with_fractions,
    with_means,
)
from .typeset import INTERVAL, PAGE, base, differing, latex, uses

_SUMMARY = ("tasks", "min_share", "max_share")
_OVER = "Above 100%: tasks on over-committed servers demand more than these have, and get less"
_PROPERTIES = (
    "SI sharing incentive, EF envy-freeness, PO Pareto optimality, SP strategy-proofness, BF bottleneck fairness"
)


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
    keep : tuple of str
        Columns that stay at any width: what names rows, and the measures that the table is about.

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
    keep: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """Caption: title and details in one line."""
        return ". ".join([self.title, *self.details])

    def write(self, folder: str | Path, inches: float = PAGE) -> list[Path]:
        """Write the table as `report.write` does, and return the paths."""
        return write(self.frame, folder, self.name, self.caption, inches, **self._options)

    def latex(self, inches: float = PAGE) -> str:
        """LaTeX of the table, at most as wide as `inches`."""
        return latex(self.frame, self.caption, f"tab:{self.name}", inches, **self._options)

    @property
    def _options(self) -> dict[str, Any]:
        return {"notes": self.notes, "groups": self.groups, "whole": self.whole, "keep": self.keep}

    def chosen(self, columns: Sequence[str] | None, rows: Sequence[str] | None) -> Table | None:
        """Select columns and rows in the given order; None if nothing matches.

        Parameters
        ----------
        columns : sequence of str or None
            Names, or patterns such as `use_*`; half-widths of intervals come with their means.
        rows : sequence of str or None
            Values of any cell, patterns such as `alphaPF-VDS*`, or names with a parameter that is a column, such as
            `alphaPF-VDS(alpha=2)`. Groups of rows, which the columns before that of the value make, stay together.
        """
        frame = self.frame
        if rows is not None:
            frame = frame.iloc[_matching(frame, [alike(one) for one in rows])]
        if columns is not None:
            named = [name for one in columns for name in frame if fnmatch.fnmatch(base(name), one)]
            frame = frame[list(dict.fromkeys(named))]
        return replace(self, frame=frame.reset_index(drop=True), whole=columns is not None) if frame.size else None


def _matching(frame: pd.DataFrame, patterns: Sequence[str]) -> list[int]:
    """Positions of rows with a cell that matches a pattern, in the order of groups, then of patterns."""
    groups, found = dict[str, int](), list[tuple[int, int, int]]()
    for k, row in enumerate(frame.map(alike).to_numpy().tolist()):
        given = [f"({alike(name)}={cell})" for name, cell in zip(frame, row, strict=True)]
        for p, pattern in enumerate(patterns):
            # `name(alpha=2)` is a name beside a column alpha.
            wanted = next((pattern.removesuffix(one) for one in given if pattern.endswith(one)), pattern)
            if at := fnmatch.filter(row, pattern) or fnmatch.filter(row, wanted):
                found.append((groups.setdefault(repr(row[: row.index(at[0])]), len(groups)), p, k))
                break
    return [k for *_, k in sorted(found)]


def tables_of(experiment: str, results: Results) -> list[Table]:
    """Build the tables of an experiment by its key `table`.

    `clusters` is one for each, `means` one over repetitions, `properties` one of properties by mechanism.

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
        frame = means(found)
        footnote = () if simulated or not found.cells["pooled"].any() else (NOTE,)
        over = (_OVER,) * bool((frame[uses(frame)] > 1 + 1e-9).any(axis=None))
        details = (_draws(frame["n"], frame), *sources)
        keep = _kept(chosen, frame)
        made = [Table(chosen.name, chosen.title, frame, (*footnote, *over, *found.notes), details, keep=keep)]
        if simulated and chosen.at:
            shares = shares_at(found, chosen.at)
            details = ("Dominant shares over time", _draws(frame["n"], shares), *sources)
            groups = {"dominant share at": [f"{time:g} s" for time in chosen.at]}
            keep = (*shares,)
            made.append(Table(f"{chosen.name}-shares", chosen.title, shares, found.notes, details, groups, keep=keep))
        elif not simulated and chosen.repetitions > 1 and not (games := reached(found)).empty:
            # Medians of fewer than six draws have no interval.
            known = games.filter(regex=" low$").notna().any(axis=None)
            of = "95% intervals between order statistics in brackets" if known else "without intervals"
            details = (f"Medians of {_n(games['n'])} draws of when each residual is reached, {of}", *sources)
            keep = (*telling(games, games.columns[: games.columns.get_loc("n")]), "rounds")
            made.append(Table(f"{chosen.name}-reached", chosen.title, games, found.notes, details, keep=keep))
    elif chosen.table == "properties":
        made = [_of_properties(chosen, found)]
    else:
        names = found.cells["cluster"].unique()  # clusters of which all cells failed have no table
        made = [_of_cluster(chosen.name, name, found) for name in names]
    return [_tiny(table) for table in made] if results.smoke else made


def _kept(chosen: Experiment, frame: pd.DataFrame) -> tuple[str, ...]:
    """Columns of a table of means that stay: those before the number of draws name rows, and the experiment's measures.

    Raises
    ------
    DataError
        The experiment names a measure that there is not: with the line of its file.
    """
    known = [*frame, *MEASURES]
    if lost := [one for one in chosen.keep if not fnmatch.filter(known, one)]:
        raise chosen.document.error(("keep",), f"the table has no column {lost[0]}{meant(lost[0], known)}")
    return (*telling(frame, frame.columns[: frame.columns.get_loc("n")]), "data", *(chosen.keep or ("utilization",)))


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
    keep = ("name", "mechanism", "properties")
    return Table("mechanisms", "The mechanisms", pd.DataFrame(rows), (_PROPERTIES,), keep=keep)


def _of_cluster(experiment: str, cluster: str, found: StoredCells) -> Table:
    """Table of a cluster, one row per mechanism: tasks by user, or a summary; utilization; certificate, seconds."""
    cells = found.cells[found.cells["cluster"] == cluster].set_index("key").sort_values("pooled", kind="stable")
    chosen = [mechanisms.parse(text)[0] for text in cells["mechanism"]]
    labels = pd.Series(marked(chosen, cells["pooled"]), cells.index)
    frame, parameters = swept(pd.DataFrame({"mechanism": labels}), "mechanism")
    instance = cells["source"].iloc[0].removeprefix("paper:") if cells["data"].iloc[0] == "paper" else ""
    done, use = (found.contents.long(name, cells.index) for name in ("allocated", "use"))
    use = use[use["class"] == "all"]
    used = use.pivot(index="key", columns="resource", values="utilization")[use["resource"].unique()].add_prefix("use_")
    last = cells[["jain", "certificate", "seconds"]]
    groups: dict[str, list[str]] = {}
    first = cells[list(_SUMMARY)]
    if len(done):
        users = done["user"].unique().tolist()
        taken = {*frame, "printed", *last, *used, *(user for user in users if user.startswith("use_"))}
        groups = {"tasks of": apart(users, taken, "user")}
        first = done.groupby(["key", "user"])["tasks"].sum().unstack()[users].set_axis(groups["tasks of"], axis=1)
        printed = [_printed(instance, one, len(users)) for one in chosen]
        if any(printed):
            first = first.assign(printed=pd.Series(printed, frame.index))
    frame = frame.join(first).join(used).join(last)
    notes = [NOTE] if cells["pooled"].any() else []
    said = cells["notes"].str.replace(MAYBE_OTHERS, MAYBE_OTHERS.partition(":")[0], regex=False)
    notes += [f"{', '.join(names)}: {text}" for text, names in labels.groupby(said) if text]
    failed = found.failed[found.failed["cluster"] == cluster]
    notes += [f"{mechanisms.parse(text)[0]}: {error}" for text, error in failed[["mechanism", "error"]].to_numpy()]
    notes += [f"{name} misses its tolerance" for name in labels[cells["status"] == "missed"]]
    keep = ("mechanism", *parameters, *groups.get("tasks of", _SUMMARY[:1]))
    title, frame = _heading(instance, cells), frame.reset_index(drop=True)
    return Table(f"{experiment}-{cluster}", title, frame, tuple(notes), groups=groups, keep=keep)


def _of_properties(chosen: Experiment, found: StoredCells) -> Table:
    """Table of properties by mechanism: measured counterexamples and proofs, against what a paper prints."""
    worst = found.long("measured").pivot_table(index="measure", columns="mechanism", values="value", aggfunc="max")
    worst = worst[found.cells["mechanism"].unique()]
    rows, notes = [], dict[str, None]()
    for name in dict.fromkeys(name for granted in chosen.printed.values() for name in granted):
        row, wrong = {"property": name.replace("-", " ")}, []
        for text, violation in worst.loc[name].items():
            one = mechanisms.one(str(text))
            proved = [claim for claim in one.claims if claim.property == name and claim.holds and claim.about(one)]
            has = violation <= found.cells["tol"].max()
            row[str(one)] = ("yes" if proved else "not proved") if has else f"no ({violation:.2g})"
            if one.name in chosen.printed and has != (name in chosen.printed[one.name]):
                wrong.append(f"paper in error: {one} is printed {'no' if has else 'yes'}")
            notes |= {f"{one}: {name} is proved for clusters with {each}": None for claim in proved
                      for each in claim.conditions}  # fmt: skip
        rows.append(row | {"verdict": "; ".join(wrong) or papers.REPRODUCED})
    frame = pd.DataFrame(rows)
    details = ("No: the largest violation on the experiment's clusters; yes: proved, and not violated on these",)
    return Table(chosen.name, chosen.title, frame, (*notes, *found.notes), details, keep=(*frame,))


def pivoted(found: StoredCells, rows: list[str], values: list[str], across: str | None, level: float) -> Table:
    """The table of `StoredCells.table`."""
    source, what = found.contents.schema.source, "policy" if "policy" in found.cells else "mechanism"
    cells, parameters = swept(with_fractions(found.cells), what, every=True)
    options = pd.DataFrame([dict(re.findall(r"[?&](\w+)=([^&]*)", text)) for text in cells["source"]], cells.index)
    options = options[options.columns.difference(cells.columns)].map(typed)
    cells = cells.join(options).assign(mechanism=cells[what])
    by = [*rows, *filter(None, [across])]
    if lost := [one for one in (*by, *values) if one not in cells]:
        raise DataError(f"there is no column {lost[0]!r}{meant(lost[0], cells)}; there are {', '.join(cells)}")
    for one in (source, *options, what, *parameters, *cells.columns.intersection(WAY)):
        if cells.groupby(by, dropna=False)[one].nunique(dropna=False).max() > 1:
            by.append(one)
    labels = [one for one in by if one != across]
    table, groups = cells[labels].drop_duplicates().reset_index(drop=True), dict[str, list[str]]()
    for value in values:
        for key, part in [("", cells)] if across is None else cells.groupby(across, dropna=False):
            head = f"{value} by {across} = {key}" if across else value
            groups.setdefault(f"{value} by {across}", []).append(head)
            table = with_means(table, part, labels, {value: head}, level)
    name = str(cells["experiment"].iloc[0])
    title = f"{name}: {', '.join(values)} by {', '.join(by)}".replace("_", " ")
    details = (_draws(cells.groupby(by, dropna=False).size(), table),)
    groups = groups if across else {}
    return Table(f"{name}-{'-'.join(values)}", title, table, found.notes, details, groups, keep=(*table,))


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


def shares_at(found: StoredCells, times: Sequence[float]) -> pd.DataFrame:
    """Dominant shares by workload, policy and user at the given seconds, from the last sample before each."""
    cells, parameters = swept(found.cells, "policy")
    shares = found.long("shares", cells)
    cells = telling(cells, ("workload", "source", "policy", *parameters), "policy")
    table = shares[[*cells, "user"]].drop_duplicates().reset_index(drop=True)
    for time in times:
        before = shares[shares["time"] <= time].groupby(["key", "user"], sort=False).tail(1)
        table = with_means(table, before, [*cells, "user"], {"share": f"{time:g} s"})
    return table
