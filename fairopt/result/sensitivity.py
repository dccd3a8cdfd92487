"""Derivatives of an allocation with respect to its data, as frames, text and a plot. See `docs/sensitivity.md`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.errors import DataError, FairoptError
from ..base.libraries import pd
from ..base.names import apart
from ..model._arrays import Array, Mask, ratio
from ..model.cluster import Cluster
from ..model.merging import merge
from . import metrics
from .arrays import Answer
from .derivatives import DATA, Derivatives, share_derivatives

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: Function of the kind of a datum, its index, and a step in its logarithm (or in alpha), which returns tasks (users,).
Solve = Callable[[str, int, float], Array]


class Gradient(NamedTuple):
    r"""Gradient of a measure by log tasks, (users,), and for fixed tasks by log weights and log demands.

    With dominant shares :math:`\sigma_n = x_n \max_r d_{nr}/C_r`, levels :math:`l_n = \sigma_n / \phi_n` of the N users
    that can run tasks, and sums :math:`S = \sum l_n` and :math:`Q = \sum l_n^2`:

    ===========  =======================================  ==============================================================
    measure      value                                    derivative
    ===========  =======================================  ==============================================================
    tasks        :math:`\sum x_n`                         by :math:`\log x_n`: :math:`x_n`
    welfare      :math:`\sum \sigma_n`                    by :math:`\log \sigma_n`: :math:`\sigma_n`
    min_share    :math:`\min l_n`                         by :math:`\log l_n`: :math:`l_n` if it is the smallest, else 0
    max_share    :math:`\max l_n`                         by :math:`\log l_n`: :math:`l_n` if it is the largest, else 0
    jain         :math:`S^2 / (N Q)`                      by :math:`\log l_n`: :math:`2 S l_n (1 - S l_n / Q) / (N Q)`
    utilization  mean of :math:`\sum_n x_n d_{nr} / C_r`  by :math:`\log x_n`: mean over r of :math:`x_n d_{nr} / C_r`;
                                                          by :math:`\log d_{nr}`: the term of r in this mean; by
                                                          :math:`\log C_r`: minus the sum over n of such terms
    ===========  =======================================  ==============================================================
    """

    tasks: Array
    weight: Array
    demand: Array


def gradients(answer: Answer) -> dict[str, list[Gradient]]:
    """Gradients by measure: several (one-sided) gradients if users or resources tie; undefined measures are omitted."""
    cluster, x, share = answer.cluster, answer.arrays.user_tasks, answer.arrays.dominant_shares
    rules, zero = share_derivatives(cluster, "dominant"), np.zeros(len(x))
    level = np.where(cluster.runnable, share / cluster.weight, np.nan)

    def of_levels(by_level: Array, by_weight: Array) -> list[Gradient]:
        return [Gradient(by_level, by_weight, rule.by_demand * by_level[:, None]) for rule in rules]

    pool = cluster.pooled_capacity
    part = ratio(x[:, None] * cluster.demand, pool) / max(int((pool > 0).sum()), 1)
    found = {
        "tasks": [Gradient(x, zero, np.zeros(part.shape))],
        "welfare": of_levels(share, zero),
        "utilization": [Gradient(part.sum(axis=1), zero, part)],
    }
    if cluster.runnable.any():
        for name, best in (("min_share", np.nanmin(level)), ("max_share", np.nanmax(level))):
            # Shares within this tolerance of the smallest or largest count as tied.
            tied = np.flatnonzero(np.abs(level - best) <= 1e-9 * best)
            some = np.zeros((2, len(level)))
            some[0, tied[0]] = best
            some[1, tied] = best * np.random.default_rng(0).dirichlet(np.ones(len(tied)))
            found[name] = [one for each in some[: len(tied)] for one in of_levels(each, -each)]
    total, squares = np.nansum(level), np.nansum(level**2)
    if squares > 0:
        level = np.nan_to_num(level)
        by_level = 2 * total * level / (cluster.runnable.sum() * squares) * (1 - total * level / squares)
        found["jain"] = of_levels(by_level, -by_level)
    return found


def _by(data: str, doc: str) -> property:
    """Property that returns the derivatives of log tasks by one kind of data."""
    return property(lambda self: self.tasks(data), doc=doc)


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    r"""Derivatives of tasks and measures with respect to the logarithms of all data, and alpha.

    .. math:: \frac{\partial \log x_n}{\partial \log \theta}, \qquad \frac{\partial \log x_n}{\partial \alpha}, \qquad
        \frac{\partial m(x)}{\partial \log \theta}

    Frames have a row per datum :math:`\theta` and a column per user n. Derivatives by logarithms are elasticities: the
    change in percent of :math:`x_n`, for a change of :math:`\theta` by 1%. They are NaN where tasks are zero, or not
    differentiable (`not_differentiable` has reasons). Measures are :math:`m(x)`.

    Attributes
    ----------
    alpha, weights, demands, capacities, max_tasks, counts : DataFrame (data, users)
        Derivatives of log tasks by each kind of data. `counts` are numbers of servers of a type; servers of
        proportional capacities are of one type.
    measures : DataFrame
        Derivatives of measures: a row per datum, a column per measure of `Allocation.summary`.
    not_differentiable : DataFrame
        Every datum by which some user has no derivative, the number of such users, and the reason.
    """

    answer: Answer
    derivatives: Derivatives = field(repr=False)
    solve: Solve | None = field(default=None, repr=False)

    alpha = _by("alpha", "By alpha; NaN for max-min.")
    weights = _by("weights", "By log weights.")
    demands = _by("demands", "By log demands, users and resources.")
    capacities = _by("capacities", "By log capacities, servers and resources.")
    max_tasks = _by("max_tasks", "By log task limits, of users who have one.")
    counts = _by("counts", "By the log of the number of servers of a type.")

    def tasks(self, by: str) -> pd.DataFrame:
        """Derivatives of log tasks by one kind of data, (data, users); NaN where they do not exist.

        Raises
        ------
        DataError
            There is no kind of data with the name `by`.
        """
        if by not in DATA:
            raise DataError(f"by is {by!r}; it must be one of {', '.join(DATA)}")
        rows, levels = self.derivatives.rows[by], DATA[by][1]
        there, names = self._there[rows], self._names(by)
        index = pd.MultiIndex(names, np.nonzero(there.reshape([len(each) for each in names])), names=levels)
        users = pd.Index(self.answer.cluster.users, name="user")
        return pd.DataFrame(self._of_users[rows][there], index if len(levels) > 1 else index.get_level_values(0), users)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """Derivatives of the built-in measures by all data, (data, measures); NaN where they do not exist."""
        known = gradients(self.answer)
        found = {name: known[name] for name in metrics.MEASURES if name in known}
        by_tasks = [np.where(self._runs, one.tasks, 0.0) for several in found.values() for one in several]
        through = self.derivatives.of_tasks(np.column_stack(by_tasks))
        columns, begin = {}, 0
        for name, several in found.items():
            each = [self._of_measure(one, through[:, begin + k]) for k, one in enumerate(several)]
            begin += len(each)
            apart = np.ptp(each, axis=0) > 1e-7 * (1 + np.abs(each[0]))
            columns[name] = np.where(apart, np.nan, each[0])
        return pd.DataFrame(columns, index=self._whole)[self._there]

    @cached_property
    def not_differentiable(self) -> pd.DataFrame:
        """Data by which some user has no derivative: the number of such `users`, and the reason, `why`.

        Rows are indexed by (by, of, resource): kind of data, user or server, resource. After 200 rows `why` is blank.
        """
        data = np.flatnonzero(self._undetermined)
        why = [self.derivatives.why(row) if k < 200 else "" for k, row in enumerate(data.tolist())]
        return pd.DataFrame({"users": self._undetermined[data], "why": why}, index=self._whole[data])

    def one_sided(self, step: float = 1e-5, most: int = 50) -> pd.DataFrame:
        """One-sided derivatives where tasks are not differentiable, by certified solves of perturbed clusters.

        Difference quotients for `step` and `step / 2`, the changes of log data, must agree to a relative error of 1e-3;
        otherwise, for example where tasks jump, the result is NaN. Rows, indexed by (by, of, resource, side) with the
        sides `right` and `left`, are in the order of `not_differentiable`; columns are users. Each datum requires four
        solves.

        Raises
        ------
        DataError
            The mechanism is unknown, as the allocation was loaded from a file, or `not_differentiable` has more than
            `most` data.
        NotConverged, SolverError
            A solve fails (`Mechanism.solve`).
        """
        if self.solve is None:
            raise DataError("this allocation does not know its mechanism, as it came from a file: solve its cluster")
        data = np.flatnonzero(self._undetermined)
        if len(data) > most:
            raise DataError(f"{len(data)} data have no derivative; one_sided(most={len(data)}) solves four times each")
        ends = [(row, side) for row in data.tolist() for side in ("right", "left")]
        rows = [self._difference(row, step if side == "right" else -step) for row, side in ends]
        index = [(*self._whole[row], side) for row, side in ends]
        levels = pd.MultiIndex.from_tuples(index, names=["by", "of", "resource", "side"]) if index else None
        return pd.DataFrame(rows, index=levels, columns=pd.Index(self.answer.cluster.users, name="user"))

    def marginal_values(self) -> pd.DataFrame:
        """First-order gains of tasks per additional unit of capacity; NaN where tasks are not differentiable.

        The frame has a row per (server, resource), a column per user, and the sum over users, `all`, by which rows are
        sorted in decreasing order. A unit that is a large fraction of a capacity may yield less.
        """
        return self._per_unit(self.tasks("capacities"))

    def _per_unit(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Marginal values, sorted, from derivatives of log tasks by log capacities."""
        capacity = self.answer.cluster.capacity.ravel()[self._there[self.derivatives.rows["capacities"]]]
        found = frame.mul(self.answer.arrays.user_tasks, axis=1).div(capacity, axis=0)
        found.loc[:, ~self._runs] = 0.0
        found.insert(0, self._all_name, found.sum(axis=1, skipna=False))
        return found.sort_values(self._all_name, ascending=False, kind="stable", na_position="last")

    def in_words(self, most: int = 10, users: int = 4) -> str:
        """Marginal values as text, such as `one more gpu on rack2: team A +0.8 tasks, team B -0.1`.

        The text has a line for each of the `most` largest total gains, with the `users` users of largest changes.
        """
        lines = []
        for (server, resource), row in self.marginal_values().head(most).iterrows():
            gains = row.drop(self._all_name)
            start = f"one more {resource} on {server}: "
            if gains.isna().any():
                lines.append(start + "not differentiable here, see one_sided()")
                continue
            # Gains below a thousandth of the largest are omitted.
            gains = gains[gains.abs() > max(1e-3 * float(gains.abs().max()), 1e-9)]
            order = gains.abs().sort_values(ascending=False, kind="stable").index[:users]
            parts = [f"{user} {gains[user]:+.3g}" + (" tasks" if k == 0 else "") for k, user in enumerate(order)]
            left = len(gains) - len(order)
            if left:
                parts.append(f"{left} others {float(gains.drop(order).sum()):+.3g} together")
            lines.append(start + (", ".join(parts) if parts else "no user gains"))
        return "\n".join(lines)

    def plot(self, most: int = 12, *, one_sided: bool = True, ax: Any = None) -> Figure:
        """Plot marginal values by user, a bar per (server, resource): gains to the right, losses to the left.

        Parameters
        ----------
        most : int
            Number of bars; the figure states how many resources it omits.
        one_sided : bool
            Where tasks have no derivative, draw the derivative from the right, for a small increase of the capacity, by
            two certified solves for each bar. If False, or if tasks jump there, a remark replaces the bar.
        ax : optional
            Axes of matplotlib. Default: the axes of a new figure.
        """
        from . import plot

        frame, solved = self.tasks("capacities"), one_sided and self.solve is not None
        right = frame.index[frame.loc[:, self._runs].isna().any(axis=1) & solved]
        for label in right[:most]:
            with suppress(FairoptError):  # the row then has no value, and the figure has a remark
                frame.loc[label] = self._difference(self._whole.get_loc(("capacities", *label)), 1e-5)
        frame = self._per_unit(frame).drop(columns=self._all_name)
        return plot.marginal_values(frame, {*right} & {*frame.dropna().index}, self.answer.mechanism, most, ax)

    def __repr__(self) -> str:
        lines = [f"Sensitivity of {self.answer.mechanism}: {len(self._runs)} users, {len(self._whole)} data"]
        lines += [f"  {line}" for line in self.in_words(5).splitlines()]
        count = len(self.not_differentiable)
        lines.append(
            f"  not differentiable by {count} of them: see not_differentiable" if count else "  differentiable"
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = [("marginal values", self.marginal_values().head(10))]
        if self.derivatives.finite:
            tables.append(("by alpha", self.alpha))
        tables.append(("not differentiable", self.not_differentiable.head(10)))
        return "".join(f"<p><b>{title}</b></p>{frame.to_html(max_cols=20)}" for title, frame in tables)

    # -- inside --------------------------------------------------------------------------------------

    @cached_property
    def _there(self) -> Mask:
        """Mask (data,) of the data that are positive and finite."""
        cluster, there = self.answer.cluster, np.ones(self.derivatives.rows["counts"].stop, dtype=bool)
        limited = np.isfinite(cluster.max_tasks) & (cluster.max_tasks > 0)
        some = {"demands": cluster.demand > 0, "capacities": cluster.capacity > 0, "max_tasks": limited}
        for by, mask in some.items():
            there[self.derivatives.rows[by]] = mask.ravel()
        return there

    def _names(self, by: str) -> list[tuple[str, ...]]:
        """Labels of one kind of data, for each level of the index."""
        cluster = self.answer.cluster
        servers = (self.derivatives.cluster if by == "counts" else cluster).servers
        of = {"parameter": ("alpha",), "user": cluster.users, "server": servers, "resource": cluster.resources}
        return [of[level] for level in DATA[by][1]]

    @cached_property
    def _whole(self) -> pd.MultiIndex:
        """Index of all data: kind, user or server, resource."""
        rows = [(by, *each, "")[:3] for by in DATA for each in product(*self._names(by))]
        return pd.MultiIndex.from_tuples(rows, names=["by", "of", "resource"])

    @property
    def _all_name(self) -> str:
        return apart(["all"], self.answer.cluster.users, "users")[0]

    @property
    def _runs(self) -> Mask:
        return np.asarray(self.answer.arrays.user_tasks > 0)

    @cached_property
    def _of_users(self) -> Array:
        """Derivatives of log tasks, (data, users); NaN where undefined, and for users without tasks."""
        return np.where(self._runs, self.derivatives.of_tasks(np.eye(len(self._runs))), np.nan)

    @cached_property
    def _undetermined(self) -> Array:
        """Number of users with tasks for which the derivative by the datum does not exist, (data,)."""
        count = np.isnan(self._of_users[:, self._runs]).sum(axis=1) * self._there
        if not self.derivatives.finite:
            count[self.derivatives.rows["alpha"]] = 0
        return np.asarray(count)

    def _of_measure(self, gradient: Gradient, through: Array) -> Array:
        """Derivative of a measure by all data, (data,): the effect `through` tasks, plus the effect at fixed tasks."""
        cluster = self.answer.cluster
        direct = -gradient.demand.sum(axis=0) * ratio(cluster.capacity, cluster.pooled_capacity)
        per_type = np.bincount(self.derivatives.merging.server_of, direct.sum(axis=1))
        parts = ([0.0], gradient.weight, gradient.demand, direct, np.zeros(len(cluster.users)), per_type)
        return np.asarray(through + np.concatenate([np.ravel(part) for part in parts]))

    def _difference(self, row: int, step: float) -> Array:
        """One-sided derivatives of log tasks, (users,), extrapolated from the difference quotients of two steps.

        NaN where the quotients disagree, and for users without tasks. A solve that fails raises its error.
        """
        assert self.solve is not None
        runs, found, by = self._runs, [], self._whole[row][0]
        base = self.answer.arrays.user_tasks
        for h in (step, step / 2):
            result = np.full(len(base), np.nan)
            after = self.solve(by, row - self.derivatives.rows[by].start, h)
            with np.errstate(divide="ignore"):
                result[runs] = np.log(after[runs] / base[runs]) / h
            found.append(result)
        agree = np.abs(found[0] - found[1]) <= 1e-3 * (1 + np.abs(found[1]))
        return np.where(agree, 2 * found[1] - found[0], np.nan)


def solve_of(judge: object, seen: Cluster) -> Solve | None:
    """Function that solves with the mechanism whose method is `judge`; None if `judge` is no method of a mechanism."""
    mechanism: Any = getattr(judge, "__self__", None)
    if not hasattr(mechanism, "solve"):
        return None

    def solved(by: str, k: int, step: float) -> Array:
        cluster, rule, field = seen, mechanism, DATA[by][0]
        if by == "alpha":
            rule = replace(mechanism, alpha=mechanism.alpha + step)
        else:
            values = np.array(getattr(seen, field))
            some: Any = np.unravel_index(k, values.shape)
            if by == "counts":  # the number of servers scales all capacities of a type
                some = merge(seen, users=False).server_of == k
            values[some] *= np.exp(step)
            cluster = seen.replace(**{field: values})
        return np.asarray(rule.solve(cluster, 1e-9, start=None).arrays.user_tasks)

    return solved
