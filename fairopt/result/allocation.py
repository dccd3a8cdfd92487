"""`Allocation`: tasks with certificate, prices, and statistics of the solve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from ..base import clock, plugins
from ..base.errors import DataError, SolverError
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

#: Smallest tolerance that an error message recommends, as rounding errors dominate smaller residuals.
_FINE = 1e-9
#: Largest number of rounds for which a plot marks every round, since a line through a single point is invisible.
_FEW = 20

#: Function of a cluster, tasks and log prices, which returns their certificate and the log prices that prove it.
Judge = Callable[[Cluster, Any, Array | None], tuple[Certificate, Array | None]]


@dataclass(frozen=True)
class Stats:
    """Engine, solver, the solver's status (on which certificates do not rely), CPU seconds and versions of a solve.

    `build`, `compile`, `solve` and `certify` are the CPU seconds of the feasible set, of CVXPY's compilation, of
    solvers and of certificates. The time of what a process does once (compilation or loading of loops, and imports) is
    in `loops` only.
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
        """Total CPU seconds without `loops`."""
        return self.build + self.compile + self.solve + self.certify


@dataclass(frozen=True, eq=False)
class Trace:
    """Rounds of best responses.

    Attributes
    ----------
    frame : DataFrame by round
        `residual`: largest change of a response in the round, relative to the user's tasks; `exploitability`: largest
        relative gain of a deviation of a server, as in certificates, at the servers' latest prices; `utilization`: mean
        used fraction of capacity; `seconds`: cumulative CPU seconds; `messages`: cumulative number of messages;
        `numbers`: cumulative number of numbers in messages.
    reason : str
        Reason of termination, with a remedy.
    order : str
        Order of the servers' responses.

    >>> import fairopt as fo
    >>> trace = fo.best_response(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), 3).trace
    >>> isinstance(trace, fo.game.Trace), trace.rounds_to(1e-3) <= trace.rounds
    (True, True)
    """

    frame: pd.DataFrame
    reason: str
    order: str = "cyclic"

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.frame)

    def rounds_to(self, residual: float) -> int | None:
        """First round from which on residuals are at most `residual`; None if there is no such round."""
        above = self.frame.index[self.frame["residual"] > residual]
        first = 1 if not len(above) else int(above[-1]) + 1
        return first if first <= len(self.frame) else None

    def plot(self, *, ax: Any = None) -> Figure:
        """Plot residual and exploitability by round, on a logarithmic scale without zeros, in `ax` or a new figure."""
        from matplotlib.ticker import MaxNLocator

        from .plot import panels

        figure, [axes] = panels(ax, (5, 3.2))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        for column, style in (("residual", "-"), ("exploitability", "--")):
            shown = self.frame[column].where(self.frame[column] > 0)
            zero = self.frame.index[shown.isna()]  # rounds that a logarithmic scale leaves out
            label = f"{column} (0 in round {zero[0]})" if len(zero) else column
            axes.semilogy(self.frame.index, shown, style, label=label, marker="." if len(shown) <= _FEW else None)
        axes.set_xlim(0.5, max(len(self.frame), 1) + 0.5)
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
    """Tuple of one note that names users without a usable server (at most five); empty if there are no such users."""
    if not users:
        return ()
    return (f"can run nowhere, so gets 0 tasks: {listed(users, 5)}",)


def _judge(cluster: Cluster, by: Any) -> tuple[Judge, Criterion | None, tuple[str, ...]]:
    """Certifying function, criterion and notes for tasks judged by a mechanism, a criterion or None.

    If `by` is None, the criterion is None, and only feasibility is certified. A mechanism that does not apply to the
    cluster, or another type, raises `DataError`.
    """
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
        f"{label} has no criterion, as it is not the result of an optimisation; "
        "give one: Allocation.of(..., criterion=...)"
    )


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Frozen):
    r"""Certified tasks of users on servers; immutable, including copies and pickles, with read-only arrays.

    .. math:: x_n = \sum_i x_{ni}, \qquad \sum_n x_{ni} d_{nr} \le c_{ir}

    Attributes
    ----------
    mechanism : str
        Label of the mechanism, such as `alphaPF-VDS(alpha=3)`.
    cluster : Cluster
        The cluster to which tasks and certificate belong, which is the pool for single-pool mechanisms.
    tasks : (users, servers)
        :math:`x_{ni}`, in tasks. If servers were merged, the array is computed at first access; quantities by user or
        by server (`user_tasks`, `utilization`, measures) do not require it.
    certificate : Certificate
        Infeasibility and suboptimality, computed independently of the solver.
    criterion : Criterion
        The objective; access raises `DataError` if tasks are certified for feasibility only (`Allocation.of`).
    log_prices : (servers, resources) or None; for max-min (levels, servers, resources)
        Log prices :math:`\log \lambda_{ir}` per resource unit, with which the certificate is proved; -inf for zero
        prices. Prices are in units of welfare, for max-min in an arbitrary unit. Logarithms are stored since prices at
        large alpha exceed the range of floating point.
    stats : Stats
        Engine, solver, CPU seconds and versions.
    notes : tuple of str
        Remarks, such as that servers were pooled, or that users cannot run tasks.
    tol : float
        The requested tolerance; the allocation is `flagged` if its certificate exceeds the tolerance (only with
        `throw=False`).
    judge : callable
        Function that certifies tasks.
    trace : Trace or None
        Rounds of the distributed game, for allocations of `best_response`.
    index : int or None
        Index of an equilibrium of the per-server game at finite alpha: +1, or -1 if it is unstable under best
        responses (with a note); 0 if the users' tasks are not locally unique. Indices of all equilibria sum to +1
        (docs/equilibria.md). None for other mechanisms, with active task limits, and for residuals above 1e-7. For more
        than 500 (user, server) pairs it is computed at first access.
    warm : object
        State for a warm start of the engine: pass the allocation to `solve(..., start=...)`.

    >>> import fairopt as fo
    >>> found = fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=["ann", "bob"]))
    >>> found.user_tasks.to_dict(), found.certificate.passes(1e-9)
    ({'ann': 3.0, 'bob': 2.0}, True)
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
        """Tasks on merged servers, if the engine returned such tasks; otherwise None."""
        made_by = self._maker("tasks")
        return made_by if isinstance(made_by, Split) else None

    @property
    def flagged(self) -> bool:
        """True if the certificate misses the requested tolerance."""
        return not self.certificate.passes(self.tol)

    @property
    def _given(self) -> bool:
        return self.stats.engine == "given"

    @property
    def _optimal(self) -> bool:
        """False if the mechanism's tasks do not maximise `criterion`, as for `PartialAllocation`."""
        return bool(getattr(getattr(self.judge, "__self__", None), "met_by_criterion", True))

    @property
    def arrays(self) -> Arrays:
        """Derived quantities (`user_tasks`, `prices`, ...) as arrays with axes (users, servers, resources)."""
        return Arrays(self)

    def _named(self, axis: str) -> pd.Index:
        return pd.Index(getattr(self.cluster, f"{axis}s"), name=axis)

    def __getitem__(self, user: str) -> pd.Series:
        """Series of the tasks of a user by server, as in `allocation["bob"]`; `DataError` for an unknown user."""
        n = int(self.cluster._indices("users", [user])[0])
        split = self._split
        row = self.tasks[n] if split is None else split.merging.split_servers(split.merged[[n]])[0]
        return pd.Series(row, index=self._named("server"), name=user)

    __iter__ = None  # not a sequence, although it can be indexed

    @property
    def user_tasks(self) -> pd.Series:
        r"""Tasks on all servers, :math:`x_n = \sum_i x_{ni}`, by user, (users,)."""
        return pd.Series(self.arrays.user_tasks, index=self._named("user"), name="tasks")

    @property
    def work(self) -> pd.Series:
        r"""Work :math:`w_n = \sum_i a_{ni} x_{ni}` by user, (users,); equal to `user_tasks` without rates."""
        return pd.Series(self.arrays.work, index=self._named("user"), name="work")

    @property
    def tasks_by_type(self) -> pd.DataFrame:
        """Tasks, (users, types of servers); servers of a type have proportional capacities and proportional tasks."""
        split = self._split or Split.from_answer(self.cluster, self.tasks)
        types = pd.Index(split.merging.cluster.servers, name="type")
        return pd.DataFrame(split.merged, self._named("user"), types)

    @property
    def dominant_shares(self) -> pd.Series:
        r"""Dominant shares :math:`x_n \max_r d_{nr} / C_r` by user, (users,); 0 for users that cannot run tasks."""
        return pd.Series(self.arrays.dominant_shares, index=self._named("user"), name="dominant_share")

    @property
    def virtual_dominant_shares(self) -> pd.DataFrame:
        r"""Virtual dominant shares :math:`\sigma_{ni} = x_n / \gamma_{ni}` (users, servers); NaN for unusable pairs."""
        return pd.DataFrame(self.arrays.virtual_dominant_shares, self._named("user"), self._named("server"))

    @property
    def usage(self) -> pd.DataFrame:
        """Use :math:`x_{ni} d_{nr}` in resource units, a row per (user, server) and a column per resource."""
        rows = pd.MultiIndex.from_product([self._named("user"), self._named("server")])
        return pd.DataFrame(self.arrays.usage.reshape(len(rows), -1), rows, self._named("resource"))

    @property
    def used_parts(self) -> pd.DataFrame:
        """Used fraction of each capacity, (servers, resources); NaN where the capacity is 0."""
        return pd.DataFrame(self.arrays.used_parts, self._named("server"), self._named("resource"))

    @property
    def utilization(self) -> pd.Series:
        """Used fraction of the total capacity by resource, (resources,); NaN where the capacity is 0."""
        return pd.Series(self.arrays.utilization, index=self._named("resource"), name="utilization")

    @property
    def prices(self) -> pd.DataFrame | None:
        r"""Prices :math:`\lambda_{ir}` per resource unit, a row per server, or per level and server for max-min.

        Prices of a global program at finite alpha are scaled such that the expenditures of all users sum to the sum of
        the weights. In the game the prices of each server are scaled such that the largest price of a whole capacity is
        1. Max-min prices are not scaled. The result is None if the allocation has no prices.
        """
        prices, servers = self.arrays.prices, self._named("server")
        if prices is None:
            return None
        if prices.ndim == 3:
            servers = pd.MultiIndex.from_product([pd.RangeIndex(1, len(prices) + 1, name="level"), servers])
        return pd.DataFrame(prices.reshape(len(servers), -1), servers, self._named("resource"))

    def certify(self) -> Certificate:
        """Recompute the certificate from cluster, tasks, criterion and prices."""
        by_types = getattr(getattr(self.judge, "__self__", None), "judged_by_criterion", False) and self._split
        return self.judge(self.cluster, by_types or self.tasks, self.log_prices)[0]

    def save(self, path: str | Path) -> None:
        """Write an allocation file (JSON, `docs/allocation-file.md`), which `load` and `tools/check.py` verify.

        Raises
        ------
        DataError
            The criterion has a utility that is a function, or the file cannot be written.
        """
        rule = self.criterion if self.certificate.judged and self._optimal else None
        claim = StatedAnswer(self.mechanism, self.cluster, rule, self.tasks, self.log_prices, float(self.tol))
        allocation_file.write(path, claim)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an allocation file, and recompute the certificate from its cluster, criterion, tasks and log prices.

        The criterion determines the certificate, even if the mechanism has a certificate of its own (bottleneck
        fairness). An allocation whose certificate exceeds the tolerance of the file is returned `flagged`.

        Raises
        ------
        DataError
            The file is invalid.
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
        """Certify given tasks, and return them as an allocation to display, measure, compare and save.

        Parameters
        ----------
        cluster : Cluster
        tasks : (users, servers)
            An array, a frame, or a dict of dicts by name; for a single server also (users,).
        label : str
            Label of the allocation, in place of the label of a mechanism.
        criterion : Mechanism or Criterion, optional
            Criterion under which optimality is certified; the allocation is `flagged` if its certificate exceeds `tol`.
            Default: feasibility only.
        tol : float
            Tolerance of feasibility and of the criterion (dimensionless).
        throw : bool
            False: return infeasible tasks flagged instead of raising.

        Raises
        ------
        DataError
            Tasks have another shape or other names, or are infeasible beyond `tol`; or the mechanism is defined on the
            pool, and the cluster has several servers.
        """
        tol, table = _validate.tolerance(tol), _frames.tasks(tasks, expected(cluster).users, cluster.servers)
        return cls._judged(cluster, table, str(label), criterion, tol, throw)

    @classmethod
    def _judged(
        cls, cluster: Cluster, tasks: Array, label: str, by: Any, tol: float, throw: bool,
        log_prices: Array | None = None, origin: tuple[str, str] = ("given", "given"), *remarks: str,
    ) -> Self:  # fmt: skip
        begun = clock.cpu()
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
        stats = Stats(engine, "none", status, 0, 0.0, 0.0, 0.0, clock.cpu() - begun)
        prices = proof if log_prices is None else log_prices
        return cls(label, cluster, tasks, certificate, rule, prices, stats, notes, tol, judge)

    def to_frame(self) -> pd.DataFrame:
        """Frame by user: `tasks`, `work` if there are rates, `dominant_share`, `weight`, and tasks on each server.

        Tasks by server are included for 2 to 20 servers. A server with the name of another column is labelled as in
        `tasks (server)`.
        """
        return pd.DataFrame(self._columns(), index=self._named("user"))

    def _columns(self) -> dict[str, Array]:
        columns = {"tasks": self.arrays.user_tasks} | ({"work": self.arrays.work} if self.cluster.rated else {})
        columns |= {"dominant_share": self.arrays.dominant_shares, "weight": self.cluster.weight}
        if 1 < len(self.cluster.servers) <= 20:
            for i, server in enumerate(apart(self.cluster.servers, list(columns), "server")):
                columns[server] = self.tasks[:, i]
        return columns

    def bottlenecks(self) -> pd.DataFrame:
        r"""Frame by user of the bottlenecks of a lexicographic max-min allocation, with proofs.

        Resource r of server i is a bottleneck of user n if it is exhausted, n demands it, and users of higher levels
        than n hardly use it.

        The columns are `level` (:math:`\sigma_n / \phi_n`); `tasks`; `held_by`, which is `capacity`, `task limit`,
        `nowhere to run`, or `unproved` if the bound exceeds `tol`; `server` and `resource`, the bottleneck of a user
        that is bound by capacity; and `bound`, the proved bound on the relative increase of the user's tasks. If there
        are several bottlenecks, the resource with the largest share in the cost of a task on the cheapest server is
        named, at the prices of the proof. Of several proportional servers the first is named.

        Raises
        ------
        DataError
            The mechanism is not lexicographic max-min over a pool or over servers.
        SolverError
            The allocation has no prices, and is too large for linear programs.
        """
        tasks = self._split or self.tasks
        found = blocking(self.cluster, tasks, self.criterion, self.arrays.prices, self.tol)
        columns: dict[str, Any] = {"level": found.level, "tasks": self.arrays.user_tasks, "held_by": found.held_by}
        for axis, places in (("server", found.server), ("resource", found.resource)):
            columns[axis] = [self._named(axis)[k] if k >= 0 else None for k in places]
        return pd.DataFrame(columns | {"bound": found.bound}, index=self._named("user"))

    def summary(self, measures: Iterable[str | metrics.Measure] | None = None) -> dict[str, Any]:
        """Dictionary of measures by name, residual of the certificate (`certificate`), and CPU seconds (`seconds`).

        With the measure `utilization` the dictionary also has the utilization of every resource (`use_...`).

        Parameters
        ----------
        measures : iterable of str or callable, optional
            Names in `fairopt.metrics.MEASURES`, or functions such as `fairopt.metrics.distance`. Default: all measures
            in `MEASURES`. Measures relative to entitlements require another solve, and are computed only on request.

        Raises
        ------
        DataError
            There is no measure of a given name.
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
        """Plot the use of every server and resource, stacked by user (`fairopt.plot.allocation`)."""
        from . import plot

        return plot.allocation(self, ax=ax)

    def sensitivity(self) -> Sensitivity:
        """Derivatives of tasks and measures with respect to alpha, weights, demands, capacities and limits, as frames.

        Derivatives follow from the implicit function theorem at the optimality conditions (docs/sensitivity.md). Where
        tasks are not differentiable, derivatives are NaN, with a reason. For single-pool mechanisms derivatives are
        with respect to capacities of the pool.

        Raises
        ------
        DataError
            The mechanism is neither alphaPF-VDS at finite alpha > 0, nor an alpha-fair program, nor lexicographic
            max-min over a pool or over servers.
        SolverError
            The allocation is not accurate enough; the message has a remedy.
        """
        from .derivatives import derivatives
        from .sensitivity import Sensitivity, solve_of

        if not self._optimal:
            raise DataError(f"{self.mechanism} has no derivatives, as it is no optimum; choose an alpha-fair mechanism")
        try:
            found = derivatives(self.cluster, self.criterion, self._split or self.tasks, self.log_prices)
        except SolverError as error:
            remedy = f"solve with a smaller tol, such as solve(cluster, tol={_FINE:g})"
            if self.tol <= _FINE:
                remedy = "solve a changed cluster as well, cluster.replace(...), and take the difference"
            raise SolverError(f"{error}: {remedy}") from None
        return Sensitivity(self, found, solve_of(self.judge, self.cluster))

    def marginal_values(self) -> pd.DataFrame:
        """Gains of tasks per additional unit of each capacity, by user (`Sensitivity.marginal_values`)."""
        return self.sensitivity().marginal_values()

    def uncertain(self) -> pd.Series:
        """Relative error bounds of users with fewer than three certain digits of tasks, by user.

        To first order the bound is `certificate.residual` times the condition number (`certificate.conditions`). The
        series is empty if condition numbers are unknown.
        """
        apart = _show.uncertain(self.certificate)
        return pd.Series(apart, index=self._named("user")[: len(apart)], name="may be off by", dtype=float).dropna()

    def __repr__(self) -> str:
        return _show.text(self, self._columns())

    def _repr_html_(self) -> str:
        return _show.html(self, self._columns())
