"""`Columns`: jobs whose work depends on where, with whom and in which shape they run; certified fair levels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ..base import clock
from ..base.errors import CertificateError, DataError, SolverError
from ..base.libraries import cp, pd, sp
from ..base.names import listed, names, short
from ..certificates import Certificate
from ..certificates.columns import backward_error, rises
from ..core.engines import columns as engine
from ..core.engines.columns import Found
from ..model import _intake, _validate
from ..model._arrays import Array, Frozen, ratio, read_only
from ..model.cluster import Cluster, expected
from ..model.columns import ColumnProgram
from ..result._show import _size
from .alpha_fair import AlphaFair
from .reference import solvers
from .reference.program import f_alpha

#: `_ROWS` is the largest number of users that `repr` displays, `_JOBS` the largest number of jobs per user.
_ROWS, _JOBS = 20, 2.0**53


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Columns(Frozen):
    r"""Jobs (users) and the columns in which they can run, in amounts :math:`x_k` of column k; immutable.

    .. math:: \sum_k u_{rk} x_k \le c_r, \qquad \sum_k \tau_{nk} x_k \le q_n, \qquad x \ge 0, \qquad
        \ell_n = s_n \sum_k a_{nk} x_k / \phi_n

    A column is one way to run: a job on a kind of GPU, two jobs on one GPU (space sharing), a job in one of several
    shapes. A unit of a column uses amounts of rows, such as GPUs of each kind, and an amount of the own time of its
    users (a job runs once at a time); each of its users does work at the user's own rate. `solve` computes levels
    :math:`\ell_n` that are fair: lexicographic max-min, or alpha-fair.

    Parameters
    ----------
    capacity : (rows,)
        :math:`c_r \ge 0`, in units of the row.
    use : (rows, columns)
        :math:`u_{rk} \ge 0`, units of the row per unit of the column; like `rate` and `time`, possibly a SciPy sparse
        matrix.
    rate : (users, columns)
        :math:`a_{nk} \ge 0`, work of the user per unit of the column.
    time : (users, columns), optional
        :math:`\tau_{nk} \ge 0`, own time of the user per unit of the column. Default: 0.
    limit : (users,) or float, optional
        Own time :math:`q_n` of each job. Default: 1.
    weight : (users,) or float, optional
        :math:`\phi_n > 0`, of each job. Default: 1.
    share : (users,) or float, optional
        :math:`s_n > 0`, share per unit of work. Default: 1.
    count : (users,) or int, optional
        Number of identical jobs that a user represents, with their total weight and own time. Default: 1. Identical
        users and columns are merged before solving in any case.
    users, rows : iterable of str, optional
        Distinct names. Default: `user1`, `row1`, ...
    columns : iterable of tuples, optional
        Names of columns: the names of users, and then the place where they run. Default: `column1`, ...

    Nonzero finite numbers are from 1e-50 to 1e50.

    Raises
    ------
    DataError
        Data are invalid, or a column that does work uses neither a row nor limited own time.

    Source: defined here; the programs of Gavel, OSDI 2020 (arXiv:2008.09213), are special cases.

    >>> import fairopt as fo
    >>> rates = {"a": {"k80": 1, "v100": 4}, "b": {"k80": 1, "v100": 2}, ("a", "b"): {"v100": (3, 1.5)}}
    >>> fo.Columns.from_throughputs(rates, {"k80": 1, "v100": 1}, share=1.0).solve().levels.round(3).to_dict()
    {'a': 1.8, 'b': 1.8}
    """

    capacity: Array
    use: sp.csc_matrix
    rate: sp.csc_matrix
    time: sp.csc_matrix
    limit: Array
    weight: Array
    share: Array
    count: Array
    users: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[Any, ...]

    def __init__(
        self,
        capacity: Any,
        use: Any,
        rate: Any,
        time: Any = None,
        limit: Any = None,
        weight: Any = None,
        share: Any = None,
        count: Any = None,
        users: Iterable[object] | None = None,
        rows: Iterable[object] | None = None,
        columns: Iterable[Any] | None = None,
    ) -> None:
        known = self.__dict__
        rate = _table(rate, "rate")
        known["capacity"] = _intake.plain(capacity, "capacity")
        if known["capacity"].ndim != 1:
            raise DataError(f"capacity must have one number per row; got shape {known['capacity'].shape}")
        known["users"] = names(users, rate.shape[0], "user")
        known["rows"] = names(rows, len(known["capacity"]), "row")
        known["columns"] = tuple(f"column{k + 1}" for k in range(rate.shape[1])) if columns is None else _named(columns)
        known["rate"], known["use"] = rate, _table(use, "use")
        known["time"] = sp.csc_matrix(rate.shape) if time is None else _table(time, "time")
        for name, shape in (("use", (len(self.rows), rate.shape[1])), ("time", rate.shape)):
            if (has := known[name].shape) != shape:
                raise DataError(f"{name} must have shape {shape}, as rate has shape {rate.shape}; got {has}")
        if len(self.columns) != rate.shape[1]:
            raise DataError(f"{rate.shape[1]} columns need {rate.shape[1]} names; got {len(self.columns)}")
        given = {"limit": limit, "weight": weight, "share": share, "count": count}
        known |= {name: _intake.vector(value, name, self.users, 1.0) for name, value in given.items()}
        for name in ("capacity", "limit", "weight", "share", "count"):
            wrong = ~_validate.inside(known[name], *{"capacity": (0.0,), "limit": (0.0, np.inf)}.get(name, ()))
            wanted = "0, or " if name in ("capacity", "limit") else ""
            wanted += f"from {_validate.LEAST:g} to {_validate.MOST:g}"
            if name == "count":
                wrong = ~((known[name] >= 1) & (known[name] <= _JOBS) & (known[name] % 1 == 0))
                wanted = f"a whole number of jobs, from 1 to {_JOBS:g}"
            if wrong.any():
                of, k = self.rows if name == "capacity" else self.users, int(wrong.argmax())
                raise DataError(f"{of[k]!r} has {name} {known[name][k]:g}; it must be {wanted}")
        unbounded = (self.use.getnnz(axis=0) == 0) & (self.time[np.isfinite(self.limit)].getnnz(axis=0) == 0)
        unbounded &= self.rate.getnnz(axis=0) > 0
        if unbounded.any():
            name = short(self.columns[int(unbounded.argmax())])
            raise DataError(f"column {name} works and uses nothing: give its use")
        super().__post_init__()

    @classmethod
    def from_throughputs(
        cls,
        throughputs: Mapping[Any, Mapping[Hashable, Any]],
        workers: Mapping[Hashable, float],
        count: Mapping[Hashable, int] | None = None,
        scale: Mapping[Hashable, float] | None = None,
        weight: Mapping[Hashable, float] | None = None,
        share: Mapping[Hashable, float] | float | str = "alone",
    ) -> Self:
        r"""Construct the columns of jobs on GPUs, alone and in pairs, from throughputs as in Gavel and POP.

        Parameters
        ----------
        throughputs : dict
            `{job: {gpu: rate}, (job, other): {gpu: (rate of job, rate of other)}}`, work per unit of time. A job runs
            on the GPUs for which it has a positive rate. With `count`, a pair (A, A) is two different jobs of A.
        workers : dict
            Number of GPUs by kind.
        count : dict, optional
            Number of identical jobs that an entry represents. Default: 1.
        scale : dict, optional
            GPUs per job, equal for the two jobs of a pair. Default: 1.
        weight : dict, optional
            Priority of each job. Default: 1.
        share : dict or float, optional
            Share per unit of work. Default: `"alone"`, for which a job of weight 1 that always runs on average GPUs has
            its scale as level. With :math:`c_j` GPUs of kind j and rates :math:`a_{nj}` of job n alone,

            .. math:: s_n = \text{scale}_n \sum_j c_j \Big/ \sum_j c_j a_{nj}

        Raises
        ------
        DataError
            Data are invalid: an unknown job or GPU, a pair of jobs of different scale, or a job that runs nowhere alone
            although `share` is `"alone"`.

        Source: D. Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep learning workloads", OSDI
        2020 (arXiv:2008.09213); "Solving large-scale granular resource allocation problems efficiently with POP", SOSP
        2021 (doi:10.1145/3477132.3483588).
        """
        jobs = _jobs(throughputs, workers, {"count": count, "scale": scale, "weight": weight}, share)
        place, gpus = {job: n for n, job in enumerate(jobs)}, {gpu: j for j, gpu in enumerate(workers)}
        size = _intake.plain([(scale or {}).get(job, 1) for job in jobs], "scale")
        alike = _intake.plain([(count or {}).get(job, 1) for job in jobs], "count")
        if size.shape != alike.shape or size.ndim != 1:
            raise DataError("count and scale have one number per job")
        entries: list[tuple[int, int, Any]] = []
        label = [_label(job) for job in jobs]
        found: list[tuple[Any, ...]] = []
        where: list[tuple[int, float]] = []
        for key, by_gpu in throughputs.items():
            owners = key if _is_pair(key, throughputs) else (key,)
            who = [place[job] for job in owners]
            if len(who) == 2 and who[0] == who[1] and alike[who[0]] < 2:
                if count is None:
                    raise DataError(f"{owners[0]!r} is paired with itself; with count= that is a pair of alike jobs")
                continue
            if len({size[n] for n in who}) > 1:
                raise DataError(f"the pair {short(key)} has jobs of different scale")
            for gpu, rates in by_gpu.items():
                if gpu not in gpus:
                    raise DataError(f"{short(key)} has a throughput on {short(gpu)}, which is not among the workers")
                several = isinstance(rates, Sized) and not isinstance(rates, str) and getattr(rates, "shape", 0) != ()
                each = list(rates) if several else [rates]
                if len(each) != len(who):
                    wanted = "one throughput" if len(who) == 1 else "two throughputs"
                    raise DataError(f"{short(key)} needs {wanted} on {short(gpu)}; got {short(rates)}")
                entries += [(n, len(found), rate) for n, rate in zip(who, each, strict=True)]
                found.append((*(label[n] for n in who), str(gpu)))
                where.append((gpus[gpu], size[who[0]]))
        owner, column = np.array([entry[:2] for entry in entries], dtype=np.intp).reshape(-1, 2).T
        work = _intake.plain([entry[2] for entry in entries], "throughputs")
        if work.ndim != 1 or not (work >= 0).all():
            raise DataError("throughputs must be numbers of at least 0")
        shape, (row, use) = (len(jobs), len(found)), np.array(where).reshape(-1, 2).T
        rate = sp.csc_matrix((work, (owner, column)), shape)
        alone = np.array([len(name) == 2 for name in found], dtype=bool)
        capacity = _intake.plain(list(workers.values()), "workers")
        if isinstance(share, str):
            with np.errstate(all="ignore"):  # numbers of GPUs are checked by the constructor
                mean = rate[:, alone] @ capacity[row[alone].astype(int)] / (capacity.sum() or 1.0)
            lost = (mean == 0) & (rate.getnnz(axis=1) > 0)
            if lost.any():
                raise DataError(f"{label[int(lost.argmax())]!r} runs nowhere alone, as its share needs: give share")
            values = np.where(mean > 0, size / np.where(mean > 0, mean, 1.0), 1.0)
        else:
            values = _intake.plain([share[job] if isinstance(share, Mapping) else share for job in jobs], "share")
        return cls(
            capacity,
            sp.csc_matrix((use, (row, np.arange(len(found)))), (len(gpus), len(found))),
            rate,
            sp.csc_matrix((np.ones(len(owner)), (owner, column)), shape),
            weight=[(weight or {}).get(job, 1) for job in jobs],
            share=values,
            count=alike,
            users=label,
            rows=[str(gpu) for gpu in gpus],
            columns=found,
        )

    @classmethod
    def from_cluster(cls, cluster: Cluster, share: Any = "alone") -> Self:
        """Construct a column for each usable (user, server) pair of a cluster; `share` is the parameter of `AlphaFair`.

        Raises
        ------
        DataError
            The argument is not a cluster, the share is invalid, or it requires that each user has one rate.
        """
        user, server = np.nonzero(expected(cluster).usable)
        pairs, (servers, resources) = np.arange(len(user)), cluster.capacity.shape
        use = sp.lil_matrix((servers * resources, len(pairs)))
        for r in range(resources):
            use[server * resources + r, pairs] = cluster.demand[user, r]
        rule = AlphaFair(share=share)
        rule.check(cluster)
        shape, per_work = (len(cluster.users), len(pairs)), rule.criterion(cluster).share  # shares per unit of work
        return cls(
            cluster.capacity.ravel(),
            use,
            sp.csc_matrix((cluster.rate[user, server], (user, pairs)), shape),
            sp.csc_matrix((np.ones(len(pairs)), (user, pairs)), shape),
            limit=cluster.max_tasks,
            weight=cluster.weight,
            share=np.where(np.isfinite(per_work), per_work, 1.0),
            users=cluster.users,
            rows=[f"{resource} of {name}" for name in cluster.servers for resource in cluster.resources],
            columns=[(cluster.users[n], cluster.servers[i]) for n, i in zip(user, server, strict=True)],
        )

    # -- in levels -------------------------------------------------------------------------------

    @cached_property
    def _running(self) -> tuple[Array, Array, Array, ColumnProgram]:
        """Masks of columns that can run, of users that do work in them and of rows that they use, and the program.

        Rows are capacities, followed by the finite own times of users. In the program rows are divided by their bounds,
        and levels are work shares divided by the total weight of the jobs that a user represents.
        """
        own = self.limit * self.count
        bounds = sp.vstack([self.use, self.time[np.isfinite(own)]], format="csr")
        most = np.append(self.capacity, own[np.isfinite(own)])
        there = (bounds[most == 0].getnnz(axis=0) == 0) & (self.rate.getnnz(axis=0) > 0)
        users = self.rate[:, there].getnnz(axis=1) > 0
        rows = bounds[:, there].getnnz(axis=1) > 0
        limits = sp.diags(1 / most[rows]) @ bounds[rows][:, there]
        weight = (self.weight * self.count)[users]
        gain = sp.diags(self.share[users] / weight) @ self.rate[users][:, there]
        return there, users, rows, ColumnProgram(sp.csc_matrix(limits), sp.csc_matrix(gain), weight)

    def program(self, alpha: float = np.inf) -> cp.Problem:
        r"""Formulate the alpha-fair program in CVXPY; for infinite alpha the program maximises the smallest level.

        .. math:: \max_x \sum_n \phi_n f_\alpha(\ell_n), \qquad f_\alpha(t) = \frac{t^{1-\alpha}}{1-\alpha},
            \quad f_1(t) = \log t

        Here :math:`\phi_n` is the total weight of the jobs that user n represents.

        Raises
        ------
        DataError
            alpha is negative or not a number.
        """
        alpha, weight = _validate.alpha(alpha), self.weight * self.count
        finite, own = np.isfinite(self.limit), self.limit * self.count
        rows = [(self.use, self.capacity), (self.time[finite], own[finite])]
        return _stated(rows, sp.diags(self.share / weight) @ self.rate, weight, alpha)

    # -- answers ---------------------------------------------------------------------------------

    def solve(self, alpha: float = np.inf, tol: float = 1e-6, *, throw: bool = True) -> FairColumns:
        """Compute fair levels with a certificate: lexicographic max-min, or alpha-fair at finite alpha.

        Parameters
        ----------
        alpha : float
            Positive, possibly infinite; 1 is Nash welfare.
        tol : float
            Largest accepted residual of the certificate.
        throw : bool
            If False, an answer that misses `tol` is returned flagged.

        Returns
        -------
        FairColumns
            Amounts, levels, work and prices, with a certificate.

        Raises
        ------
        DataError
            alpha is not positive, or `tol` is invalid.
        CertificateError
            The certificate misses `tol`.
        SolverError
            No solver found an answer.
        """
        alpha, tol = _validate.alpha(alpha), _validate.tolerance(tol)
        if not alpha > 0:
            raise DataError("alpha is 0; it must be above 0, up to infinity")
        begun = clock.cpu()
        there, users, rows, program = self._running
        amounts, prices, errors = np.zeros(len(there)), np.zeros(len(self.rows)), np.full(len(program.weight), np.inf)
        with np.errstate(all="ignore"):  # the certificate rejects numbers beyond the range of doubles
            for found in _offers(program, alpha) if users.any() else ():
                if (found_errors := _errors(program, found, alpha)).max() < errors.max():
                    amounts[there], errors, limited = found.x, found_errors, np.flatnonzero(rows[: len(self.rows)])
                    prices[limited] = found.prices[0][: len(limited)] / self.capacity[limited]
        if users.any() and not amounts.any():
            raise SolverError("no solver found an answer: bring rates, weights and capacities closer together")
        measure = "lexicographic rise" if np.isinf(alpha) else "backward error"
        answer = self._answer(amounts, alpha, tol, measure, errors, prices, clock.cpu() - begun)
        if answer.flagged and throw:
            raise CertificateError(
                f"the answer has {answer.certificate}, above the tolerance {tol:g}: bring rates and weights closer "
                "together, or take it flagged with throw=False"
            )
        return answer

    def judge(self, amounts: Any, alpha: float = np.inf, tol: float = 1e-6) -> FairColumns:
        """Certify given amounts by the largest relative distance of their levels from the fair levels.

        Parameters
        ----------
        amounts : (columns,)
            :math:`x_k`.
        alpha, tol
            Parameters of `solve`; `tol` is the tolerance of the result only.

        Returns
        -------
        FairColumns
            The given amounts with their levels and a certificate, flagged if it misses `tol`; prices are zero.

        Raises
        ------
        DataError
            `amounts` are not finite numbers, one per column, or alpha or `tol` is invalid.
        CertificateError, SolverError
            The fair levels cannot be computed.
        """
        x, alpha, tol = _intake.plain(amounts, "amounts"), _validate.alpha(alpha), _validate.tolerance(tol)
        if x.shape != (len(self.columns),):
            raise DataError(f"amounts must be one number per column, {len(self.columns)} in all; got shape {x.shape}")
        if not np.isfinite(x).all():
            raise DataError("amounts must be finite numbers")
        fair, users = self.solve(alpha), self._running[1]
        best = fair.levels.to_numpy()[users]
        # The fair levels are known up to the residual of their certificate, so that no smaller distance is proved.
        off = np.maximum(np.abs(self._levels(x)[users] / best - 1), fair.certificate.residual)
        return self._answer(x, alpha, tol, "distance from the optimum", off, np.zeros(len(self.rows)), 0.0)

    def _levels(self, x: Array) -> Array:
        return np.asarray(self.share * (self.rate @ x) / (self.weight * self.count))

    def _answer(
        self, x: Array, alpha: float, tol: float, measure: str, errors: Array, prices: Array, seconds: float
    ) -> FairColumns:
        """Answer with amounts `x`, certified by their infeasibility and by the `errors` of users that can run."""
        over, where = self._infeasible(x)
        users, worst = self._running[1], float(errors.max(initial=0.0))
        if worst >= over:
            largest = self.users[int(np.flatnonzero(users)[errors.argmax()])] if worst > 0 else ""
            where = f"largest for user {largest!r}" if worst > 0 else "no violation"
        idle = [name for name, runs in zip(self.users, users, strict=True) if not runs]
        notes = (f"can run nowhere, so gets nothing: {listed(idle, 5)}",) if idle else ()
        certificate = Certificate(over, worst, measure, where)
        return FairColumns(self, float(alpha), x, prices, certificate, tol, seconds, notes)

    def _infeasible(self, x: Array) -> tuple[float, str]:
        """Largest relative violation of a constraint, infinite for infinite amounts, and the constraint in words."""
        if not np.isfinite(x).all():
            return np.inf, "amounts are not finite numbers"
        used, spent = self.use @ x, self.time @ x
        over = np.where(used > 0, ratio(used, self.capacity, np.inf) - 1, 0.0)
        late = np.where(spent > 0, ratio(spent, self.limit * self.count, np.inf) - 1, 0.0)
        below = ratio(-x, np.abs(x).max(initial=0.0))
        every = ((over, self.rows, "overused"), (late, self.users, "over its time"), (below, self.columns, "negative"))
        values, of, what = max(every, key=lambda one: one[0].max(initial=0.0))
        most = float(values.max(initial=0.0))
        return (most, f"largest for {of[int(values.argmax())]!r}, {what}") if most > 0 else (0.0, "feasible")

    def __repr__(self) -> str:
        jobs = f"{self.count.sum():,.0f} jobs" + (f" in {len(self.users):,} entries" if (self.count > 1).any() else "")
        return f"Columns({jobs}, {len(self.rows):,} rows, {len(self.columns):,} columns)"


@dataclass(frozen=True, eq=False, repr=False)
class FairColumns(Frozen):
    r"""Amounts of columns with the levels of their users, and a certificate; immutable.

    Attributes
    ----------
    problem : Columns
    alpha : float
        Fairness parameter; infinite for max-min.
    amounts : (columns,)
        :math:`x_k`.
    row_prices : (rows,)
        Prices per unit of a row; under max-min, the prices of the lowest level; zero after `judge`.
    certificate : Certificate
        Its measure is the lexicographic rise (max-min) or the backward error after `solve`, and the distance from the
        optimum after `judge`.
    tol : float
        Tolerance of the certificate.
    seconds : float
        CPU seconds of solving and certification.
    notes : tuple of str
        Remarks, such as the users that can run nowhere.
    """

    problem: Columns
    alpha: float
    amounts: Array
    row_prices: Array
    certificate: Certificate
    tol: float
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def flagged(self) -> bool:
        """True if the certificate misses the tolerance."""
        return not self.certificate.passes(self.tol)

    def _series(self, values: Array, name: str) -> pd.Series:
        return pd.Series(values, index=pd.Index(self.problem.users, name="user"), name=name)

    @property
    def levels(self) -> pd.Series:
        r"""Levels :math:`\ell_n`, (users,), by name of the user."""
        return self._series(self.problem._levels(self.amounts), "level")

    @property
    def work(self) -> pd.Series:
        """Work, (users,), of all jobs that a user represents, by name of the user."""
        return self._series(np.asarray(self.problem.rate @ self.amounts), "work")

    @property
    def prices(self) -> pd.Series:
        """Prices per unit of a row, (rows,), by name of the row."""
        return pd.Series(self.row_prices, index=pd.Index(self.problem.rows, name="row"), name="price")

    @property
    def smallest(self) -> float:
        """Smallest level among the jobs that can run; infinite without such jobs."""
        return float(self.problem._levels(self.amounts)[self.problem._running[1]].min(initial=np.inf))

    @property
    def geometric_mean(self) -> float:
        """Geometric mean of levels over the jobs that can run; 1 without such jobs."""
        users = self.problem._running[1]
        with np.errstate(divide="ignore"):
            log = np.log(self.problem._levels(self.amounts)[users])
        return float(np.exp(np.average(log, weights=self.problem.count[users]))) if users.any() else 1.0

    def to_frame(self) -> pd.DataFrame:
        """Nonzero amounts as a table: jobs and pairs of jobs in rows (`runs`), and where they run in columns (`on`).

        Amounts of columns whose name is not a tuple are in the column `x`.
        """
        there, names = np.flatnonzero(self.amounts), self.problem.columns
        what = [(" + ".join(map(str, names[k][:-1])), names[k][-1]) if isinstance(names[k], tuple) else (names[k], "x")
                for k in there]  # fmt: skip
        index = pd.MultiIndex.from_tuples(what, names=["runs", "on"])
        return pd.Series(self.amounts[there], index=index).groupby(level=[0, 1]).sum().unstack(fill_value=0.0)

    def __repr__(self) -> str:
        problem, kind = self.problem, "max-min" if np.isinf(self.alpha) else f"alpha={self.alpha:g}"
        flag = "  ** misses the tolerance **" if self.flagged else ""
        head = f"{kind}: smallest level {self.smallest:.6g}, geometric mean {self.geometric_mean:.6g}{flag}"
        table = pd.DataFrame({"jobs": problem.count.astype(int), "level": self.levels, "work": self.work})
        shown = (
            table.rename_axis(None)
            .sort_values("level", kind="stable")
            .to_string(max_rows=_ROWS, float_format="{:.6g}".format)
        )
        by = self.certificate
        proof = f"certificate: feasibility {_size(by.feasibility)}, {by.measure} {_size(by.optimality)}"
        return "\n".join([head, shown, repr(problem), proof, *(f"note: {note}" for note in self.notes)])


def _table(values: Any, what: str) -> sp.csc_matrix:
    """Convert nonnegative numbers to a sparse matrix without stored zeros; raise `DataError` for other values."""
    packed = _intake.packed(values)
    if packed and (values.ndim != 2 or values.dtype.kind not in "iuf"):
        raise DataError(f"{what} must be a table of numbers; got {values.dtype}, {values.shape}")
    table = sp.csc_matrix(values if packed else _intake.matrix(values, what, "row", "column"), dtype=float, copy=True)
    table.sum_duplicates()
    table.eliminate_zeros()
    if not _validate.inside(table.data).all():
        wanted = f"0, or finite numbers from {_validate.LEAST:g} to {_validate.MOST:g}"
        raise DataError(f"{what} must be {wanted}; it has {table.data[~_validate.inside(table.data)][0]:g}")
    read_only(table.data)
    return table


def _named(columns: Any) -> tuple[Any, ...]:
    """Return names of columns, with lists as tuples; raise `DataError` for names that cannot be an index."""
    try:
        if isinstance(columns, str):
            raise TypeError
        named = tuple(tuple(name) if isinstance(name, list) else name for name in columns)
        {*named}  # noqa: B018 - tables are indexed by names
    except TypeError:
        raise DataError(f"columns are {short(columns)}; give a list of names, texts or tuples of them") from None
    if () in named:
        raise DataError("a column has an empty tuple as its name")
    return named


def _jobs(throughputs: Any, workers: Any, of_jobs: dict[str, Any], share: Any) -> list[Any]:
    """List the jobs with throughputs; raise `DataError` for invalid arguments that name jobs."""
    for given, what in ((throughputs, "throughputs"), (workers, "workers"), *((by, a) for a, by in of_jobs.items())):
        if not isinstance(given, Mapping) and (given is not None or what not in of_jobs):
            raise DataError(f"{what} must be a dict; got {short(given)}")
    for job, by_gpu in throughputs.items():
        if not isinstance(by_gpu, Mapping):
            raise DataError(f"throughputs of {short(job)} must be a dict by GPU; got {short(by_gpu)}")
    jobs = [key for key in throughputs if not _is_pair(key, throughputs)]
    for job in jobs:
        if isinstance(job, tuple) and any(one in throughputs for one in job):
            raise DataError(f"{short(job)} is no pair of two jobs that have throughputs alone: correct its names")
    known = {*jobs}
    for what, given in (of_jobs | {"share": share}).items():
        if isinstance(given, Mapping) and (odd := [job for job in given if job not in known]):
            raise DataError(f"{what} has {short(odd[0])}, of which there are no throughputs")
    if isinstance(share, str) and share != "alone":
        raise DataError(f"share is {share!r}; it must be 'alone', a number, or a dict of numbers by job")
    if isinstance(share, Mapping) and (odd := [job for job in jobs if job not in share]):
        raise DataError(f"share has no number for {short(odd[0])}")
    return jobs


def _is_pair(key: Any, throughputs: Mapping[Any, Any]) -> bool:
    """True if a key is a pair of jobs, and not a job whose name is a tuple."""
    return isinstance(key, tuple) and len(key) == 2 and all(job in throughputs for job in key)


def _label(job: Any) -> str:
    return " ".join(map(str, job)) if isinstance(job, tuple) else str(job)


def _stated(rows: list[tuple[Any, Array]], gain: Any, weight: Array, alpha: float) -> cp.Problem:
    """Program that maximises alpha-fair welfare, or the smallest level, over amounts `x` within bounds.

    `rows` are pairs of a matrix and the upper bounds of its product with x.
    """
    x = cp.Variable(gain.shape[1], nonneg=True, name="x")
    level = gain @ x
    aim = cp.min(level) if np.isinf(alpha) else cp.sum(cp.multiply(weight, f_alpha(level, alpha)))
    return cp.Problem(cp.Maximize(aim), [table @ x <= most for table, most in rows])


def _errors(program: ColumnProgram, found: Found, alpha: float) -> Array:
    """Errors of users, (users,), whose maximum is the residual of the certificate."""
    if np.isinf(alpha):
        return rises(program, found.x, found.prices, found.values)
    error, of_users = backward_error(program, found.x, alpha, found.prices[0])
    return np.maximum(of_users, np.where(of_users == of_users.max(), error, 0.0))


def _offers(program: ColumnProgram, alpha: float) -> Iterator[Found]:
    """Yield answers of increasing accuracy.

    The program with merged users and columns is solved, its amounts are divided equally among the merged columns, and
    scaled to be feasible.
    """
    merged = program.merged()
    small = merged.program
    offers = [engine.leximin(small)]
    if offers[0] is not None and np.isfinite(alpha):
        offers = [_welfare(small, alpha, offers[0].x)]
        offers += [] if offers[0] is None else [engine.refined(small, offers[0], alpha)]
    for found in offers:
        if found is not None:
            x = merged.amounts(found.x)
            x /= max(1.0, float((program.limits @ x).max()))
            yield Found(x, merged.of_rows(found.prices), merged.of_users(found.values))


def _welfare(program: ColumnProgram, alpha: float, start: Array) -> Found | None:
    """Maximise alpha-fair welfare by CVXPY and column generation, from the columns of max-min amounts `start`.

    The result is None if the lowest level of `start` is zero, or a solve fails.
    """
    unit = float((program.gain @ start).min())
    if not 0 < unit < np.inf:
        return None

    def solve(part: ColumnProgram) -> Found | None:
        problem = _stated([(part.limits, np.ones(part.limits.shape[0]))], part.gain / unit, part.weight, alpha)
        try:
            solvers.solve(problem, "CLARABEL")
        except SolverError:
            return None
        x, y = np.maximum(problem.variables()[0].value, 0.0), np.maximum(problem.constraints[0].dual_value, 0.0)
        values = part.weight * (part.gain @ x) ** -alpha
        scale = (values @ part.gain @ x) / (y @ (part.limits @ x))  # unit of welfare over unit of the solved objective
        return Found(x, y[None] * scale, values[None])

    found = engine.generated(program, np.flatnonzero(start), solve)
    return None if found is None else found[0]
