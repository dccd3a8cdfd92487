"""`Solve`: a mechanism on a cluster, in one way, and the row of numbers that comes of it."""

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
from ..model.cluster import Cluster
from ..result.allocation import Allocation, Trace
from ..study import metrics
from ..study.compare import pooled
from . import code, origin
from .cell import Cell, Named, Row
from .origin import Origin
from .schema import CELLS, Schema

#: The engine of games that is played, round by round, and leaves a trace; the one that `solve` takes on the cluster,
#: and those that stand in for it.
PLAYED, DEFAULT = "best-response", "default"
#: What a cell may measure besides its row, the usual first.
MEASURES = ("utilization", "convergence", "classes", "price_of_fairness", "tasks", "times", "crossings", "violations")
#: What `violations` is about, and how many lies it tries.
VIOLATED = (
    "strategy-proofness",
    "pareto-optimality",
    "population-monotonicity",
    "sharing-incentive",
    "envy-freeness",
)
LIES = 60
#: The smallest cluster on which every mechanism has something to do.
TINY = Cluster([[9, 18], [12, 6]], [[1, 4], [3, 1], [2, 2]])
#: What a row has of the summary as columns; other measures are in the table `measured`, where they are asked for.
_COLUMNS = ("tasks", "min_share", "max_share", "utilization", "jain", "welfare")
#: More classes than this are not classes; larger tables of tasks are not kept.
_MOST_CLASSES, _MOST_TASKS = 64, 10_000
#: Names, engines and orders that have answered in this process.
_WARM: set[tuple[str, str, str]] = set()


@dataclass(frozen=True)
class Solve:
    """A mechanism and how it is solved; `order` and what follows but `tol` are of games that are played."""

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
        """True if the order of the game is random."""
        return self.order in ("random", "asynchronous")

    @property
    def fields(self) -> Row:
        """Fields of the question."""
        return {"mechanism": self.what.text} | {name: value for name, value in vars(self).items() if name != "what"}

    @property
    def asked(self) -> Row:
        """Columns of a row."""
        asked, name = self.fields, self.what.made.name
        options = {option: asked.pop(option) for option in ("max_rounds", "residuals")}
        alpha = math.inf if name == "ps-dsf" else getattr(self.what.made, "alpha", None)
        return asked | {"name": name, "alpha": alpha, "order": self.order or None, "options": options}

    def code(self, measures: tuple[str, ...]) -> str:
        """The digest of what solves, of the mechanism, and of what measures violations."""
        rooms = code.VIOLATIONS if "violations" in measures else ()
        return code.of(type(self.what.made), *code.solving(), *rooms)

    def warm(self) -> None:
        """Solve a tiny cluster, once in a process for every kind."""
        kind = (self.what.made.name, self.engine, self.order)
        if kind not in _WARM:
            _WARM.add(kind)
            with suppress(FairoptError):
                self.allocation(TINY, np.random.default_rng(0))

    def allocation(self, cluster: Cluster, rng: np.random.Generator) -> Allocation:
        """The answer on a cluster."""
        mechanism = self.what.made
        if self.engine != PLAYED:
            engine = None if self.engine == DEFAULT else self.engine
            return mechanism.solve(cluster, self.tol, engine=engine, throw=False)
        found = best_response(
            cluster, float(getattr(mechanism, "alpha", math.inf)), order=self.order, damping=self.damping, tol=self.tol,
            max_rounds=self.max_rounds, rng=rng, throw=False,
        )  # fmt: skip
        if found.trace is not None and found.trace.reason.startswith("interrupted"):
            raise KeyboardInterrupt  # half a game is not a result
        return found

    def answer(self, cell: Cell, traces: str | None) -> Row:
        """Columns of a row."""
        begun = clock.now()
        cluster, about = origin.cluster(cell.origin, cell.seed, cell.repetition, traces)
        drawing = clock.now() - begun
        if "times" in cell.measures:
            self.allocation(cluster, cell.rng())  # what has to be compiled is, so that the next one shows what it takes
        watch = clock.Watch()
        found = self.allocation(cluster, cell.rng())
        took = {"seconds": watch.cpu, "wall": watch.seconds}
        begun = clock.now()
        row = measured(cell, cluster, found) | {"about": about, "drawing": drawing} | took
        if "price_of_fairness" in cell.measures:
            row["price_of_fairness"] = 1 - row["welfare"] / _efficient(cell.origin, cell.seed, cell.repetition, traces)
        return row | {"measuring": clock.now() - begun}


def jobs(values: Mapping[str, tuple[Any, ...]]) -> Iterator[Solve]:
    """Every way of a grid to solve a cluster: values where they make a difference.

    Raises
    ------
    DataError
        `where` is the key of what a mechanism cannot do.
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
    """One mechanism each: names that take an alpha get all of those of the grid."""
    for text in texts:
        kinds = mechanisms.parse(text)
        if alphas and "(" not in text and any(field.name == "alpha" for field in dataclasses.fields(kinds[0])):
            kinds = tuple(mechanisms.get(kinds[0].name, alpha=float(alpha)) for alpha in alphas)
        yield from map(named, kinds)


def named(mechanism: Mechanism) -> Named[Mechanism]:
    """A mechanism with its text."""
    return Named(written(mechanism), mechanisms.one)


def measure(name: str) -> str:
    """A measure, and what the file of its plug-in held: another file is another measure."""
    made_by = metrics.KNOWN.get(name) if name not in MEASURES else None
    digest = "" if made_by is None else plugins.digest_of(made_by.__module__)
    return f"{name}@{digest}" if digest else name


def measured(cell: Cell, cluster: Cluster, found: Allocation) -> Row:
    """The columns of a row, and its long tables, that say what an answer is like."""
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
    """The largest welfare of the cluster, for the price of fairness."""
    return metrics.social_welfare(Utilitarian().solve(origin.cluster(source, seed, repetition, traces)[0]))


def use(found: Allocation, classes: bool = True) -> list[Row]:
    """Used part per resource: class `all`, and each class of servers with the same capacities, which name it.

    Classes are left out where there are more than 64. `capacity` is that of one server, and for `all` of the cluster.
    """
    cluster = found.cluster
    groups = [("all", len(cluster.servers), cluster.pooled_capacity.tolist(), found.arrays.utilization.tolist())]
    if classes:
        alike: dict[tuple[float, ...], list[int]] = {}
        for i, amounts in enumerate(cluster.capacity.tolist()):
            alike.setdefault(tuple(amounts), []).append(i)
        part = found.arrays.used_parts
        for capacity, of in alike.items() if len(alike) <= _MOST_CLASSES else ():
            name = " x ".join([f"{amount:.10g}" for amount in capacity])  # the same in every draw
            groups.append((name, len(of), [*capacity], (part[of].sum(axis=0) / len(of)).tolist()))  # equally large
    return [
        {"class": name, "servers": servers, "resource": resource, "capacity": amount,
         "utilization": None if math.isnan(used) else used}
        for name, servers, amounts, parts in groups
        for resource, amount, used in zip(cluster.resources, amounts, parts, strict=True)
    ]  # fmt: skip


def _reached(trace: Trace, levels: tuple[float, ...]) -> list[Row]:
    """Rounds, messages and seconds until the residual stays at or below each level; None where it does not."""
    rows: list[Row] = []
    for level in levels:
        rounds = trace.rounds_to(level)
        at = {} if rounds is None else trace.frame.loc[rounds, ["messages", "seconds"]].to_dict()
        rows.append({"level": level, "rounds": rounds, "messages": None, "seconds": None} | at)
    return rows


def _violations(mechanism: Mechanism, cluster: Cluster, rng: np.random.Generator) -> list[Row]:
    """Violations by property, the largest over `LIES` misreports and over leaving users."""
    from ..properties import report  # imports much that other cells do without

    frame = report(mechanism, cluster, VIOLATED, changes=LIES, rng=rng)
    return [{"measure": name, "value": float(value)} for name, value in frame["violation"].items()]


def crossings(mechanism: Mechanism, cluster: Cluster) -> list[Row]:
    """Every time that the curve of equilibria through alpha = 1 has this alpha: tasks of users, and the index.

    The first is where a path from alpha = 1 comes to, the last where one comes to that begins beyond: folds count that
    begin before twice alpha (below 1: after half of it). Where they differ there is hysteresis.
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
    """Tasks of every user on every server; of large clusters per user only, as server `all`."""
    servers, tasks = found.cluster.servers, found.tasks
    if tasks.size > _MOST_TASKS:
        servers, tasks = ("all",), found.arrays.user_tasks[:, None]
    return [{"user": user, "server": server, "tasks": number}
            for user, row in zip(found.cluster.users, tasks.tolist(), strict=True)
            for server, number in zip(servers, row, strict=True)]  # fmt: skip
