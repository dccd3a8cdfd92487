"""Derivatives of an allocation by its data, as frames, words and a picture. See `docs/sensitivity.md`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.errors import DataError
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


#: Tasks (users,) where a datum, by its kind and its number there, is larger by a step in its logarithm.
Solve = Callable[[str, int, float], Array]


class Gradient(NamedTuple):
    """A measure by log tasks (users,), and by data with tasks held: log weights, and log demands, of which parts count.

    Of levels `l_n = k_n x_n / phi_n`, `k_n = max_r d_nr/C_r`, and dominant shares `s_n = k_n x_n`:

        tasks        sum x_n                      x_n                          by log x_n
        welfare      sum s_n                      s_n                          by log s_n
        min_share    min l_n                      l_n of the least             by log l_n
        jain         S^2 / (N Q)                  2 S l_n / (N Q) (1 - S l_n / Q)    S = sum l_n, Q = sum l_n^2
        utilization  mean_r sum x_n d_nr / C_r    the mean of x_n d_nr / C_r   by log x_n, log d_nr, -log C_r
    """

    tasks: Array
    weight: Array
    demand: Array


def gradients(answer: Answer) -> dict[str, list[Gradient]]:
    """Gradients by measure: several where users or their resources tie, none where it has no value."""
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
            # Users tie for the smallest or largest share if they are this close.
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
    """The frame of one kind of data."""
    return property(lambda self: self.tasks(data), doc=doc)


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Derivatives of tasks and measures by the logarithms of all data, and by alpha.

    Frames have a row per datum and a column per user, `d log x_n / d log(datum)` (`alpha`: `d log x_n / d alpha`): a 1%
    larger datum changes n's tasks by so many percent. NaN: not differentiable there (`not_differentiable` says why), or
    the user runs nothing.

    Attributes
    ----------
    alpha, weights, demands, capacities, max_tasks, counts : pd.DataFrame
        `counts`: by the log of how many servers of a type there are; proportional servers are of one type.
    measures : pd.DataFrame
        a row for every datum, a column for every measure of `Allocation.summary`: `d measure / d log(datum)`
    not_differentiable : pd.DataFrame
        every datum with a NaN, how many users it concerns, and why
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
        """`d log x_n` by one kind of data: a row per datum, a column per user."""
        if by not in DATA:
            raise DataError(f"by is {by!r}; it must be one of {', '.join(DATA)}")
        rows, levels = self.derivatives.rows[by], DATA[by][1]
        there, names = self._there[rows], self._names(by)
        index = pd.MultiIndex(names, np.nonzero(there.reshape([len(each) for each in names])), names=levels)
        users = pd.Index(self.answer.cluster.users, name="user")
        return pd.DataFrame(self._of_users[rows][there], index if len(levels) > 1 else index.get_level_values(0), users)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """Derivatives of every measure by all data; of measures of plug-ins, unless they have a gradient here, none."""
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
        """The data with a NaN: `users`, for how many, and `why`, in words."""
        data = np.flatnonzero(self._undetermined)
        why = [self.derivatives.why(row) if k < 200 else "" for k, row in enumerate(data.tolist())]
        return pd.DataFrame({"users": self._undetermined[data], "why": why}, index=self._whole[data])

    def one_sided(self, step: float = 1e-5, most: int = 50) -> pd.DataFrame:
        """Derivatives from the right and from the left of what has none, by certified solves of changed clusters.

        Differences over `step` and half of it must agree to 1e-3, relatively, else NaN: there is no one-sided value, as
        where tasks jump. At most so many data, in the order of `not_differentiable`, four solves each.

        Raises
        ------
        DataError
            The allocation does not know its mechanism (it was loaded from a file), or there are too many data.
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
        """Tasks gained by one more unit of a resource on a server: (server, resource) by user, and `all`.

        The largest sum of gains first; to first order, so that a unit which is much of a server may bring less.
        """
        frame = self.tasks("capacities")
        capacity = self.answer.cluster.capacity.ravel()[self._there[self.derivatives.rows["capacities"]]]
        found = frame.mul(self.answer.arrays.user_tasks, axis=1).div(capacity, axis=0)
        found.loc[:, ~self._runs] = 0.0
        found.insert(0, self._all_name, found.sum(axis=1, skipna=False))
        return found.sort_values(self._all_name, ascending=False, kind="stable", na_position="last")

    def in_words(self, most: int = 10, users: int = 4) -> str:
        """Marginal values as sentences, such as `one more gpu on rack2: team A +0.8 tasks, team B -0.1`."""
        lines = []
        for (server, resource), row in self.marginal_values().head(most).iterrows():
            gains = row.drop(self._all_name)
            start = f"one more {resource} on {server}: "
            if gains.isna().any():
                lines.append(start + "not differentiable here, see one_sided()")
                continue
            # What is below a thousandth of the largest is not spoken of.
            gains = gains[gains.abs() > max(1e-3 * float(gains.abs().max()), 1e-9)]
            order = gains.abs().sort_values(ascending=False, kind="stable").index[:users]
            parts = [f"{user} {gains[user]:+.3g}" + (" tasks" if k == 0 else "") for k, user in enumerate(order)]
            left = len(gains) - len(order)
            if left:
                parts.append(f"{left} others {float(gains.drop(order).sum()):+.3g} together")
            lines.append(start + (", ".join(parts) if parts else "nobody gains"))
        return "\n".join(lines)

    def plot(self, most: int = 12, *, ax: Any = None) -> Figure:
        """Marginal values: a bar per resource of a server, gains to the right, losses to the left, by user."""
        from . import plot

        frame = self.marginal_values().drop(columns=self._all_name)
        return plot.marginal_values(frame, self.answer.mechanism, most, ax)

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
        """(data,): those that there are, not limits of who has none, nor zeros."""
        cluster, there = self.answer.cluster, np.ones(self.derivatives.rows["counts"].stop, dtype=bool)
        limited = np.isfinite(cluster.max_tasks) & (cluster.max_tasks > 0)
        some = {"demands": cluster.demand > 0, "capacities": cluster.capacity > 0, "max_tasks": limited}
        for by, mask in some.items():
            there[self.derivatives.rows[by]] = mask.ravel()
        return there

    def _names(self, by: str) -> list[tuple[str, ...]]:
        """Labels of one kind of data, by level."""
        cluster = self.answer.cluster
        servers = (self.derivatives.cluster if by == "counts" else cluster).servers
        of = {"parameter": ("alpha",), "user": cluster.users, "server": servers, "resource": cluster.resources}
        return [of[level] for level in DATA[by][1]]

    @cached_property
    def _whole(self) -> pd.MultiIndex:
        """All data: kind, of whom, resource."""
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
        """(data, users)."""
        return np.where(self._runs, self.derivatives.of_tasks(np.eye(len(self._runs))), np.nan)

    @cached_property
    def _undetermined(self) -> Array:
        """(data,): for how many users there is no derivative."""
        count = np.isnan(self._of_users[:, self._runs]).sum(axis=1) * self._there
        if not self.derivatives.finite:
            count[self.derivatives.rows["alpha"]] = 0
        return np.asarray(count)

    def _of_measure(self, gradient: Gradient, through: Array) -> Array:
        """One measure by all data, (data,); `through` is what it does through tasks."""
        cluster = self.answer.cluster
        direct = -gradient.demand.sum(axis=0) * ratio(cluster.capacity, cluster.pooled_capacity)
        per_type = np.bincount(self.derivatives.merging.server_of, direct.sum(axis=1))
        parts = ([0.0], gradient.weight, gradient.demand, direct, np.zeros(len(cluster.users)), per_type)
        return np.asarray(through + np.concatenate([np.ravel(part) for part in parts]))

    def _difference(self, row: int, step: float) -> Array:
        """One-sided differences of log tasks by certified solves, NaN where two steps do not agree."""
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
    """Solves of the mechanism whose `certify` judges; `None` if that is nobody's, as of an allocation from a file."""
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
            if by == "counts":  # all capacities of a type
                some = merge(seen, users=False).server_of == k
            values[some] *= np.exp(step)
            cluster = seen.replace(**{field: values})
        return np.asarray(rule.solve(cluster, 1e-9, start=None).arrays.user_tasks)

    return solved
