"""What a cell does: draw the cluster, solve, measure. Whatever its own code raises, a row comes back."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

from .. import _clock, _plugins
from ..errors import DataError, FairoptError
from ..game.dynamics.distributed import best_response
from ..mechanisms import Mechanism
from ..mechanisms.utilitarian import Utilitarian
from ..model import _files
from ..model.cluster import Cluster
from ..result import metrics
from ..result.allocation import Allocation
from . import code
from ._ends import Elsewhere
from ._values import CROSSINGS, VIOLATIONS
from .cells import DEFAULT, PLAYED, Cell
from .clusters import Origin, build
from .measures import allocated, crossings, curve, measured, reached, use, violations
from .pooled import pooled
from .provenance import provenance
from .warm import TINY

Row = dict[str, Any]

#: What a row has of the summary as columns; other measures are in the table `measured`, where they are asked for.
_COLUMNS = ("tasks", "min_share", "max_share", "utilization", "jain", "welfare", "certificate")
#: Names, engines and orders that have answered in this process.
_WARM: set[tuple[str, str, str]] = set()


def run(cell: Cell, traces: str | None = None, threads: int | None = 1) -> Row:
    """The row of a cell: numbers, or the error. `threads`: of BLAS; None leaves them alone.

    Raises
    ------
    Elsewhere
        This process cannot answer: its code, its data or its plug-ins are other than where the sweep was started.
    """
    _plug_in(cell)
    _check_code(cell)
    watch = _clock.Watch()
    try:
        with _pools().limit(limits=threads):
            _warm_up(cell)
            row = _asked(cell) | _solved(cell, traces)
    except Elsewhere:
        raise
    except Exception as error:  # a row, not the end of a sweep of thousands
        row = failed(cell, error)
    return row | _here(threads) | {"elapsed": watch.seconds, "loops": watch.loops}


def _plug_in(cell: Cell) -> None:
    try:
        _plugins.needed(cell.plugins)
    except DataError as error:
        raise Elsewhere(str(error)) from None


def _check_code(cell: Cell) -> None:
    """Processes that start later, or elsewhere, may have read other files."""
    try:
        here = code.of(type(cell.solver), VIOLATIONS in cell.measures)
    except DataError:
        raise Elsewhere(f"a worker does not know the mechanism {cell.mechanism}: it is defined elsewhere") from None
    if here != cell.code:
        raise Elsewhere(f"a worker on {platform.node()} has other code for {cell.mechanism}; install the same")


def warm_up(cells: Iterable[Cell]) -> None:
    """Compile what processes that begin together would all compile: of the package's own, which is known to end."""
    for cell in cells:
        if cell.engine != "declarative" and type(cell.solver).__module__.startswith("fairopt."):
            _warm_up(cell)


def _warm_up(cell: Cell) -> None:
    """Import and compile what the first answer of a process waits for: seconds of cells do not contain that."""
    kind = (cell.solver.name, cell.engine, cell.order)
    if kind not in _WARM:
        _WARM.add(kind)
        with suppress(FairoptError):
            _solve(cell, TINY)


def failed(cell: Cell, error: BaseException) -> Row:
    """The row of a cell that has only an error."""
    text = _files.unplaced(f"{type(error).__name__}: {' '.join(str(error).split())}")
    return _asked(cell) | _here(None) | {"status": "failed", "error": text}


def _here(threads: int | None) -> Row:
    return provenance() | {"process": os.getpid(), "threads": threads or 0, "finished": datetime.now(UTC)}


def _asked(cell: Cell) -> Row:
    options = {key: getattr(cell, key) for key in ("max_rounds", "residuals", "measures")}
    try:
        alpha = getattr(cell.solver, "alpha", None)
        name: str | None = cell.solver.name
    except Exception:
        name = alpha = None
    return {
        "key": cell.key, "experiment": cell.experiment, "cluster": cell.cluster, "source": cell.origin.named,
        "data": cell.origin.kind, "digest": cell.origin.digest, "seed": cell.seed, "repetition": cell.repetition,
        "mechanism": cell.mechanism, "name": name, "alpha": math.inf if name == "ps-dsf" else alpha,
        "engine": cell.engine, "order": cell.order or None, "damping": cell.damping, "tol": cell.tol,
        "options": json.dumps(options | {"merge": cell.origin.merge} | _plugged(cell), sort_keys=True),
        "question": cell.question, "code": cell.code,
    }  # fmt: skip


def _plugged(cell: Cell) -> dict[str, Any]:
    """The plug-ins of the sweep, by the names of their files, with their digests."""
    return {"plugins": {Path(file).name: digest for file, digest in cell.plugins}} if cell.plugins else {}


def _solved(cell: Cell, traces: str | None) -> Row:
    begun = _clock.now()
    cluster, about = build(cell.origin, cell.seed, cell.repetition, traces)
    drawing = _clock.now() - begun
    if "times" in cell.measures:
        _solve(cell, cluster)  # compiles what has to be compiled, so that the next one shows what it takes
    watch = _clock.Watch()
    found = _solve(cell, cluster)
    took = {"seconds": watch.cpu, "wall": watch.seconds}
    begun = _clock.now()
    row = _measured(cell, cluster, found) | {"about": about, "drawing": drawing} | took
    if "price_of_fairness" in cell.measures:
        row["price_of_fairness"] = 1 - row["welfare"] / _efficient(cell.origin, cell.seed, cell.repetition, traces)
    return row | {"measuring": _clock.now() - begun}


def _solve(cell: Cell, cluster: Cluster) -> Allocation:
    mechanism = cell.solver
    if cell.engine == PLAYED:
        return _play(cell, mechanism, cluster)
    engine = None if cell.engine == DEFAULT else cell.engine
    return mechanism.solve(cluster, cell.tol, engine=engine, throw=False)


def _play(cell: Cell, mechanism: Mechanism, cluster: Cluster) -> Allocation:
    found = best_response(
        cluster,
        float(getattr(mechanism, "alpha", math.inf)),
        order=cell.order,
        damping=cell.damping,
        tol=cell.tol,
        max_rounds=cell.max_rounds,
        rng=cell.rng(),
        throw=False,
    )
    if found.trace is not None and found.trace.reason.startswith("interrupted"):
        raise KeyboardInterrupt  # half a game is not a result
    return found


def _measured(cell: Cell, cluster: Cluster, found: Allocation) -> Row:
    users, servers, resources = cluster.shape
    summary, stats, certificate = found.summary(), found.stats, found.certificate
    row = {name: summary[name] for name in _COLUMNS}
    usable = cluster.eligible.mean() if cluster.constrained else 1.0
    row |= {
        "status": "missed" if found.flagged else "ok", "answered": stats.engine, "pooled": pooled(cluster, found),
        "users": users, "servers": servers, "resources": resources,
        "density": float(usable),
        "feasibility": certificate.feasibility, "optimality": certificate.optimality,
        "judged_by": certificate.measure, "steps": stats.rounds, "solver": stats.solver,
        "solver_status": stats.status, "notes": "; ".join(found.notes), "build": stats.build,
        "compile": stats.compile, "solve": stats.solve, "certify": stats.certify,
    }  # fmt: skip
    if "utilization" in cell.measures:
        row["use"] = use(found, classes="classes" in cell.measures)
    row["measured"] = measured(cell.measures, found)
    if CROSSINGS in cell.measures:
        row["measured"] += crossings(cell.solver, cluster)
    if VIOLATIONS in cell.measures:
        row["measured"] += violations(cell.solver, cluster, cell.rng())
    if "tasks" in cell.measures:
        row["allocated"] = allocated(found)
    if found.trace is not None:
        trace = found.trace
        last = trace.frame.iloc[-1] if len(trace.frame) else {}
        row |= {name: float(last[name]) for name in ("messages", "residual", "exploitability") if len(last)}
        row |= {"rounds": trace.rounds, "stopped": trace.reason, "reached": reached(trace, cell.residuals)}
        if "convergence" in cell.measures:
            row["curve"] = curve(trace)
    return row


@lru_cache(maxsize=4)
def _efficient(source: Origin, seed: int, repetition: int, traces: str | None) -> float:
    """The largest welfare of the cluster, for the price of fairness."""
    return metrics.social_welfare(Utilitarian().solve(build(source, seed, repetition, traces)[0]))


@cache
def _pools() -> ThreadpoolController:
    """The thread pools of this process; looking for them takes longer than a small cell, so it is done once."""
    return ThreadpoolController()
