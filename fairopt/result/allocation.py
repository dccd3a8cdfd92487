"""`Allocation`: tasks with everything needed to judge them, show them and go on with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from ..base import clock, plugins
from ..base.errors import DataError
from ..base.libraries import pd
from ..base.names import apart, listed
from ..certificates import ByCriterion, Certificate, blocking, feasible
from ..model import _frames, _validate
from ..model._arrays import Array, Frozen, deferred
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..model.merging import Split
from . import _show, allocation_file, metrics
from .allocation_file import StatedAnswer
from .arrays import Arrays

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .sensitivity import Sensitivity

Judge = Callable[[Cluster, Array, Array | None], tuple[Certificate, Array | None]]  # of tasks and log prices


@dataclass(frozen=True)
class Stats:
    """Engine, solver and its status (reported, not believed), seconds and versions of an answer.

    `compile` is what CVXPY took. Seconds do not contain what a process does once, compiling or loading loops and
    importing libraries: `loops` is that.
    """

    engine: str
    solver: str
    status: str
    rounds: int
    build: float
    compile: float
    solve: float
    certify: float
    versions: dict[str, str] = field(default_factory=dict)
    loops: float = 0.0

    @property
    def total(self) -> float:
        """Seconds in all, without `loops`."""
        return self.build + self.compile + self.solve + self.certify


@dataclass(frozen=True, eq=False)
class Trace:
    """Rounds of best responses.

    Attributes
    ----------
    frame : one row per round
        `residual`: largest change that a response asked for in the round, relative to the user's tasks;
        `exploitability`: as certificates define it, at the prices that servers last announced; `utilization`: used
        part of all capacity, averaged over resources; `seconds` of the processor, `messages` and `numbers` in them so
        far.
    reason : why it stopped, and what to change
    order : in which servers responded
    """

    frame: pd.DataFrame
    reason: str
    order: str = "cyclic"

    @property
    def rounds(self) -> int:
        """Rounds in all."""
        return len(self.frame)

    def rounds_to(self, residual: float) -> int | None:
        """The first round from which on the residual stays at or below this; `None` if it does not."""
        above = self.frame.index[self.frame["residual"] > residual]
        first = 1 if not len(above) else int(above[-1]) + 1
        return first if first <= len(self.frame) else None

    def plot(self, *, ax: Any = None) -> Figure:
        """Residual and exploitability over rounds, on a logarithmic scale; in `ax`, or in a new figure."""
        from .plot import panels

        figure, [axes] = panels(ax, (5, 3.2))
        for column, style in (("residual", "-"), ("exploitability", "--")):
            shown = self.frame[column].where(self.frame[column] > 0)
            axes.semilogy(self.frame.index, shown, style, label=column)
        axes.set(xlabel="round", ylabel="relative, in tasks")
        axes.legend(frameon=False)
        return figure

    def __repr__(self) -> str:
        if not len(self.frame):
            return f"Trace(no rounds; {self.reason})"
        last = self.frame.iloc[-1]
        return f"Trace({self.rounds} rounds, residual {last['residual']:.1e}; {self.reason})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self))}</p>{self.frame.tail()._repr_html_()}"


def idle(users: Sequence[str]) -> tuple[str, ...]:
    """The note about users who can run nowhere, if there are any."""
    if not users:
        return ()
    return (f"can run nowhere, so gets 0 tasks: {listed(users, 5)}",)


def _judge(cluster: Cluster, by: Any) -> tuple[Judge, Criterion | None, tuple[str, ...]]:
    """Judge and criterion for given tasks, with notes for the reader."""
    if by is None:
        return feasible, None, ("no criterion: feasible, and nothing else is claimed",)
    if isinstance(by, Criterion):
        for count, has, axis in zip(by.share.shape, cluster.shape, ("users", "servers"), strict=False):
            if count != has:
                raise DataError(f"the criterion is for {count} {axis}, and the cluster has {has}")
        return ByCriterion(by), by, ()
    if not hasattr(by, "certify") or isinstance(by, type):
        raise DataError(f"criterion is of type {type(by).__name__}; give a mechanism, such as DRFH(), or a Criterion")
    by.check(cluster)
    if by.prepare(cluster)[0].shape != cluster.shape:
        raise DataError(f"{by} is about the pool of the servers; judge the pool's tasks, on cluster.pool()")
    return by.certify, by.criterion(cluster), (f"judged by {by}",)


def _none(label: str) -> NoReturn:
    raise DataError(
        f"{label} has no criterion, as nobody optimised it; judge it by one: Allocation.of(..., criterion=...)"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Frozen):
    """Tasks of users on servers, and their certificate. Immutable, as are its copies and pickles; arrays are read-only.

    Attributes
    ----------
    mechanism : str
        Who made it, such as `alphaPF-VDS(alpha=3)`.
    cluster : Cluster
        The cluster it was judged on: the pooled one for single-pool mechanisms.
    tasks : (users, servers)
        `x[n,i]`, in tasks. Where servers were merged, the table is made when it is first read: what is per user or
        per server (`user_tasks`, `utilization`, metrics) does without.
    certificate : Certificate
        Feasibility and optimality, computed without the solver.
    criterion : Criterion
        What was optimised. Tasks that are only known to be feasible (`Allocation.of`) have none: a `DataError` says so.
    log_prices : (servers, resources) or None; for max-min (levels, servers, resources)
        `log lambda[i,r]` per resource unit, -inf for none: the witness of the certificate. On the scale of marginal
        welfare `dF/dx_n`, for max-min on any. Logarithms, as at large alpha prices are beyond what doubles hold.
    stats : Stats
    notes : tuple of str
        What the reader should know: that servers were pooled, who cannot run anything.
    tol : float
        The tolerance asked for; `flagged` tells if the certificate misses it (only with `throw=False`).
    trace : Trace or None
        Rounds of the distributed game, for answers of `best_response`.
    index : int or None
        Of an equilibrium of the per-server game at finite alpha: +1, or -1 where best responses leave it (a note says
        so); 0 where users' tasks are not locally unique. Indices of all equilibria sum to +1 (docs/equilibria.md). None
        for other mechanisms, where a task count binds, and of tasks that are not certified to 1e-7. Where there are
        more than 500 pairs of users and servers, it is found when it is first read.
    warm : object
        Where the engine may start for a similar problem: hand the allocation to `solve(..., start=...)`.
    """

    mechanism: str
    cluster: Cluster
    tasks: Array
    certificate: Certificate
    criterion: Criterion
    log_prices: Array | None
    stats: Stats
    notes: tuple[str, ...]
    tol: float
    judge: Judge
    trace: Trace | None = None
    warm: object = field(default=None, repr=False)
    index: int | None = field(default_factory=lambda: None)

    @cached_property
    def _split(self) -> Split | None:
        """The tasks as those of merged servers, if that is how they came."""
        made_by = self._maker("tasks")
        return made_by if isinstance(made_by, Split) else None

    @property
    def flagged(self) -> bool:
        """True if the certificate misses the tolerance asked for."""
        return not self.certificate.passes(self.tol)

    @property
    def _given(self) -> bool:
        return self.stats.engine == "given"

    @property
    def arrays(self) -> Arrays:
        """`user_tasks`, `prices` and so on as arrays, for loops: in the order of the cluster's names."""
        return Arrays(self)

    def _named(self, axis: str) -> pd.Index:
        return pd.Index(getattr(self.cluster, f"{axis}s"), name=axis)

    def __getitem__(self, user: str) -> pd.Series:
        """Tasks of a user by server: `allocation["bob"]`."""
        n = int(self.cluster._indices("users", [user])[0])
        return pd.Series(self.tasks[n], index=self._named("server"), name=user)

    __iter__ = None  # it is no sequence

    @property
    def user_tasks(self) -> pd.Series:
        """`x_n = sum_i x[n,i]` by user."""
        return pd.Series(self.arrays.user_tasks, index=self._named("user"), name="tasks")

    @property
    def dominant_shares(self) -> pd.Series:
        """`k_n x_n` by user; 0 for users who can run nothing."""
        return pd.Series(self.arrays.dominant_shares, index=self._named("user"), name="dominant_share")

    @property
    def virtual_dominant_shares(self) -> pd.DataFrame:
        """`s[n,i] = x_n / gamma[n,i]`, a row per user and a column per server; NaN where n cannot run on i."""
        return pd.DataFrame(self.arrays.virtual_dominant_shares, self._named("user"), self._named("server"))

    @property
    def usage(self) -> pd.DataFrame:
        """`x[n,i] d[n,r]` in resource units, a row per (user, server) and a column per resource."""
        rows = pd.MultiIndex.from_product([self._named("user"), self._named("server")])
        return pd.DataFrame(self.arrays.usage.reshape(len(rows), -1), rows, self._named("resource"))

    @property
    def used_parts(self) -> pd.DataFrame:
        """Used part of each capacity, a row per server and a column per resource; NaN where there is none."""
        return pd.DataFrame(self.arrays.used_parts, self._named("server"), self._named("resource"))

    @property
    def utilization(self) -> pd.Series:
        """Used part of the whole capacity by resource, as of schedules; NaN where there is none."""
        return pd.Series(self.arrays.utilization, index=self._named("resource"), name="utilization")

    @property
    def prices(self) -> pd.DataFrame | None:
        """`lambda[i,r]` per resource unit, a row per server (max-min: per level and server), a column per resource.

        Scaled so that users' budgets sum to the weights; in the game, per server, so that the largest price of a
        capacity is 1. None where there are none.
        """
        prices, servers = self.arrays.prices, self._named("server")
        if prices is None:
            return None
        if prices.ndim == 3:
            servers = pd.MultiIndex.from_product([pd.RangeIndex(1, len(prices) + 1, name="level"), servers])
        return pd.DataFrame(prices.reshape(len(servers), -1), servers, self._named("resource"))

    def certify(self) -> Certificate:
        """The certificate computed again from cluster, tasks, criterion and prices."""
        return self.judge(self.cluster, self.tasks, self.log_prices)[0]

    def save(self, path: str | Path) -> None:
        """Write an allocation file (JSON, `docs/allocation-file.md`) that `load`, and `tools/check.py`, can check."""
        rule = self.criterion if self.certificate.judged else None
        claim = StatedAnswer(self.mechanism, self.cluster, rule, self.tasks, self.log_prices, float(self.tol))
        allocation_file.write(path, claim)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an allocation file; the certificate is computed anew from its cluster, criterion, tasks and log prices.

        It is the criterion's certificate, also where the mechanism had one of its own (bottleneck fairness). An
        allocation that misses the file's tolerance is returned all the same, flagged. Wrong files are a `DataError`.
        """
        claim = allocation_file.read(path)
        of, by = (claim.cluster, claim.tasks, claim.mechanism), claim.criterion
        return cls._judged(*of, by, claim.tol, False, claim.log_prices, ("file", "loaded"), f"loaded from {path}")

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        tasks: Any,
        label: str = "allocation",
        *,
        criterion: Any = None,
        tol: float = 1e-6,
        throw: bool = True,
    ) -> Self:
        """Anybody's tasks as an allocation: to show, measure, compare, check and save.

        Parameters
        ----------
        cluster : whose tasks they are
        tasks : (users, servers)
            An array, a data frame or a dict of dicts by name; where there is one server also one number per user.
        label : what they are called
        criterion : a mechanism or a `Criterion`, optional
            By which they are judged: the certificate is then as of anybody's answer, and `flagged` tells whether it
            misses `tol`. Default: none, they are certified to be feasible and nothing else is claimed.
        tol : how far feasibility, and the criterion, may be missed
        throw : False: tasks that are not feasible are returned, flagged, instead of an error

        Raises
        ------
        DataError
            The tasks do not fit the cluster in shape or names, or overuse a server; or the criterion is one of a pool.
        """
        tol, table = _validate.tolerance(tol), _frames.tasks(tasks, expected(cluster).users, cluster.servers)
        return cls._judged(cluster, table, str(label), criterion, tol, throw)

    @classmethod
    def _judged(
        cls, cluster: Cluster, tasks: Array, label: str, by: Any, tol: float, throw: bool,
        log_prices: Array | None = None, origin: tuple[str, str] = ("given", "given"), *remarks: str,
    ) -> Self:  # fmt: skip
        begun = clock.now()
        judge, rule, notes = _judge(cluster, by)
        certificate, proof = judge(cluster, tasks, log_prices)
        if not certificate.feasibility <= tol:
            with np.errstate(all="ignore"):
                worst = feasible(cluster, tasks)[0].worst
            if throw:
                raise DataError(
                    f"the tasks of {label} are not feasible: {certificate.feasibility:.3g}, {worst}; scale them down, "
                    "or take them flagged with throw=False"
                )
            notes += (f"not feasible: {worst}",)
        if rule is None:
            rule = deferred(partial(_none, label))
        notes = (*remarks, *notes, *idle([cluster.users[n] for n in np.flatnonzero(~cluster.runnable)]))
        engine, status = origin
        stats = Stats(engine, "none", status, 0, 0.0, 0.0, 0.0, clock.now() - begun)
        prices = proof if log_prices is None else log_prices
        return cls(label, cluster, tasks, certificate, rule, prices, stats, notes, tol, judge)

    def to_frame(self) -> pd.DataFrame:
        """One row per user: `tasks` in all, `dominant_share`, `weight`; of 2 to 20 servers, tasks per server by name.

        A server that is called like one of these columns is in `tasks (server)` and so on.
        """
        return pd.DataFrame(self._columns(), index=self._named("user"))

    def _columns(self) -> dict[str, Array]:
        columns = {"tasks": self.arrays.user_tasks, "dominant_share": self.arrays.dominant_shares}
        columns["weight"] = self.cluster.weight
        if 1 < len(self.cluster.servers) <= 20:
            for i, server in enumerate(apart(self.cluster.servers, list(columns), "server")):
                columns[server] = self.tasks[:, i]
        return columns

    def bottlenecks(self) -> pd.DataFrame:
        """The bottlenecks of a lexicographic max-min allocation: one row per user, as the certificate proves it.

        A resource r of server i holds user n if it is used up, n needs it, and next to nobody above n's level uses it.

        Columns: `level` (`sigma_n / phi_n`), `tasks`; `held_by`: `capacity`, `task limit`, `nowhere to run` or, where
        the bound misses `tol`, `unproved`; `server` and `resource`, the bottleneck of those held by capacity: used up,
        needed by the user, and at the prices that prove it the largest part of what a task costs where it is cheapest
        (several may hold a user; one is named, and of merged servers the first; missing for the others); `bound`, the
        relative rise in tasks that the proof leaves open.

        Raises
        ------
        DataError
            The mechanism is not lexicographic max-min over a pool or over servers.
        SolverError
            An engine other than `native` made it, and it is too large to look for prices.
        """
        tasks = self._split or self.tasks
        found = blocking(self.cluster, tasks, self.criterion, self.arrays.prices, self.tol)
        columns: dict[str, Any] = {"level": found.level, "tasks": self.arrays.user_tasks, "held_by": found.held_by}
        for axis, places in (("server", found.server), ("resource", found.resource)):
            columns[axis] = [self._named(axis)[k] if k >= 0 else None for k in places]
        return pd.DataFrame(columns | {"bound": found.bound}, index=self._named("user"))

    def summary(self, measures: Iterable[str | metrics.Measure] | None = None) -> dict[str, Any]:
        """One row of a comparison: measures, utilization per resource, certificate, seconds.

        Parameters
        ----------
        measures : names of `fairopt.metrics.MEASURES`, or functions such as `fairopt.metrics.distance`
            By default all of `MEASURES`. Those relative to what users are entitled to cost a solve of their own, and
            are computed only where they are asked for.

        Raises
        ------
        DataError
            There is no measure of this name.
        """
        plugins.installed()
        row: dict[str, Any] = {}
        for each in metrics.MEASURES if measures is None else measures:
            name, measure = metrics.named(each)
            if name == "utilization":
                used = zip(self.cluster.resources, self.arrays.utilization.tolist(), strict=True)
                row |= {f"use_{resource}": part for resource, part in used}
            row[name] = float(measure(self))
        return row | {"certificate": self.certificate.residual, "seconds": self.stats.total}

    def plot(self, *, ax: Any = None) -> Figure:
        """Stacked use of every server and resource, by user, as a matplotlib figure; as `fairopt.plot.allocation`."""
        from . import plot

        return plot.allocation(self, ax=ax)

    def sensitivity(self) -> Sensitivity:
        """Derivatives of tasks and measures by alpha, weights, demands, capacities and limits, as frames.

        By the implicit function theorem on the optimality conditions (docs/sensitivity.md); what is not differentiable
        is NaN, and said in words. Of pooled mechanisms capacities are those of the pool.

        Raises
        ------
        DataError
            Neither alphaPF-VDS at finite alpha > 0, nor an alpha-fair program, nor max-min over a pool or servers.
        SolverError
            The allocation is not near enough to an exact answer: solve with a smaller `tol`.
        """
        from .derivatives import derivatives
        from .sensitivity import Sensitivity, solve_of

        found = derivatives(self.cluster, self.criterion, self._split or self.tasks, self.log_prices)
        return Sensitivity(self, found, solve_of(self.judge, self.cluster))

    def marginal_values(self) -> pd.DataFrame:
        """Tasks gained by one more unit of a resource on a server, by user: `sensitivity().marginal_values()`."""
        return self.sensitivity().marginal_values()

    def uncertain(self) -> pd.Series:
        """Users of whose tasks fewer than three digits are certain, and by how much theirs may be off, relatively.

        To first order that is `certificate.residual` times the user's condition, see `certificate.conditions`: so much
        the tasks of these users would move if data changed in their last digits. Empty where conditions are unknown.
        """
        apart = _show.uncertain(self.certificate)
        return pd.Series(apart, index=self._named("user")[: len(apart)], name="may be off by", dtype=float).dropna()

    def __repr__(self) -> str:
        return _show.text(self, self._columns())

    def _repr_html_(self) -> str:
        return _show.html(self, self._columns())
