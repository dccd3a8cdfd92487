"""Stored cells of an experiment for tables and figures, and their means and confidence intervals."""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...base.libraries import pd, stats
from ...base.names import apart, meant
from ...base.registry import parameters
from ...base.version import __version__
from ...mechanisms import REGISTRY
from ...mechanisms.reference import solvers
from ...scheduling.policies import REGISTRY as POLICIES
from ...study.compare import marked
from ...workloads.sources import CLUSTERS, WORKLOADS, Sources
from ..cell import Cell
from ..experiment import cells_of, load
from ..run import provenance
from ..schema import CELLS
from ..store import Contents
from ..sweeps import match, store_of
from .games import paired, power_law, with_games
from .table import Table, draws_said, medians_said
from .typeset import FRACTIONS


def check_level(level: float) -> None:
    """Raise `DataError` unless a level of confidence is in (0, 1)."""
    if not 0 < level < 1:
        raise DataError(f"level is {level}; it must be between 0 and 1, such as 0.95")


def interval(frame: pd.DataFrame, by: Iterable[str], values: str, level: float = 0.95) -> pd.DataFrame:
    r"""Mean of a column v by group, with Student's confidence interval.

    .. math:: \bar v \pm t_{n-1} s / \sqrt n

    with the mean :math:`\bar v` and the standard deviation s of n values, and the quantile :math:`t_{n-1}` of Student's
    distribution with n - 1 degrees of freedom.

    Parameters
    ----------
    frame : DataFrame
        One row per observation; missing values are omitted.
    by : iterable of str
        Columns that define groups.
    values : str
        Column to average.
    level : float
        Level of confidence, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group in order of appearance: the group, `mean`, `half` (half-width; NaN for n = 1, where the
        variance is unknown), `n`.

    Raises
    ------
    KeyError
        The frame lacks a column.
    DataError
        The level is not in (0, 1).

    Source: Student, "The probable error of a mean", Biometrika 6 (1908), doi:10.2307/2331554.

    >>> import fairopt as fo
    >>> import pandas as pd
    >>> draws = pd.DataFrame({"mechanism": "drf", "use": [0.1, 0.2, 0.3]})
    >>> fo.report.interval(draws, ["mechanism"], "use").round(3).to_numpy().tolist()
    [['drf', 0.2, 0.248, 3]]
    """
    check_level(level)
    keys = list(by)
    grouped = frame.dropna(subset=[values]).groupby(keys, sort=False, dropna=False)[values]
    found = grouped.agg(mean="mean", s="std", n="size").reset_index()
    n = found["n"].to_numpy()
    several = n > 1
    t = stats.t.ppf(0.5 + level / 2, np.where(several, n - 1, 1))
    found["half"] = np.where(several, t * found["s"] / np.sqrt(n), np.nan)
    return found[[*keys, "mean", "half", "n"]]


#: Columns that state how cells were solved or simulated. Tables have the columns that are not constant as row labels.
WAY = ("engine", "order", "damping", "tol", "until", "every", "thrashing")
MEASURES = ("rounds", "utilization", *FRACTIONS, "min_share", "jain", "welfare", "price_of_fairness", "mean_response",
            "median_response", "mean_wait", "seconds", "simulate")  # fmt: skip
#: Columns that identify games.
_GAME = ("cluster", "mechanism", "alpha", "order", "damping", "tol")
FORMAT = "fairopt-manifest-1"


class MissingCells(DataError):
    """Error for cells that the store lacks; the message has the command that computes them.

    >>> import fairopt as fo
    >>> fo.report.Results("no such folder").of("pf_example")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    MissingCells: 12 of 12 cells of pf_example are not in the store
    """


@dataclass(frozen=True)
class StoredCells:
    """Stored cells of one experiment.

    Attributes
    ----------
    cells : DataFrame
        One row per cell with results, in the order of the experiment. `experiment` and `cluster` (for simulations
        `workload`) are names in this experiment, whichever experiment computed the cell; `alpha` is infinite for
        PS-DSF.
    failed : DataFrame
        Cells that failed.
    notes : tuple of str
        Remarks: generators in place of traces, cells that failed (excluded) or missed their tolerance (included).

    >>> import fairopt as fo
    >>> found = fo.report.Results().of("pf_example")  # doctest: +SKIP
    >>> isinstance(found, fo.report.StoredCells)  # doctest: +SKIP
    True
    """

    cells: pd.DataFrame
    failed: pd.DataFrame
    notes: tuple[str, ...]
    contents: Contents = field(repr=False)

    def long(self, name: str, cells: pd.DataFrame | None = None) -> pd.DataFrame:
        """Long table (`use`, `curve`, `reached`, ...) of some cells (default: all), joined with their columns.

        An unknown table raises `DataError`.
        """
        cells = self.cells if cells is None else cells
        inside = self.contents.long(name, cells["key"])
        left = cells.drop(columns=[column for column in inside if column != "key" and column in cells])
        return left.merge(inside, on="key")

    def table(
        self,
        rows: str | Sequence[str],
        values: str | Sequence[str],
        columns: str | None = None,
        level: float = 0.95,
        *,
        medians: bool = False,
        less: Mapping[str, Any] | None = None,
        fit: str | Sequence[str] = (),
    ) -> Table:
        """Tabulate means of measures by rows and columns, with half-widths `+-` of intervals.

        Only repetitions are averaged. Any other column in which cells differ, such as a parameter of the mechanism, an
        option of the source or the engine, becomes a further row label.

        Parameters
        ----------
        rows : str or sequence of str
            Columns that name rows: `mechanism`, a parameter such as `alpha`, an option of the source such as `load`, or
            any column of the cells.
        values : str or sequence of str
            Measures: columns of the cells, and for games `rounds to 1e-3`, `messages to 1e-3`, `seconds to 1e-3`,
            `seconds per server to 1e-3` at each stored residual, `linear_factor` and `linear_fit` (module `games`).
            Cells without the first measure are left out.
        columns : str, optional
            Column whose values become columns of the table.
        level : float
            Level of confidence, in (0, 1).
        medians : bool
            Medians with intervals between order statistics in place of means, for example if some games never converge.
        less : mapping, optional
            Differences from the cell of the same draw that has the given values: `less={"order": "cyclic"}`, or
            `less={"mechanism": "drfh"}`; a reference mechanism may have other parameters.
        fit : str or sequence of str
            Exponents of a power law of the first measure in the given columns, such as `users`, in place of means.

        Raises
        ------
        DataError
            There is no such column; the message lists the existing columns.

        >>> import fairopt as fo
        >>> found = fo.report.Results().of("drfh_slots")  # doctest: +SKIP
        >>> found.table(rows="mechanism", columns="load", values="utilization").write("paper", 3.3)  # doctest: +SKIP
        """
        rows, values, fit = ([one] if isinstance(one, str) else [*one] for one in (rows, values, fit))
        source, what = self.contents.schema.source, "policy" if "policy" in self.cells else "mechanism"
        by = [*rows, *filter(None, [columns])]
        cells = with_fractions(self.cells)
        if "order" in cells and cells["order"].notna().any():
            cells = with_games(cells, self.long("reached"))
        cells, parameters = swept(cells, what, by)
        options = pd.DataFrame([dict(re.findall(r"[?&](\w+)=([^&]*)", text)) for text in cells["source"]], cells.index)
        options = options[options.columns.difference(cells.columns.drop("density", errors="ignore"))].map(typed)
        cells = cells.drop(columns=options.columns.intersection(cells.columns)).join(options)
        cells = cells.assign(mechanism=cells[what])
        if lost := [one for one in (*by, *values, *(less or ()), *fit) if one not in cells]:
            raise DataError(f"there is no column {lost[0]!r}{meant(lost[0], cells)}; there are {', '.join(cells)}")
        cells = cells[cells[values[0]].notna()]
        if cells.empty:
            raise DataError(f"no cell has {values[0]}; name another measure first")
        ways = [source, *options, what, *parameters, *cells.columns.intersection(WAY)]
        if less:  # a reference mechanism may have other parameters
            other = (what, *parameters) if {what, "mechanism"} & {*less} else ()
            cells = paired(cells, values, less, ["source", "repetition", *(one for one in ways if one not in other)])
        for one in ways:
            if one not in (*by, *fit, *([source] if fit else ())) and (
                cells.groupby(by, dropna=False)[one].nunique(dropna=False).max() > 1
            ):
                by.append(one)
        labels = [one for one in by if one != columns]
        table, groups = cells[labels].drop_duplicates().reset_index(drop=True), dict[str, list[str]]()
        for value in values:
            for key, part in [("", cells)] if columns is None else cells.groupby(columns, dropna=False):
                head = f"{value} by {columns} = {key}" if columns else value
                groups.setdefault(f"{value} by {columns}", []).append(head)
                if not fit:
                    table = with_means(table, part, labels, {value: head}, level, medians)
        if fit:
            table = power_law(cells, by, values[0], fit, level)
        name = str(cells["experiment"].iloc[0])
        title = f"{name}: {', '.join(values)} by {', '.join(by)}".replace("_", " ")
        title += "".join(f", less that of {one} = {value}, by draw" for one, value in (less or {}).items())
        counts = cells.groupby(by, dropna=False).size()
        of = medians_said if medians else draws_said
        details = ("Least squares of logarithms, \u00b1 half an interval" if fit else of(counts, table),)
        groups = groups if columns else {}
        return Table(f"{name}-{'-'.join(values)}", title, table, self.notes, details, groups, keep=(*table,))


@dataclass
class Results:
    """Access to stored results for tables and figures.

    Parameters
    ----------
    store : Path, optional
        Folder. Default: `results/store`, and `results/smoke/store` for tiny versions.
    smoke : bool
        Read the tiny versions of experiments.
    traces : str, optional
        Folder of the traces, on whose content the keys of cells depend. Default: FAIROPT_TRACES.
    accept_older : bool
        Accept results of other code of fairopt or of the mechanism; a note states how many.

    >>> import fairopt as fo
    >>> fo.report.Results().of("frontier").cells  # doctest: +SKIP
    """

    store: Path | None = None
    smoke: bool = False
    traces: str | None = None
    accept_older: bool = False
    _contents: dict[str, Contents] = field(default_factory=dict, repr=False)
    _found: dict[str, StoredCells] = field(default_factory=dict, repr=False)

    def of(self, experiment: str | Path) -> StoredCells:
        """Read all cells of an experiment.

        Raises
        ------
        MissingCells
            The store lacks some cells, or all cells failed; the message has the command that computes them.
        DataError
            There is no such experiment.
        """
        name = str(experiment)
        if name not in self._found:
            self._found[name] = self._read(name)
        return self._found[name]

    def _read(self, name: str) -> StoredCells:
        experiment = load(name, self.smoke)
        store = store_of(self.store, self.smoke, experiment.schema)
        kind = experiment.schema.format
        if kind not in self._contents:
            self._contents[kind] = store.read()
        contents, every = self._contents[kind], cells_of(experiment, self.traces)
        matched = match(every, contents, self.accept_older)
        wanted, older = matched.answered, matched.warning(self.accept_older)
        if len(wanted) < len(every):
            raise MissingCells(
                f"{len(every) - len(wanted)} of {len(every)} cells of {name} are not in {store.folder}; compute them "
                f"with: {self._command(name)}{f'. {older}' if older else ''}"
            )
        frame = contents.frame(wanted)
        chosen = [wanted[key] for key in frame["key"]]
        frame["experiment"] = [cell.experiment for cell in chosen]
        frame[experiment.schema.source] = [cell.source for cell in chosen]
        if experiment.schema is CELLS:
            frame["alpha"] = frame["alpha"].where(frame["name"] != "ps-dsf", math.inf)
            frame = contents.with_measures(frame)
        notes = [older] if older and self.accept_older else []
        notes += _notes(frame, chosen, f"fairopt sweep {Path(name).name}{' --smoke' * self.smoke} --retry")
        bad = frame["status"] == "failed"
        frame, failed = (part.reset_index(drop=True) for part in (frame[~bad], frame[bad]))
        if frame.empty:
            raise MissingCells(f"every cell of {name} failed; try again with: {self._command(name)} --retry")
        return StoredCells(frame, failed, tuple(notes), contents)

    def _command(self, name: str) -> str:
        folder, usual = (store_of(store, self.smoke).folder for store in (self.store, None))
        where = "" if folder == usual else f" --store {folder}"
        traces = f" --traces {self.traces}" if self.traces else ""
        return f"fairopt sweep {name}{' --smoke' if self.smoke else ''}{where}{traces}"


def _notes(frame: pd.DataFrame, chosen: list[Cell], retry: str) -> Iterator[str]:
    if stand_ins := sorted({cell.origin.text for cell in chosen if _is_stand_in(cell)}):
        yield f"no trace here: calibrated generators stand in ({', '.join(stand_ins)})"
    failed, missed = ((frame["status"] == kind).sum() for kind in ("failed", "missed"))
    if failed:
        yield f"{failed} of {len(frame)} cells failed and are left out; {retry}"
    if missed:
        yield f"{missed} of {len(frame)} cells missed their tolerance and are kept"


def _is_stand_in(cell: Cell) -> bool:
    """True if the cell was computed by a generator because its trace is missing."""
    sources: Sources[Any] = CLUSTERS if cell.job.schema is CELLS else WORKLOADS
    return cell.origin.kind == "generator" and sources.reads(cell.origin.text) is not None


def telling(cells: pd.DataFrame, names: Iterable[str], always: str = "") -> list[str]:
    """Columns among `names` that are not constant, and the column `always`."""
    return [name for name in names if name == always or cells[name].nunique(dropna=False) > 1]


def means(found: StoredCells) -> pd.DataFrame:
    """Means of all measures over draws, with half-widths of 95% confidence intervals (`interval`).

    The frame has a row per mechanism (for simulations: policy), source and combination of parameters, which are named
    in columns unless they are constant. Further columns are the number `n` of draws; `missed`, the number of cells
    whose certificate misses its tolerance, which are included; and for each measure the mean, followed by the
    half-width `+- measure` unless it is 0 or unknown in every row. Mechanisms on the pool are marked by `*`, and come
    last. Frames of simulations have no column `missed`; their measures include the use `use_...` of every resource,
    and the fractions of finished jobs and tasks.

    >>> import fairopt as fo
    >>> fo.report.means(fo.report.Results().of("comparison"))  # doctest: +SKIP
    """
    cells, schema = with_fractions(found.cells), found.contents.schema
    what = "mechanism" if schema is CELLS else "policy"
    if schema is CELLS:
        cells = cells.sort_values("pooled", kind="stable")
        cells = cells.assign(missed=cells["status"] == "missed", mechanism=marked(cells[what], cells["pooled"]))
    cells, parameters = swept(cells, what)
    by = telling(
        cells, (schema.source, "source", what, *parameters, *cells.columns.intersection(WAY, sort=False)), what
    )
    counted = {"n": ("key", "size"), **({"missed": ("missed", "sum")} if schema is CELLS else {})}
    table = cells.groupby(by, sort=False, dropna=False).agg(**counted).reset_index()
    if schema is not CELLS:
        for resource, use in found.long("use", cells).groupby("resource", sort=False):
            table = with_means(table, use, by, {"utilization": f"use_{resource}"})
    measured = [name for name in cells if name not in (*schema.columns, *by, *counted)]
    return with_means(table, cells, by, {one: one for one in dict.fromkeys((*MEASURES, *measured)) if one in cells})


def with_fractions(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with the columns `fraction_of_jobs_done` and `fraction_of_tasks_done`, as far as the counts are known."""
    given = [what for what in ("jobs", "tasks") if f"{what}_done" in cells]
    return cells.assign(**{f"fraction_of_{what}_done": cells[f"{what}_done"] / cells[what] for what in given})


def swept(cells: pd.DataFrame, what: str, by: Sequence[str] = ()) -> tuple[pd.DataFrame, list[str]]:
    """Cells with a column for each parameter that takes several values under one name, and the names of these columns.

    `what` is `mechanism` or `policy`, from whose label such parameters are removed. Parameters in `by` are always
    columns. If a name is taken by another column, `what` is appended in brackets.
    """
    parts = [parted(str(text)) for text in cells[what]]
    names = pd.Series([name for name, _ in parts], cells.index)
    values = pd.DataFrame([defaults(name) | given for name, given in parts], cells.index, dtype=object)
    asked = dict.fromkeys(key for _, given in parts for key in given)
    wanted = {name.removesuffix(f" ({what})") for name in by}
    if "alpha" in cells and cells["alpha"].nunique() > 1:
        wanted.add("alpha")  # PS-DSF has alpha = infinity without stating it
    several = [key for key in asked if key in wanted or values[key].map(repr).groupby(names).nunique().max() > 1]
    left = (", ".join(f"{key}={of}" for key, of in given.items() if key not in several) for _, given in parts)
    labels = [f"{name}({inside})" if inside else name for name, inside in zip(names, left, strict=True)]
    columns = apart(several, {"n", *cells.columns} - {"alpha"}, what)
    shown = values[several].map(lambda of: str(of) if isinstance(of, tuple | list) else of)
    shown = shown.set_axis(columns, axis=1).infer_objects()
    if "alpha" in columns and "alpha" in cells:
        shown["alpha"] = cells["alpha"]
    return cells.drop(columns="alpha", errors="ignore").assign(**{what: labels}).join(shown), columns


def parted(label: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of a label: `slots(n=3, whole=False)` is `slots` and `{"n": 3, "whole": False}`."""
    name, _, inside = label.rstrip("*").partition("(")
    return name + "*" * label.endswith("*"), parameters(label, inside[:-1])


def typed(text: Any) -> Any:
    """Convert the text of an option to a number or boolean if it is one."""
    try:
        return float(text) if text in ("inf", "nan") else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def option(cells: pd.DataFrame, name: str, default: str) -> pd.Series[str]:
    """Values of an option as text, from the source, a column, or the policy or simulation, in this order.

    `default` stands for values that are not stated.
    """
    of_source = cells["source"].str.extract(rf"[?&]{name}=([^&]*)")[0]
    if of_source.notna().any():
        return of_source.fillna(default)
    if name in cells:
        shown = cells[name].map(lambda value: f"{value:g}" if isinstance(value, float) else str(value))
        return shown.where(cells[name].notna(), default)
    texts = cells[[one for one in ("policy", "options") if one in cells]].astype(str).agg(" ".join, axis=1)
    return texts.str.extract(rf"""\b{name}"?(?:=|: )"?([^,)"}}\s]*)""")[0].fillna(default)


def defaults(name: str) -> dict[str, Any]:
    """Parameters of a mechanism or policy with their defaults, by its name; empty if it is not installed."""
    kind: Any = ({**POLICIES, **REGISTRY}).get(re.sub(r"^\w+:|\*$", "", name))
    return {} if kind is None else {one.name: one.default for one in fields(kind) if one.default is not MISSING}


def with_means(
    table: pd.DataFrame, cells: pd.DataFrame, by: list[str], names: Mapping[str, str], level: float = 0.95,
    medians: bool = False,
) -> pd.DataFrame:  # fmt: skip
    """Append to a table the means or medians of columns of cells by group, under new names.

    Half-widths of intervals of means follow, unless the values are equal in every group, and ends of intervals of
    medians, which need six values, if a group has six. A column without any value is left out.
    """
    for measure, name in names.items():
        of = cells.dropna(subset=[measure])
        if of.empty:
            continue
        if medians:
            made = named_medians(of, by, measure, name, level)
            ends = [f"{name} low", f"{name} high"] if made[f"{name} low"].isna().all() else []
        else:
            end = f"+- {name}"
            made = interval(of, by, measure, level).rename(columns={"mean": name, "half": end})
            made[end] = made[end].mask(made[end] <= 1e-12 * made[name].abs(), 0.0)  # rounding errors of equal values
            ends = [] if made[end].gt(0).any() else [end]
        table = table.merge(made.drop(columns=["n", *ends]), on=by, how="left")
    return table


def named_medians(
    cells: pd.DataFrame, by: list[str], measure: str, name: str = "", level: float = 0.95
) -> pd.DataFrame:
    """`median_interval` with columns `name`, by default that of the measure, `name low` and `name high`."""
    names = {"median": "", "low": " low", "high": " high"}
    found = median_interval(cells, by, measure, level)
    return found.rename(columns={key: f"{name or measure}{end}" for key, end in names.items()})


def reached(found: StoredCells) -> pd.DataFrame:
    """Medians of convergence by game and residual `level`, over `n` draws; in `there` draws the residual falls to it.

    `rounds`, `messages` and `seconds` are medians over all draws until the residual stays at or below `level`, infinite
    if it does so in fewer than half of the draws; `rounds low`, `rounds high`, `seconds low` and `seconds high` are the
    ends of 95% confidence intervals. Games whose tolerance is larger than a level are excluded at this level.

    >>> import fairopt as fo
    >>> fo.report.reached(fo.report.Results().of("convergence"))  # doctest: +SKIP
    """
    games = found.long("reached")
    games = games[games["level"] >= games["tol"] * (1 - 1e-9)]
    by = [*_GAME, "level"]
    if games.empty:
        return games[by]
    games = games.assign(there=games["rounds"].notna())
    counted = games.groupby(by, sort=False, dropna=False).agg(n=("key", "size"), there=("there", "sum")).reset_index()
    for column in ("rounds", "messages", "seconds"):
        late = games.assign(**{column: games[column].astype(float).fillna(np.inf)})
        counted = counted.merge(named_medians(late, by, column).drop(columns="n"), on=by, how="left")
    same = [name for name in ("damping", "tol") if counted[name].nunique(dropna=False) < 2]
    # Intervals of messages are omitted, since messages are a multiple of rounds.
    return counted.drop(columns=["messages low", "messages high", *same])


def median_interval(frame: pd.DataFrame, by: Iterable[str], values: str, level: float = 0.95) -> pd.DataFrame:
    r"""Median of a column by group, with the distribution-free confidence interval between order statistics.

    The interval is `[x_(k), x_(n+1-k)]` of the n sorted values, with k maximal such that

    .. math:: 2 P(B < k) \le 1 - \text{level}, \quad B \sim \text{Binomial}(n, 1/2)

    For n = 20 at 95% the ends are the 6th and the 15th value. Values may be infinite, but not missing.

    Parameters
    ----------
    frame : DataFrame
        One row per observation.
    by : iterable of str
        Columns that define groups.
    values : str
        Column of the values.
    level : float
        Least probability that the interval covers the median, in (0, 1).

    Returns
    -------
    DataFrame
        One row per group in order of appearance: the group, `median`, `low`, `high` (NaN for fewer than 6 values, at
        95%), `n`.

    Raises
    ------
    KeyError
        The frame lacks a column.
    DataError
        The level is not in (0, 1).

    Source: W. R. Thompson, "On confidence ranges for the median", Annals of Mathematical Statistics 7 (1936),
    doi:10.1214/aoms/1177732502.

    >>> import fairopt as fo
    >>> import pandas as pd
    >>> draws = pd.DataFrame({"mechanism": "drf", "rounds": [3, 1, 2, 6, 5, 4]})
    >>> fo.report.median_interval(draws, ["mechanism"], "rounds").to_numpy().tolist()
    [['drf', 3.5, 1.0, 6.0, 6]]
    """
    check_level(level)
    keys = list(by)
    rows = []
    for group, of in frame.groupby(keys, sort=False, dropna=False)[values]:
        x = np.sort(of.to_numpy(dtype=float))
        k = int(stats.binom.ppf((1 - level) / 2, len(x), 0.5))  # the least k with P(B <= k) >= (1 - level) / 2
        low, high = (x[k - 1], x[len(x) - k]) if k else (np.nan, np.nan)
        rows.append((*group, float(np.median(x)), low, high, len(x)))
    return pd.DataFrame(rows, columns=[*keys, "median", "low", "high", "n"])


def manifest(
    paper: str, experiments: Iterable[str], results: Results, files: Iterable[Path], folder: Path,
    verdicts: Mapping[str, int], seconds: Mapping[str, float],
) -> dict[str, Any]:  # fmt: skip
    """Manifest of a reproduced paper as a JSON value: experiments, claims, and digests of all files.

    Parameters
    ----------
    paper : str
    experiments : iterable of str
        Names.
    results : Results
    files : iterable of Path
        Files below `folder`.
    folder : Path
    verdicts : mapping
        Numbers of claims by verdict.
    seconds : mapping
        Seconds by step.
    """
    return {
        "format": FORMAT,
        "paper": paper,
        "tiny version": results.smoke,
        "code": provenance()
        | {
            "versions": dict(solvers.versions()),
            "commit": provenance()["commit"] or f"unknown, version {__version__}",
        },
        "experiments": {name: _experiment(name, results) for name in experiments},
        "claims": dict(verdicts),
        "seconds": {step: round(value, 2) for step, value in seconds.items()},
        "files": {path.relative_to(folder).as_posix(): _digest(path) for path in sorted(files)},
    }


def _experiment(name: str, results: Results) -> dict[str, Any]:
    """Entry of an experiment: digests of its file and of its data by source, seed, and counts of cells."""
    chosen, found = load(name, results.smoke), results.of(name)
    cells = found.cells
    data = cells[["source", "data", "digest"]].drop_duplicates().sort_values(["source", "digest"])
    return {
        "file": _digest(chosen.document.path),
        "seed": chosen.seed,
        "cells": {str(status): int(count) for status, count in cells["status"].value_counts().items()},
        "failed": len(found.failed),
        "code": sorted(set(cells["code"].dropna())),
        "data": data.astype(object).where(data.notna(), None).to_dict("records"),
        "notes": list(found.notes),
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
