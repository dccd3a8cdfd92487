"""Tables of an experiment from stored cells: one table per cluster with a row per mechanism, or one table of means."""

from __future__ import annotations

import fnmatch
from dataclasses import replace

from msgspec import structs

from ... import mechanisms
from ...base.libraries import pd
from ...base.names import apart, meant
from ...core.game.selection import MAYBE_OTHERS
from ...properties import in_short
from ...study.compare import NOTE, marked
from .. import papers
from ..experiment import Experiment, load
from ..schema import SIMULATIONS
from .stored import (
    MEASURES,
    Results,
    StoredCells,
    means,
    reached,
    swept,
    telling,
)
from .table import Table, draws_said, medians_said
from .typeset import differing, uses

_SUMMARY = ("tasks", "min_share", "max_share")
_OVER = "Above 100%: tasks on over-committed servers demand more than these have, and get less"
_PROPERTIES = (
    "SI sharing incentive, EF envy-freeness, PO Pareto optimality, SP strategy-proofness, BF bottleneck fairness"
)


def tables_of(experiment: str, results: Results) -> list[Table]:
    """Build the tables of an experiment by its key `table`.

    `clusters`: one table for each cluster; `means`: one table of means over repetitions; `properties`: one table of
    properties by mechanism.

    If games were played on several draws, a table `NAME-reached` has the rounds until the residual falls to each level.
    Each entry of the experiment's `tables` follows as a table `NAME-name`.

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
        details = (draws_said(frame["n"], frame), *sources)
        keep = _kept(chosen, frame)
        made = [Table(chosen.name, chosen.title, frame, (*footnote, *over, *found.notes), details, keep=keep)]
        if not simulated and chosen.repetitions > 1 and not (games := reached(found)).empty:
            # Medians of fewer than six draws have no interval.
            known = games.filter(regex=" low$").notna().any(axis=None)
            games, parameters = swept(games if known else games.filter(regex="(?<! low)(?<! high)$"), "mechanism")
            games = games[[*dict.fromkeys(("cluster", "mechanism", *parameters, *games))]]
            details = ("When each residual is reached", medians_said(games["n"], games), *sources)
            keep = (*telling(games, games.columns[: games.columns.get_loc("n")]), "rounds")
            made.append(Table(f"{chosen.name}-reached", chosen.title, games, found.notes, details, keep=keep))
    elif chosen.table == "properties":
        made = [_of_properties(chosen, found)]
    else:
        names = found.cells["cluster"].unique()  # clusters whose cells all failed have no table
        made = [_of_cluster(chosen.name, name, found) for name in names]
    for k, asked in enumerate(chosen.tables):
        options = structs.asdict(asked)
        name, title = options.pop("name"), options.pop("title")
        with chosen.document.blamed("tables", k):
            one = found.table(**options)
        title = f"{chosen.title}: {title}" if title else one.title
        made.append(replace(one, name=f"{chosen.name}-{name}", title=title, details=(*one.details, *sources)))
    return [_tiny(table) for table in made] if results.smoke else made


def _kept(chosen: Experiment, frame: pd.DataFrame) -> tuple[str, ...]:
    """Columns of a table of means that are always printed: row labels, before `n`, and measures of the experiment.

    Raises
    ------
    DataError
        The experiment names an unknown measure; the message has the line of its file.
    """
    known = [*frame, *MEASURES]
    if lost := [one for one in chosen.keep if not fnmatch.filter(known, one)]:
        raise chosen.document.error(("keep",), f"the table has no column {lost[0]}{meant(lost[0], known)}")
    return (*telling(frame, frame.columns[: frame.columns.get_loc("n")]), "data", *(chosen.keep or ("utilization",)))


def _sources(cells: pd.DataFrame, column: str) -> tuple[str, ...]:
    """Sentence on sources and their common parameters: `bitbrains?vms=100` becomes bitbrains (vms = 100).

    The tuple is empty if there are no such sources, or more than eight.
    """
    said = []
    for name, sources in cells.groupby(column, sort=False)["source"]:
        kind, *more = differing([*sources.unique()])[0] or ["="]
        if "=" not in kind:
            said.append(f"{name} from {kind}" + f" ({', '.join(more).replace('=', ' = ')})" * bool(more))
    return (f"Data: {'; '.join(said)}",) if 0 < len(said) < 9 else ()


def _tiny(table: Table) -> Table:
    """Mark the table of a tiny version in title and rows, since it must not be mistaken for a result."""
    frame = table.frame.copy()
    frame.insert(0, "TINY VERSION", "not a result")
    return replace(table, title=f"TINY VERSION, not a result: {table.title}", frame=frame)


def mechanism_table() -> Table:
    """Table of all registered mechanisms, with the columns `name`, `mechanism` (title), `properties` and `source`.

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
    """Table of properties by mechanism: measured violations and proofs, compared with what a paper prints."""
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
                shown = not has or any(not claim.conditions for claim in proved)
                verdict = "paper in error" if shown else "no counterexample found"
                wrong.append(f"{verdict}: {one} is printed {'no' if has else 'yes'}")
            notes |= {f"{one}: {name} is proved for clusters with {each}": None for claim in proved
                      for each in claim.conditions}  # fmt: skip
        rows.append(row | {"verdict": "; ".join(wrong) or papers.REPRODUCED})
    frame = pd.DataFrame(rows)
    details = ("No: the largest violation on the experiment's clusters; yes: proved, and not violated on these",)
    return Table(chosen.name, chosen.title, frame, (*notes, *found.notes), details, keep=(*frame,))


def _heading(instance: str, cells: pd.DataFrame) -> str:
    """Description of a cluster: a paper's example, or a source with the number of users N and of servers K."""
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
