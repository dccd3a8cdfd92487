"""`Solve`: jobs of cells that solve a mechanism on a cluster, and their rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np

from .. import mechanisms
from ..base import clock, plugins
from ..base.errors import DataError, FairoptError, SolverError
from ..game.best_responses import best_response
from ..game.two_sided import equilibrium_curve
from ..mechanisms import Mechanism
from ..mechanisms._label import written
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..mechanisms.utilitarian import Utilitarian
from ..model._arrays import Array
from ..model.cluster import Cluster
from ..result.allocation import Allocation, Trace
from ..study import metrics
from ..study.compare import pooled
from . import code, origin
from .cell import Cell, Named, Row
from .origin import Origin
from .schema import CELLS, Schema

#: Names of engines: `PLAYED` runs best responses and records every round; `DEFAULT` leaves the choice of engines and
#: fallbacks to `Mechanism.solve`.
PLAYED, DEFAULT = "best-response", "default"
#: Optional measures of a cell; a grid that names no measures has the first three.
MEASURES = (
    "utilization", "convergence", "classes", "price_of_fairness", "tasks", "times", "crossings", "violations", "churn",
)  # fmt: skip
#: `VIOLATED`: properties whose violations the measure `violations` determines. `MISREPORTS`: number of misreports that
#: the measure tries.
VIOLATED = (
    "strategy-proofness",
    "pareto-optimality",
    "population-monotonicity",
    "sharing-incentive",
    "envy-freeness",
    "per-server-bottleneck-fairness",
)
MISREPORTS = 60
#: Fraction of users who leave and come back in the measure `churn`.
_LEAVING = 0.1
#: Smallest cluster that exercises all mechanisms.
TINY = Cluster([[9, 18], [12, 6]], [[1, 4], [3, 1], [2, 2]])
#: Entries of `Allocation.summary` that are columns of a row; other measures are rows of the long table `measured`.
_COLUMNS = ("tasks", "min_share", "max_share", "utilization", "jain", "welfare")
#: `_MOST_CLASSES`: largest number of server classes that are reported. `_MOST_TASKS`: largest size of a stored table of
#: tasks.
_MOST_CLASSES, _MOST_TASKS = 64, 10_000
#: Mechanisms, engines and orders that this process has run.
_WARM: set[tuple[str, str, str]] = set()


@dataclass(frozen=True)
class Solve:
    """Mechanism and solution parameters; `order`, `damping`, `max_rounds`, `residuals` apply to best responses only."""

    what: Named[Mechanism]
    engine: str
    order: str
    damping: float | None
    tol: float
    max_rounds: int
    residuals: tuple[float, ...]

    schema: ClassVar[Schema] = CELLS

    @property
    def random(self) -> bool:
        """True if the order of best responses is random."""
        return self.order in ("random", "asynchronous")

    @property
    def fields(self) -> Row:
        """Parameters that enter the key of the cell."""
        return {"mechanism": self.what.text} | {name: value for name, value in vars(self).items() if name != "what"}

    @property
    def asked(self) -> Row:
        """Columns of a row that describe the question; `options` has the parameters without a column of their own."""
        asked, name = self.fields, self.what.made.name
        options = {option: asked.pop(option) for option in ("max_rounds", "residuals")}
        alpha = math.inf if name == "ps-dsf" else getattr(self.what.made, "alpha", None)
        return asked | {"name": name, "alpha": alpha, "order": self.order or None, "options": options}

    def code(self, measures: tuple[str, ...]) -> str:
        """Digest of the code of the solvers, of the mechanism, and of the measurement of violations."""
        rooms = code.VIOLATIONS if "violations" in measures else ()
        return code.of(type(self.what.made), *code.solving(), *rooms)

    def warm(self) -> None:
        """Solve a tiny cluster, once per process for each mechanism, engine and order; a failed solve is ignored."""
        kind = (self.what.made.name, self.engine, self.order)
        if kind not in _WARM:
            _WARM.add(kind)
            with suppress(FairoptError):
                self.allocation(TINY, np.random.default_rng(0))

    def allocation(self, cluster: Cluster, rng: np.random.Generator, start: Array | None = None) -> Allocation:
        """Solve a cluster; best responses begin at the tasks `start`, (users, servers).

        Raises `KeyboardInterrupt` if Ctrl-C stopped best responses.
        """
        mechanism: Any = self.what.made
        if self.engine != PLAYED:
            engine = None if self.engine == DEFAULT else self.engine
            return self.what.made.solve(cluster, self.tol, engine=engine, throw=False)
        found = best_response(
            cluster, mechanism=mechanism, order=self.order, damping=self.damping, tol=self.tol,
            max_rounds=self.max_rounds, start=start, rng=rng, throw=False,
        )  # fmt: skip
        if found.trace is not None and found.trace.reason.startswith("interrupted"):
            raise KeyboardInterrupt  # an incomplete game is not a result
        return found

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """Solve, and return the columns of a row that describe the result."""
        watch = clock.Watch()
        cluster, about = origin.cluster(cell.origin, cell.seed, cell.repetition, traces)
        drawing = watch.cpu
        if "times" in cell.measures:
            # A first run compiles all loops, so that the measured run excludes their compilation.
            self.allocation(cluster, cell.rng())
        watch = clock.Watch()
        found = self.allocation(cluster, cell.rng())
        took = {"seconds": watch.cpu, "wall": watch.seconds}
        watch = clock.Watch()
        row = measured(cell, cluster, found) | {"about": about, "drawing": drawing} | took
        if "price_of_fairness" in cell.measures:
            row["price_of_fairness"] = 1 - row["welfare"] / _efficient(cell.origin, cell.seed, cell.repetition, traces)
        return row | {"measuring": watch.cpu}


def jobs(values: Mapping[str, tuple[Any, ...]]) -> Iterator[Solve]:
    """Yield the jobs of a grid, given its values by key; parameters without effect on an engine are ignored.

    Raises
    ------
    DataError
        A mechanism does not support a value; `where` is the key of the grid.
    """
    for what, engine in product(_with_alphas(values["mechanisms"], values["alphas"]), values["engines"]):
        mechanism, played = what.made, engine == PLAYED
        if played and getattr(mechanism, "alpha", math.inf) == 0:
            raise DataError("best responses need alpha > 0; play alpha = 0 with 'equilibrium'", ("alphas",))
        has = mechanism.engines()
        if engine not in (DEFAULT, *has):
            raise DataError(f"{mechanism} has no engine {engine!r}; it has {', '.join(has)}", ("engines",))
        orders, dampings = (values["orders"], values["dampings"]) if played else (("",), ("default",))
        usual = mechanism.tolerance(has[0] if engine == DEFAULT else engine)
        for order, damping, tol in product(orders, dampings, values["tols"]):
            yield Solve(
                what, engine, order, None if damping == "default" else float(damping),
                usual if tol == "default" else float(tol), values["max_rounds"][0] if played else 0,
                tuple(map(float, values["residuals"])) if played else (),
            )  # fmt: skip


def _with_alphas(texts: Iterable[str], alphas: Iterable[float]) -> Iterator[Named[Mechanism]]:
    """Yield the mechanisms of a grid; a mechanism with a free parameter alpha is repeated for each of the alphas."""
    for text in texts:
        kinds = mechanisms.parse(text)
        if alphas and "(" not in text and any(field.name == "alpha" for field in dataclasses.fields(kinds[0])):
            kinds = tuple(mechanisms.get(kinds[0].name, alpha=float(alpha)) for alpha in alphas)
        yield from map(named, kinds)


def named(mechanism: Mechanism) -> Named[Mechanism]:
    """Pair a mechanism with its canonical text."""
    return Named(written(mechanism), mechanisms.one)


def measure(name: str) -> str:
    """Name of a measure, followed by the digest of the plug-in file that defines it, if any."""
    made_by = metrics.KNOWN.get(name) if name not in MEASURES else None
    digest = "" if made_by is None else plugins.digest_of(made_by.__module__)
    return f"{name}@{digest}" if digest else name


def measured(cell: Cell, cluster: Cluster, found: Allocation) -> Row:
    """Columns of a row, and its long tables, that describe an allocation."""
    users, servers, resources = cluster.shape
    mechanism: Any = cell.job.what.made
    asked = cell.measures
    names = [name for text in asked if (name := text.partition("@")[0]) not in MEASURES]
    summary, stats, certificate = found.summary(_COLUMNS), found.stats, found.certificate
    row = {name: summary[name] for name in (*_COLUMNS, "certificate")} | {
        "status": "missed" if found.flagged else "ok", "answered": stats.engine, "pooled": pooled(cluster, found),
        "users": users, "servers": servers, "resources": resources,
        "density": float(cluster.eligible.mean()) if cluster.constrained else 1.0,
        "feasibility": certificate.feasibility, "optimality": certificate.optimality,
        "judged_by": certificate.measure, "steps": stats.rounds, "solver": stats.solver,
        "solver_status": stats.status, "notes": "; ".join(found.notes), "build": stats.build,
        "compile": stats.compile, "solve": stats.solve, "certify": stats.certify,
    }  # fmt: skip
    if "utilization" in asked:
        row["use"] = use(found, classes="classes" in asked)
    row["measured"] = [{"measure": name, "value": float(metrics.KNOWN[name](found))} for name in names]
    if "crossings" in asked:
        row["measured"] += crossings(mechanism, cluster)
    if "violations" in asked:
        row["measured"] += _violations(mechanism, cluster, cell.rng())
    if "churn" in asked and found.trace is not None:
        row["measured"] += _churn(cell.job, cluster, found, cell.rng())
    if "tasks" in asked:
        row["allocated"] = _allocated(found)
    if found.trace is not None:
        trace = found.trace
        last = trace.frame.iloc[-1] if len(trace.frame) else {}
        row |= {name: float(last[name]) for name in ("messages", "residual", "exploitability") if len(last)}
        row |= {
            "rounds": trace.rounds,
            "stopped": trace.reason,
            "reached": _reached(trace, cell.job.fields["residuals"]),
        }
        if "convergence" in asked:
            row["curve"] = list(trace.frame.reset_index().to_dict("records"))
    return row


@lru_cache(maxsize=4)
def _efficient(source: Origin, seed: int, repetition: int, traces: str | None) -> float:
    """Largest alpha-fair welfare of the cluster (alpha = 0), the reference of the price of fairness."""
    return metrics.social_welfare(Utilitarian().solve(origin.cluster(source, seed, repetition, traces)[0]))


def use(found: Allocation, classes: bool = True) -> list[Row]:
    """Rows of utilization by resource: for the class `all`, and for each class of servers, named by its capacities.

    With more than 64 classes of servers, or without `classes`, the rows are those of `all`.
    """
    cluster = found.cluster
    groups = [("all", len(cluster.servers), cluster.pooled_capacity.tolist(), found.arrays.utilization.tolist())]
    if classes:
        alike: dict[tuple[float, ...], list[int]] = {}
        for i, amounts in enumerate(cluster.capacity.tolist()):
            alike.setdefault(tuple(amounts), []).append(i)
        part = found.arrays.used_parts
        for capacity, of in alike.items() if len(alike) <= _MOST_CLASSES else ():
            name = " x ".join([f"{amount:.10g}" for amount in capacity])  # rounded, so that names agree over draws
            # The utilization of a class is the mean over its servers, since their capacities are equal.
            groups.append((name, len(of), [*capacity], (part[of].sum(axis=0) / len(of)).tolist()))
    return [
        {"class": name, "servers": servers, "resource": resource, "capacity": amount,
         "utilization": None if math.isnan(used) else used}
        for name, servers, amounts, parts in groups
        for resource, amount, used in zip(cluster.resources, amounts, parts, strict=True)
    ]  # fmt: skip


def _reached(trace: Trace, levels: tuple[float, ...]) -> list[Row]:
    """Rounds, messages and seconds until the residual stays at or below each level; None if it never does."""
    rows: list[Row] = []
    for level in levels:
        rounds = trace.rounds_to(level)
        at = {} if rounds is None else trace.frame.loc[rounds, ["messages", "seconds"]].to_dict()
        rows.append({"level": level, "rounds": rounds, "messages": None, "seconds": None} | at)
    return rows


def _churn(job: Any, cluster: Cluster, found: Allocation, rng: np.random.Generator) -> list[Row]:
    """Rounds until the residual is at most each level, after a tenth of the users left, and after they returned.

    Each game starts from the tasks of the previous game. The list is empty for a single user.
    """
    users = len(cluster.users)
    stay = np.sort(rng.permutation(users)[max(1, round(_LEAVING * users)) :])
    if not len(stay):
        return []
    left = job.allocation(cluster.select(users=[cluster.users[n] for n in stay]), rng, found.tasks[stay])
    tasks = np.zeros_like(found.tasks)
    tasks[stay] = left.tasks
    rows = []
    for what, again in (("leaving", left), ("joining", job.allocation(cluster, rng, tasks))):
        for at in _reached(again.trace, job.residuals):
            value = math.inf if at["rounds"] is None else float(at["rounds"])
            rows.append({"measure": f"rounds to {power_of_ten(at['level'])} after {what}", "value": value})
    return rows


def power_of_ten(level: float) -> str:
    """Format a residual, such as `1e-6`."""
    return f"{level:.0e}".replace("e-0", "e-")


def _violations(mechanism: Mechanism, cluster: Cluster, rng: np.random.Generator) -> list[Row]:
    """Rows of the largest violation of each property in `VIOLATED`, over `MISREPORTS` misreports and departures."""
    from ..properties import report  # deferred, since other cells do not need it

    frame = report(mechanism, cluster, VIOLATED, changes=MISREPORTS, rng=rng)
    return [{"measure": name, "value": float(value)} for name, value in frame["violation"].items()]


def crossings(mechanism: Mechanism, cluster: Cluster) -> list[Row]:
    """Tasks and indices of all equilibria at the alpha of the mechanism on the curve of equilibria through alpha = 1.

    A path that starts from alpha = 1 arrives at the first of these equilibria, a path from beyond alpha at the last; if
    the two differ, there is hysteresis. The curve is followed to twice alpha (for alpha < 1: to half of alpha), since
    folds beyond alpha may lead back to it.

    Raises
    ------
    DataError
        The mechanism is not alphaPF-VDS at a finite alpha other than 0 and 1.
    SolverError
        The curve could not be followed.
    """
    alpha = mechanism.alpha if isinstance(mechanism, AlphaPFVDS) else np.nan
    if not 0 < alpha < np.inf or alpha == 1:
        raise DataError(
            f"{mechanism} has no crossings: they are those of alphaPF-VDS at finite alpha other than 0 and 1"
        )
    found = equilibrium_curve(cluster, [alpha, alpha * 2 if alpha > 1 else alpha / 2])
    if found.missing:
        raise SolverError(f"the curve of equilibria was {found.missing[0]}")
    rows: list[Row] = []
    for k, one in enumerate(found.crossings(alpha), 1):
        tasks = zip(cluster.users, found.user_tasks(one.user_tasks), strict=True)
        rows += [{"measure": f"crossing {k}: tasks of {user}", "value": float(value)} for user, value in tasks]
        rows.append({"measure": f"crossing {k}: index", "value": float(one.index)})
    return rows


def _allocated(found: Allocation) -> list[Row]:
    """Tasks by user and server; for large clusters by user only, with the server `all`."""
    servers, tasks = found.cluster.servers, found.tasks
    if tasks.size > _MOST_TASKS:
        servers, tasks = ("all",), found.arrays.user_tasks[:, None]
    return [{"user": user, "server": server, "tasks": number}
            for user, row in zip(found.cluster.users, tasks.tolist(), strict=True)
            for server, number in zip(servers, row, strict=True)]  # fmt: skip
