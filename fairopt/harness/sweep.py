"""`sweep`: compute the cells of an experiment that the store does not have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import FairoptError
from . import executors
from .cells import Cell, cells
from .experiment import Experiment, load
from .store import Contents, Damage, Store

#: Where cells are stored unless told otherwise.
STORE = Path("results") / "store"


class Interrupted(FairoptError):
    """Somebody pressed Ctrl-C; what was finished is stored."""


@dataclass(frozen=True)
class Plan:
    """What a sweep would do: all cells of the experiment, those to compute, and how long that may take."""

    experiment: Experiment
    cells: list[Cell]
    missing: list[Cell]
    failed: list[str]
    damaged: tuple[Damage, ...]
    contents: Contents

    def seconds(self) -> tuple[float, int]:
        """Estimated seconds for the missing cells, one after another, and for how many of them there is no estimate.

        A cell takes as long as those of the same mechanism, engine and order in the store did on average, of the same
        source before others.
        """
        past = self.contents.frame()
        past = past[past["status"] != "failed"]
        total, unknown = 0.0, 0
        means = [
            past.groupby(keys, dropna=False)["elapsed"].mean().to_dict()
            for keys in (["source", "mechanism", "engine", "order"], ["source", "name", "engine"], ["name", "engine"])
        ]
        for cell in self.missing:
            name, order = cell.solver.name, cell.order or None
            like = [(cell.origin.text, cell.mechanism, cell.engine, order), (cell.origin.text, name, cell.engine)]
            known = [mean[key] for mean, key in zip(means, [*like, (name, cell.engine)], strict=True) if key in mean]
            total, unknown = total + (known[0] if known else 0.0), unknown + (not known)
        return total, unknown


def plan(
    experiment: str | Path | Experiment,
    *,
    store: str | Path | Store = STORE,
    smoke: bool = False,
    retry: bool = False,
    traces: str | None = None,
) -> Plan:
    """What `sweep` would do with the same arguments; nothing is computed and nothing changed.

    Raises
    ------
    DataError
        A bad experiment file, with key and line; a bad store.
    """
    chosen = experiment if isinstance(experiment, Experiment) else load(experiment, smoke)
    contents = (store if isinstance(store, Store) else Store(Path(store))).read()
    every = cells(chosen, traces)
    status = dict(zip(*(contents.table.column(name).to_pylist() for name in ("key", "status")), strict=True))
    keys = [cell.key for cell in every]
    failed = [key for key in keys if status.get(key) == "failed"]
    again = set(failed) if retry else set()
    missing = [cell for cell, key in zip(every, keys, strict=True) if key not in status or key in again]
    return Plan(chosen, every, missing, failed, contents.damaged, contents)


def sweep(
    experiment: str | Path | Experiment,
    *,
    store: str | Path | Store = STORE,
    smoke: bool = False,
    retry: bool = False,
    traces: str | None = None,
    jobs: int = 1,
    dask: str | None = None,
    threads: int | None = 1,
    progress: bool = True,
    say: Callable[[str], None] | None = None,
) -> pd.DataFrame:
    """Compute what is missing and return the experiment's rows, one per cell: `docs/experiments.md` has the columns.

    Parameters
    ----------
    experiment : a name (`experiments/NAME.toml`), a file, or an `Experiment`
    store : the folder of the store
    smoke : the tiny version of the experiment
    retry : compute failed cells again
    traces : folder of the real traces; default: FAIROPT_TRACES. Dask workers must find it under the same name
    jobs : processes of this machine
    dask : address of a Dask scheduler, such as `tcp://HOST:8786`, whose workers do it instead
    threads : threads of linear algebra in each process; None leaves them alone, and results may then differ in bits
    progress : show a progress bar
    say : told of damaged parts

    Raises
    ------
    DataError, FairoptError
    Interrupted
        Ctrl-C: what is finished is stored, and the same call goes on.
    """
    store = store if isinstance(store, Store) else Store(Path(store))
    planned = plan(experiment, store=store, smoke=smoke, retry=retry, traces=traces)
    for damage in planned.damaged:
        if say is not None:
            say(f"not read: {damage}" + ("; its cells are computed again" if damage.ours else ""))
    store.set_aside(planned.damaged)
    execute = executors.dask(dask) if dask else executors.serial if jobs == 1 else executors.processes(jobs)
    if planned.missing:
        _compute(planned, store, execute, traces, threads, progress)
    return store.read().frame([cell.key for cell in planned.cells])


def _compute(
    planned: Plan, store: Store, execute: executors.Executor, traces: str | None, threads: int | None, progress: bool
) -> None:
    from .._progress import tqdm

    name, finished = planned.experiment.name, len(planned.cells) - len(planned.missing)
    bar = tqdm(total=len(planned.cells), initial=finished, desc=name, unit="cell", disable=not progress)
    try:
        with bar, closing(execute(planned.missing, traces, threads)) as batches:  # type: ignore[type-var]
            for rows in batches:
                store.write(rows)
                finished += len(rows)
                bar.update(len(rows))
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted: {finished} of {len(planned.cells)} cells of {name} are stored in {store.folder}; "
            "the same command again goes on from there"
        ) from None
    finally:
        store.gather()
