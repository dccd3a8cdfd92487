"""`sweep`: computation of the cells of an experiment that the store lacks, and plans of this computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import DataError
from ..base.libraries import pa, pd
from . import code, executors, simulate
from .cell import Cell
from .ends import Elsewhere, Interrupted, Stopped
from .experiment import Experiment, cells_of, load
from .schema import CELLS, Schema
from .store import Contents, Packed, Store, Unwritable

#: Default folders of the store, and of a separate store for tiny versions of experiments, which are no results.
STORE = Path("results") / "store"
SMOKE_STORE = Path("results") / "smoke" / "store"


def store_of(store: str | Path | Store | None, smoke: bool, schema: Schema = CELLS) -> Store:
    """Resolve a store, a folder, or None to a `Store`, with a subfolder for each kind of cell.

    Parameters
    ----------
    store : str, Path or Store, optional
        Default: `STORE`, or `SMOKE_STORE` for tiny versions.
    smoke : bool
        Select the default folder of tiny versions.
    schema : Schema
        Kind of cells: allocations (default) or simulations.

    >>> import fairopt as fo
    >>> fo.harness.store_of(None, smoke=True).folder.as_posix()
    'results/smoke/store'
    """
    if isinstance(store, Store):
        return store
    folder = Path(store) if store is not None else SMOKE_STORE if smoke else STORE
    return Store(folder / schema.folder, schema)


@dataclass(frozen=True)
class Matched:
    """Assignment of stored rows to cells.

    Attributes
    ----------
    cells : sequence of Cell
    rows : tuple
        Keys of rows in the order of `cells`, None for cells without a row.
    failed : tuple of str
        Keys of rows that are errors.
    older : tuple of Cell
        Cells whose only results were computed by other code.
    """

    cells: Sequence[Cell]
    rows: tuple[str | None, ...]
    failed: tuple[str, ...]
    older: tuple[Cell, ...]

    @property
    def answered(self) -> dict[str, Cell]:
        """Cells by the keys of their rows, in the order of cells."""
        return {key: cell for key, cell in zip(self.rows, self.cells, strict=True) if key is not None}

    def warning(self, accepted: bool) -> str:
        """Warning about rows of other code; '' if there are none."""
        if not self.older:
            return ""
        text = f"{len(self.older)} of {len(self.cells)} cells were computed by other code"
        return f"{text}, and are taken all the same" if accepted else f"{text} (--accept-older takes them)"


def match(cells: Sequence[Cell], contents: Contents, accept_older: bool = False) -> Matched:
    """Assign stored rows to cells.

    If `accept_older`, the most recent result of other code is assigned to a cell without a result of this code.

    >>> import fairopt as fo
    >>> cells = fo.harness.cells_of(fo.harness.load("pf_example"))
    >>> found = fo.harness.match(cells, fo.harness.Store("no such folder").read())
    >>> len(found.rows), len(found.answered)
    (12, 0)
    """
    table = contents.table.select(["key", "question", "status", "finished"]).to_pandas()
    status = dict(zip(table["key"], table["status"], strict=True))
    good = table[table["status"] != "failed"].sort_values("finished", kind="stable")
    by_question = dict(zip(good["question"], good["key"], strict=True))
    rows: list[str | None] = []
    older = []
    for cell in cells:
        other = None if status.get(cell.key, "failed") != "failed" else by_question.get(cell.question)
        if other is not None:
            older.append(cell)
        mine = cell.key if cell.key in status else None
        rows.append(other if accept_older and other is not None else mine)
    failed = tuple(key for key in rows if key is not None and status[key] == "failed")
    return Matched(cells, tuple(rows), failed, tuple(older))


@dataclass(frozen=True)
class Plan:
    """Plan of a sweep: all cells of the experiment, the cells to compute, and an estimate of the time.

    >>> import fairopt as fo
    >>> plan = fo.harness.plan("pf_example", store="no such folder")
    >>> isinstance(plan, fo.harness.Plan), plan.failed, plan.damaged
    (True, (), ())
    """

    experiment: Experiment
    store: Store
    cells: Sequence[Cell]
    missing: Sequence[Cell]
    matched: Matched
    contents: Contents

    @property
    def failed(self) -> tuple[str, ...]:
        """Keys of cells whose stored row is an error."""
        return self.matched.failed

    @property
    def damaged(self) -> tuple[str, ...]:
        """Messages about rows that cannot be read."""
        return tuple(
            f"not read: row {key}, damaged on the disk; its cell is computed again" for key in self.contents.damaged
        )

    def seconds(self) -> tuple[float, int]:
        """Estimate the sequential time of the missing cells in seconds, and the number of cells without an estimate.

        The estimate is the mean over stored cells of the same mechanism or policy and source.
        """
        past = self.contents.frame()
        past = past[past["status"] != "failed"]
        mean = past.groupby(["source", "name"])["elapsed"].mean().to_dict()
        asked = [cell.requested for cell in self.missing]
        known = [mean[key] for row in asked if (key := (row["source"], row["name"])) in mean]
        return sum(known), len(asked) - len(known)


def plan(
    experiment: str | Path | Experiment,
    *,
    store: str | Path | Store | None = None,
    smoke: bool = False,
    retry: bool = False,
    accept_older: bool = False,
    traces: str | None = None,
) -> Plan:
    """Plan a sweep, given arguments of `sweep`, without computing or storing anything.

    Raises
    ------
    DataError
        The experiment file is invalid (with key and line), or the store cannot be read.

    >>> import fairopt as fo
    >>> plan = fo.harness.plan("pf_example", store="no such folder")
    >>> len(plan.cells), len(plan.missing)
    (12, 12)
    """
    chosen = load(experiment, smoke) if isinstance(experiment, str | Path) else experiment
    store = store_of(store, chosen.smoke, chosen.schema)
    contents, every = store.read(), cells_of(chosen, traces)
    matched = match(every, contents, accept_older)
    again = set(matched.failed) if retry else set()
    missing = [cell for cell, row in zip(every, matched.rows, strict=True) if row is None or row in again]
    return Plan(chosen, store, every, missing, matched, contents)


def sweep(
    experiment: str | Path | Experiment,
    *,
    store: str | Path | Store | None = None,
    smoke: bool = False,
    retry: bool = False,
    accept_older: bool = False,
    traces: str | None = None,
    jobs: int = 1,
    executor: Executor | None = None,
    threads: int | None = 1,
    progress: bool = True,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Compute the missing cells of an experiment and return its rows, one per cell (`docs/experiments.md`).

    Parameters
    ----------
    experiment : str, Path or Experiment
        Name (`experiments/NAME.toml`), file, or object.
    store : str, Path or Store, optional
        Folder of the store. Default: `results/store`, and `results/smoke/store` for tiny versions.
    smoke : bool
        Compute the tiny version of the experiment.
    retry : bool
        Compute failed cells again.
    accept_older : bool
        Accept stored results of other code of fairopt or of the mechanism.
    traces : str, optional
        Folder of the traces, which workers must find under the same name. Default: FAIROPT_TRACES.
    jobs : int
        Number of processes; with an executor, the number of cells that it computes at once.
    executor : concurrent.futures.Executor, optional
        Executor in place of local processes: of MPI, or of a Dask cluster, `Client(ADDRESS).get_executor(pure=False)`.
    threads : int, optional
        Threads of linear algebra per process; None leaves them unchanged, and results may then differ in rounding.
    progress : bool
        Show a progress bar.
    say : callable, optional
        Receives messages about damaged rows, and about results of other code.

    Returns
    -------
    DataFrame
        One row per cell, in the order of the experiment.

    Raises
    ------
    DataError
        The experiment file is invalid, or the store cannot be read.
    Stopped, Elsewhere
        The sweep ended early. Finished cells are stored, and a repeated call continues; the message says so.
    Interrupted
        The sweep was interrupted by Ctrl-C; finished cells are stored, and a repeated call continues.

    >>> import fairopt as fo
    >>> fo.harness.sweep("pf_example", jobs=2)  # doctest: +SKIP
    """
    planned = plan(experiment, store=store, smoke=smoke, retry=retry, accept_older=accept_older, traces=traces)
    lines = [*planned.damaged]
    if older := planned.matched.warning(accept_older):
        lines.append(f"{planned.experiment.name}: {older}")
    for line in lines:
        if say is not None:
            say(line)
    found = planned.contents
    if planned.missing:
        alone = executors.serial if jobs == 1 else executors.processes(jobs)
        execute = alone if executor is None else executors.on(executor, jobs)
        todo = executors.works(planned.cells, [cell.key for cell in planned.missing])
        found = found.followed_by(_compute(planned, execute(todo, traces, threads), progress))
    return found.frame(match(planned.cells, found, accept_older).answered)


def _compute(planned: Plan, batches: Iterator[Packed], progress: bool) -> list[pa.Table]:
    """Store rows as they are computed, and return them; an exception that ends the sweep states what is stored.

    The exceptions are `Interrupted`, `Stopped` and `Elsewhere`.
    """
    from ..base.progress import tqdm

    every, name, tables, store = len(planned.cells), planned.experiment.name, [], planned.store
    bar = tqdm(total=every, initial=every - len(planned.missing), desc=name, unit="cell", disable=not progress)
    try:
        with store, bar, closing(batches):  # type: ignore[type-var]
            for rows in batches:
                store.write(rows)
                tables.append(rows.table)
                bar.update(len(rows))
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: {_stored_message(planned)}") from None
    except Unwritable as error:
        raise Stopped(f"cannot write to {store.folder}: {error}; {_stored_message(planned)}") from None
    except (Stopped, Elsewhere) as error:
        raise type(error)(f"{error}; {_stored_message(planned)}") from None
    return tables


def _stored_message(planned: Plan) -> str:
    store, every, missing = planned.store, len(planned.cells), planned.missing
    stored = set(store.read().table.column("key").to_pylist())
    there = every - len(missing) + sum(cell.key in stored for cell in missing)
    return (
        f"{there} of {every} cells of {planned.experiment.name} are stored in {store.folder}; "
        "the same command again goes on from there"
    )


def by_this_code(frame: pd.DataFrame) -> list[bool]:
    """List for each row of a store whether the present code computed it.

    >>> import fairopt as fo
    >>> fo.harness.by_this_code(fo.harness.Store("no such folder").read().frame())
    []
    """
    from .. import mechanisms

    if "policy" in frame:
        return [_digest(policy) == made_by for policy, made_by in zip(frame["policy"], frame["code"], strict=True)]
    rooms = [code.VIOLATIONS if '"violations"' in str(options) else () for options in frame["options"]]
    return [(kind := mechanisms.REGISTRY.get(name)) is not None and code.of(kind, *code.solving(), *more) == made_by
            for name, more, made_by in zip(frame["name"], rooms, frame["code"], strict=True)]  # fmt: skip


def _digest(policy: str) -> str | None:
    """Digest of a policy's code; None if it is not installed."""
    try:
        return simulate.Simulate.of(policy, None, None, "raise", None).code(())
    except DataError:
        return None
