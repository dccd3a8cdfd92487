"""`sweep`: compute the cells of an experiment that the store does not have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
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

#: Where cells are stored unless told otherwise; those of tiny versions, which are no results, by themselves.
STORE = Path("results") / "store"
SMOKE_STORE = Path("results") / "smoke" / "store"


def store_of(store: str | Path | Store | None, smoke: bool, schema: Schema = CELLS) -> Store:
    """A store, or the folder of one; by default the one for results, or for tiny versions. Each kind of cell has a
    folder of its own there."""
    if isinstance(store, Store):
        return store
    folder = Path(store) if store is not None else SMOKE_STORE if smoke else STORE
    return Store(folder / schema.folder, schema)


@dataclass(frozen=True)
class Matched:
    """Cells beside the rows that answer them.

    `rows` are keys in the order of `cells`, None where nothing answers; `failed` of those that have only an error.
    `older` are the cells that no row of this code answers but one of other code does.
    """

    cells: Sequence[Cell]
    rows: tuple[str | None, ...]
    failed: tuple[str, ...]
    older: tuple[Cell, ...]

    @property
    def answered(self) -> dict[str, Cell]:
        """The cell of every row, in the order of cells."""
        return {key: cell for key, cell in zip(self.rows, self.cells, strict=True) if key is not None}

    def warning(self, accepted: bool) -> str:
        """The line about answers of other code; empty if there are none."""
        if not self.older:
            return ""
        text = f"{len(self.older)} of {len(self.cells)} cells were computed by other code"
        return f"{text}, and are taken all the same" if accepted else f"{text} (--accept-older takes them)"


def match(cells: Sequence[Cell], contents: Contents, accept_older: bool = False) -> Matched:
    """Find the row of every cell; of several by other code the last; their errors do not count."""
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
    """Plan of a sweep: all cells of the experiment, those to compute, and the estimated time."""

    experiment: Experiment
    store: Store
    cells: Sequence[Cell]
    missing: Sequence[Cell]
    matched: Matched
    contents: Contents

    @property
    def failed(self) -> tuple[str, ...]:
        """Keys of cells that have only an error."""
        return self.matched.failed

    @property
    def damaged(self) -> tuple[str, ...]:
        """Note on unreadable rows."""
        return tuple(
            f"not read: row {key}, damaged on the disk; its cell is computed again" for key in self.contents.damaged
        )

    def seconds(self) -> tuple[float, int]:
        """Estimated seconds for the missing cells, one after another, and for how many of them there is no estimate.

        A cell takes as long as those of the same mechanism or policy and source in the store did on average.
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
    """Plan of `sweep` with the same arguments; nothing is computed or changed.

    Raises
    ------
    DataError
        A bad experiment file, with key and line; a bad store.
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
    dask: str | None = None,
    threads: int | None = 1,
    progress: bool = True,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Compute what is missing and return the experiment's rows, one per cell: `docs/experiments.md` has the columns.

    Parameters
    ----------
    experiment : a name (`experiments/NAME.toml`), a file, or an `Experiment`
    store : the folder of the store; default: `results/store`, and `results/smoke/store` for tiny versions
    smoke : the tiny version of the experiment
    retry : compute failed cells again
    accept_older : take answers of other code of fairopt or of the mechanism for those of this code
    traces : folder of the real traces; default: FAIROPT_TRACES. Dask workers must find it under the same name
    jobs : processes of this machine; of an executor how many cells it computes at once
    executor : who does it instead, as `concurrent.futures` has them: processes of MPI, or of a cluster by a client of
        Dask, `Client(ADDRESS).get_executor(pure=False)`
    dask : deprecated: the address of a Dask scheduler; give `executor`
    threads : threads of linear algebra in each process; None leaves them alone, and results may then differ in bits
    progress : show a progress bar
    say : told of damaged rows, and of answers of other code

    Raises
    ------
    DataError, FairoptError
        What is finished is stored, and the same call goes on; the message says both.
    Interrupted
        Ctrl-C: the same.
    """
    planned = plan(experiment, store=store, smoke=smoke, retry=retry, accept_older=accept_older, traces=traces)
    lines = [*planned.damaged]
    if older := planned.matched.warning(accept_older):
        lines.append(f"{planned.experiment.name}: {older}")
    for line in lines:
        if say is not None:
            say(line)
    if dask is not None:
        warnings.warn("sweep(dask=ADDRESS) is sweep(executor=Client(ADDRESS).get_executor(pure=False), jobs=WORKERS)",
                      DeprecationWarning, stacklevel=2)  # fmt: skip
    found = planned.contents
    if planned.missing:
        with ExitStack() as stack:
            if dask is not None:
                executor, jobs = stack.enter_context(executors.dask(dask))
            alone = executors.serial if jobs == 1 else executors.processes(jobs)
            execute = alone if executor is None else executors.on(executor, jobs)
            todo = executors.works(planned.cells, [cell.key for cell in planned.missing])
            found = found.followed_by(_compute(planned, execute(todo, traces, threads), progress))
    return found.frame(match(planned.cells, found, accept_older).answered)


def _compute(planned: Plan, batches: Iterator[Packed], progress: bool) -> list[pa.Table]:
    """Store what is computed, and return it; whatever ends it early says what is there."""
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
        raise Interrupted(f"interrupted: {_kept(planned)}") from None
    except Unwritable as error:
        raise Stopped(f"cannot write to {store.folder}: {error}; {_kept(planned)}") from None
    except (Stopped, Elsewhere) as error:
        raise type(error)(f"{error}; {_kept(planned)}") from None
    return tables


def _kept(planned: Plan) -> str:
    store, every, missing = planned.store, len(planned.cells), planned.missing
    stored = set(store.read().table.column("key").to_pylist())
    there = every - len(missing) + sum(cell.key in stored for cell in missing)
    return (
        f"{there} of {every} cells of {planned.experiment.name} are stored in {store.folder}; "
        "the same command again goes on from there"
    )


def by_this_code(frame: pd.DataFrame) -> list[bool]:
    """Was each row of a store computed by the code that is here now?"""
    from .. import mechanisms

    if "policy" in frame:
        return [_digest(policy) == made_by for policy, made_by in zip(frame["policy"], frame["code"], strict=True)]
    rooms = [code.VIOLATIONS if '"violations"' in str(options) else () for options in frame["options"]]
    return [(kind := mechanisms.REGISTRY.get(name)) is not None and code.of(kind, *code.solving(), *more) == made_by
            for name, more, made_by in zip(frame["name"], rooms, frame["code"], strict=True)]  # fmt: skip


def _digest(policy: str) -> str | None:
    """Digest of a policy's code; none if it is not installed."""
    try:
        return simulate.Simulate.of(policy, None, None, "raise", None).code(())
    except DataError:
        return None
