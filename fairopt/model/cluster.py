"""`Cluster`: capacities of servers, and demands and constraints of users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..base import names as _names
from ..base.errors import DataError
from ..base.names import label, short
from . import _arrays, _intake, _validate, cluster_file
from ._arrays import Array, Index, Mask, frozen, read_only
from ._validate import ARGUMENTS

if TYPE_CHECKING:
    import pandas as pd


class Cluster:
    r"""Servers with several divisible resources, and users that share them; immutable, including copies and pickles.

    Tasks x of users on servers are feasible if

    .. math:: \sum_n x_{ni} d_{nr} \le c_{ir}, \qquad \sum_i x_{ni} \le q_n, \qquad
        x_{ni} \ge 0, \text{ and } x_{ni} = 0 \text{ where n is not eligible on i}

    Parameters
    ----------
    capacity : (servers, resources)
        :math:`c_{ir} \ge 0`, in resource units; 0 if the server lacks the resource.
    demand : (users, resources)
        :math:`d_{nr} \ge 0`, in resource units per task, with a positive entry for every user. A sparse matrix of
        SciPy, or a dict of dicts of amounts by user and resource (`resources` must then list all resources), stays
        sparse above a million entries: `SparseCluster`.
    weight : (users,) or float, optional
        :math:`\phi_n > 0`, dimensionless. Default: 1.
    eligible : (users, servers) of bool, or dict of lists, optional
        Placement constraints. A dict has lists of servers' names by user; users that are not in the dict are eligible
        on all servers. Default: all pairs are eligible.
    max_tasks : (users,) or float, optional
        Task limits :math:`q_n \ge 0`, in tasks. Default: infinite.
    resources, users, servers : iterable of str, optional
        Distinct names. Default: `resource1`, `user1`, `server1`, ...
    rate : (users, servers) or float, or dict of dicts, optional
        :math:`a_{ni} \ge 0`, work of a task of n on i per unit of time, in a unit that each user may choose: the work
        of n is :math:`w_n = \sum_i a_{ni} x_{ni}`. A rate of 0 makes the pair ineligible. A dict has rates by user and
        server; a pair that is not in the dict has the rate 1. Default: 1, so that work equals tasks. If users have
        limited time of their own, such as jobs that run at most one task at a time, `max_tasks` is that limit.

    Raises
    ------
    DataError
        Data are invalid; the message names the user, server or resource, and the remedy.

    Notes
    -----
    Arrays are read-only, with axes in the order (users n, servers i, resources r). Data frames and series are aligned
    by their labels, which also serve as default names. Masked arrays, complex numbers, dates and text are rejected.
    Nonzero finite numbers must lie between 1e-50 and 1e50.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=["ann", "bob"], resources=["cpu", "ram"])
    >>> cluster.gamma.round(3).tolist()
    [[4.5], [3.0]]
    """

    capacity: Array
    demand: Array
    weight: Array
    eligible: Mask
    max_tasks: Array
    resources: tuple[str, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]
    rate: Array

    def __init__(
        self,
        capacity: ArrayLike,
        demand: ArrayLike,
        weight: ArrayLike | None = None,
        eligible: ArrayLike | Mapping[str, Iterable[str]] | None = None,
        max_tasks: ArrayLike | None = None,
        resources: Iterable[object] | None = None,
        users: Iterable[object] | None = None,
        servers: Iterable[object] | None = None,
        rate: ArrayLike | Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        given = capacity, demand, weight, eligible, max_tasks, resources, users, servers, rate
        data = _intake.unpacked(dict(zip(ARGUMENTS, given, strict=True)))
        self.__dict__.update(_validate.cluster(data))
        if _intake.packed(data["demand"]):
            object.__setattr__(self, "__class__", SparseCluster)

    # -- derived quantities (theory: gamma, shares) ----------------------------------------------

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of users, servers and resources."""
        return len(self.users), len(self.servers), len(self.resources)

    @cached_property
    def gamma0(self) -> Array:
        r"""Monopoly tasks of n on i without placement constraints, (users, servers), in tasks.

        .. math:: \gamma^0_{ni} = \min_{r : d_{nr} > 0} c_{ir} / d_{nr}
        """
        tasks = _arrays.table(self.shape[:2], "fairopt.merge(cluster) has one server of each type")
        tasks.fill(np.inf)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for capacity, demand in zip(self.capacity.T, self.demand.T, strict=True):
                # If the demand is 0, the ratio is infinite or NaN, which does not affect the minimum by fmin.
                np.fmin(tasks, capacity[None, :] / demand[:, None], out=tasks)
        return read_only(tasks)

    @cached_property
    def gamma(self) -> Array:
        """Monopoly tasks of n on i, (users, servers), in tasks: `gamma0`, and 0 where n is not eligible."""
        return read_only(self.gamma0 * self.eligible) if self.constrained else self.gamma0

    @cached_property
    def usable(self) -> Mask:
        """Mask (users, servers) of pairs that are eligible and have all resources that the user demands."""
        return read_only(self.gamma > 0)

    @cached_property
    def constrained(self) -> bool:
        """True if some user is not eligible on some server."""
        return any(self.eligible.strides) and not bool(self.eligible.all())

    @cached_property
    def rated(self) -> bool:
        """True if some rate is not 1, so that work differs from tasks."""
        return any(self.rate.strides)

    @cached_property
    def monopoly_work(self) -> Array:
        r"""Work of n alone on i, :math:`a_{ni} \gamma_{ni}`, (users, servers)."""
        return read_only(self.gamma * self.rate) if self.rated else self.gamma

    def work(self, tasks: Array) -> Array:
        r"""Work of each user, :math:`w_n = \sum_i a_{ni} x_{ni}`, (users,), of tasks (users, servers)."""
        return np.asarray((tasks * self.rate if self.rated else tasks).sum(axis=1))

    def tasks_of(self, work: Array) -> Array:
        """Tasks (users, servers) that do the given work (users, servers); 0 where the rate is 0."""
        return _arrays.ratio(work, self.rate) if self.rated else work

    @property
    def _eligible_rate(self) -> Array:
        """Rates, and 0 where the user is not eligible, (users, servers)."""
        return np.where(self.eligible, self.rate, 0.0)

    @cached_property
    def runnable(self) -> Mask:
        """Mask (users,) of users that can run tasks on some server."""
        somewhere = _arrays.runnable(self.capacity, self.demand, self.eligible if self.constrained else None)
        return read_only(somewhere & (self.max_tasks > 0))

    @cached_property
    def pooled_capacity(self) -> Array:
        r"""Total capacity :math:`C_r = \sum_i c_{ir}`, (resources,), in resource units."""
        return read_only(self.capacity.sum(axis=0))

    @cached_property
    def share_per_task(self) -> Array:
        """Share of a resource per task, :math:`d_{nr} / C_r`, (users, resources).

        It is 0 where :math:`d_{nr} = 0`, and infinite where :math:`C_r = 0` and :math:`d_{nr} > 0`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.demand > 0, self.demand / self.pooled_capacity, 0.0)
        return read_only(share)

    @cached_property
    def dominant_share_per_task(self) -> Array:
        r"""Dominant share per task, :math:`\max_r d_{nr} / C_r`, (users,)."""
        return read_only(self.share_per_task.max(axis=1))

    @cached_property
    def dominant_resource(self) -> Index:
        """Index of the resource with the largest share per task, (users,); in a tie the smallest index."""
        return read_only(self.share_per_task.argmax(axis=1))

    @cached_property
    def normalised_demand(self) -> Array:
        r"""Normalised demands :math:`\gamma_{ni} d_{nr} / c_{ir}`, (users, servers, resources); 0 if unusable."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.gamma[:, :, None] * self.demand[:, None, :] / self.capacity[None, :, :]
        return read_only(np.where(self.usable[:, :, None] & (self.demand[:, None, :] > 0), scaled, 0.0))

    def used(self, tasks: Array) -> Array:
        r"""Use :math:`\sum_n x_{ni} d_{nr}`, (servers, resources), in resource units, by tasks (users, servers).

        Tasks (users,) on one server yield (resources,).
        """
        return np.asarray(tasks.T @ self.demand)

    # -- other clusters --------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Cluster:
        """Copy the cluster with some of the constructor's arguments changed.

        Raises
        ------
        DataError
            The constructor has no such argument, or rejects the value.
        """
        if unknown := set(changes) - set(ARGUMENTS):
            raise DataError(f"a cluster has no {', '.join(sorted(unknown))}; it has {', '.join(ARGUMENTS)}")
        # A rate of 0 has made the pair ineligible; new rates make it eligible again.
        if "rate" in changes and self.rated and "eligible" not in changes:
            changes = changes | {"eligible": self.eligible | (self.rate == 0)}
        return Cluster(**self._arguments() | ({} if self.rated else {"rate": None}) | changes)

    __replace__ = replace  # copy.replace of Python 3.13

    def derived(self, **changes: Any) -> Cluster:
        """Copy with changed data, which must be derived from valid data, without validation.

        `eligible=None` makes all pairs eligible, and `rate=None` all rates 1.
        """
        data = self._arguments() | changes
        if data["eligible"] is None:
            data["eligible"] = _intake.eligibility(None, data["users"], data["servers"])
        if data["rate"] is None or not any(data["rate"].strides):
            data["rate"] = _intake.rates(None, data["users"], data["servers"])
        new = object.__new__(type(self))
        names = {name: tuple(v) for name, v in data.items() if isinstance(v, list | tuple)}
        arrays = {name: frozen(v) for name, v in data.items() if isinstance(v, np.ndarray)}
        new.__dict__.update(data | names | arrays)
        return new

    def _arguments(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ARGUMENTS}

    def select(
        self,
        users: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
    ) -> Cluster:
        """Restrict the cluster to the named users, servers and resources, in the given order; None keeps all.

        Raises
        ------
        DataError
            There is no such user, server or resource, or a remaining user demands none of the named resources.
        """
        wanted = {"users": users, "servers": servers, "resources": resources}
        n, i, r = (self._indices(axis, names) for axis, names in wanted.items())
        return Cluster(
            self.capacity[np.ix_(i, r)],
            self.demand[np.ix_(n, r)],
            self.weight[n],
            self.eligible[np.ix_(n, i)] if self.constrained else None,
            self.max_tasks[n],
            [self.resources[k] for k in r],
            [self.users[k] for k in n],
            [self.servers[k] for k in i],
            self.rate[np.ix_(n, i)] if self.rated else None,
        )

    def _indices(self, axis: str, wanted: Any) -> Index:
        known: tuple[str, ...] = getattr(self, axis)
        if wanted is None:
            return np.arange(len(known))
        wanted = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else list(wanted)
        where = {name: index for index, name in enumerate(known)}
        for place, name in enumerate(wanted):
            wanted[place] = label(name, axis[:-1]) if isinstance(name, Real) and name == name else name
            if not isinstance(wanted[place], str) or wanted[place] not in where:
                raise DataError(f"there is no {short(name)} among the {axis}: {_names.some(known)}")
        return np.array([where[name] for name in wanted], dtype=np.intp)

    def drop_user(self, user: str) -> Cluster:
        """Remove a user.

        Raises
        ------
        DataError
            There is no such user, or no other user.
        """
        gone = self._indices("users", [user])[0]
        if len(self.users) == 1:
            raise DataError(f"user {user!r} is the only one; a cluster needs at least one user")
        return self.select(users=[name for n, name in enumerate(self.users) if n != gone])

    def _with_row(self, argument: str, axis: str, name: str, value: Any) -> Cluster:
        changed = np.array(getattr(self, argument))
        row = int(self._indices(axis, [name])[0])
        if changed.ndim > 1:
            columns = "server" if argument in ("eligible", "rate") else "resource"
            value = _validate.row(value, argument, getattr(self, f"{columns}s"), columns)
        if argument == "eligible":
            value = _intake.eligibility([value], [name], self.servers)[0]
        new = _intake.plain(value, f"{argument} of {name!r}", (axis, row, argument), argument == "eligible")
        if new.shape != changed[row].shape:
            raise DataError(f"{argument} of {name!r} must have shape {changed[row].shape}; got {new.shape}")
        changed[row] = new
        return self.replace(**{argument: changed})

    def with_demand(self, user: str, demand: ArrayLike) -> Cluster:
        """Copy in which `user` has the given demand, (resources,), in resource units per task.

        Raises
        ------
        DataError
            There is no such user, or the demand is invalid.
        """
        return self._with_row("demand", "users", user, demand)

    def with_weight(self, user: str, weight: float) -> Cluster:
        """Copy in which `user` has the given weight.

        Raises
        ------
        DataError
            There is no such user, or the weight is not in the range of `Cluster`.
        """
        return self._with_row("weight", "users", user, weight)

    def with_eligible(self, user: str, eligible: ArrayLike) -> Cluster:
        """Copy in which `user` has the given eligibility, (servers,) of bool.

        Raises
        ------
        DataError
            There is no such user, or the entries are not truth values, one per server.
        """
        return self._with_row("eligible", "users", user, eligible)

    def with_rate(self, user: str, rate: ArrayLike) -> Cluster:
        """Copy in which `user` has the given rates, (servers,).

        Raises
        ------
        DataError
            There is no such user, or the rates are invalid.
        """
        return self._with_row("rate", "users", user, rate)

    def with_max_tasks(self, user: str, max_tasks: float) -> Cluster:
        """Copy in which `user` has the given task limit, in tasks.

        Raises
        ------
        DataError
            There is no such user, or the limit is invalid.
        """
        return self._with_row("max_tasks", "users", user, max_tasks)

    def with_capacity(self, server: str, capacity: ArrayLike) -> Cluster:
        """Copy in which `server` has the given capacities, (resources,), in resource units.

        Raises
        ------
        DataError
            There is no such server, or the capacities are invalid.
        """
        return self._with_row("capacity", "servers", server, capacity)

    def pool(self) -> Cluster:
        """Pool all servers into one server, on which a user is eligible if it is eligible on any server.

        A cluster of one server is returned unchanged.

        Raises
        ------
        DataError
            A user's rates differ between servers.
        """
        if len(self.servers) == 1:
            return self
        self.check_one_rate("a pool has one rate per user")
        eligible = self.eligible.any(axis=1, keepdims=True) if self.constrained else None
        rate = self._eligible_rate.max(axis=1, keepdims=True) if self.rated else None
        return self.derived(capacity=self.pooled_capacity[None, :], eligible=eligible, servers=("pool",), rate=rate)

    def check_one_rate(self, why: str) -> None:
        """Raise `DataError` if a user's rates differ between the servers on which it is eligible."""
        if not self.rated:
            return
        least, most = np.where(self.eligible, self.rate, np.inf).min(axis=1), self._eligible_rate.max(axis=1)
        for n in np.flatnonzero(self.eligible.any(axis=1) & (least < most))[:1].tolist():
            raise DataError(
                f"user {self.users[n]!r} works at rates from {least[n]:g} to {most[n]:g}, and {why}: choose TSF, "
                "AlphaFair(share='alone'), CEEI('servers'), PSDSF or AlphaPFVDS, which are in work, or drop the rates "
                "with cluster.replace(rate=None)",
                ("users", n, "rate"),
            )

    # -- files and tables ------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a cluster file (docs/cluster-file.md): JSON or CSV if it has that suffix, and TOML otherwise.

        Raises
        ------
        DataError
            The file is missing or invalid; the message names file, line (not in JSON) and remedy.
        """
        return cluster_file.read(path).made(cls)

    @classmethod
    def from_csv(cls, file: str | Path, users: str | Path | None = None, eligible: str | Path | None = None) -> Self:
        """Read CSV: a single file with a row per server and per user, or one file of servers and one of users.

        Parameters
        ----------
        file : str or Path
            The single file, whose column `kind` has `server` or `user`; with `users`, the servers' file.
        users : str or Path, optional
            The users' file.
        eligible : str or Path, optional
            A file (users, servers) of 1 and 0; only with two files.

        Columns are `name`, `count` (number of identical servers), `weight`, `max_tasks`, `rate` (a number, or such as
        `k80=1;v100=3`), in the single file `eligible` (servers' names separated by semicolons), and one per resource.
        Empty cells are 0 for resources, and the default otherwise. docs/cluster-file.md has examples.

        Raises
        ------
        DataError
            A file is invalid; the message names file, line and remedy.
        """
        return cluster_file.read_csv(file, users, eligible).made(cls)

    def save(self, path: str | Path) -> None:
        """Write a cluster file, from which `load` restores the cluster exactly.

        The suffix determines the format: `.json`, `.csv`, and `.toml` or none for TOML.

        Raises
        ------
        DataError
            The suffix is another one, or the file cannot be written.
        """
        cluster_file.write(Path(path), self)

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Convert to frames `servers`, `users`, `eligible`, and `rate` if some rate is not 1, as in `from_frames`."""
        from . import _frames

        return _frames.to_frames(self)

    @classmethod
    def from_frames(
        cls,
        servers: pd.DataFrame,
        users: pd.DataFrame,
        eligible: pd.DataFrame | None = None,
        rate: pd.DataFrame | None = None,
    ) -> Self:
        """Construct a cluster from frames indexed by names of servers and users, with a column per resource.

        Parameters
        ----------
        servers : DataFrame
            Capacities; an optional column `count` has numbers of identical servers, named `name-1`, `name-2`, ...
        users : DataFrame
            Demands per task, and optionally `weight` and `max_tasks`.
        eligible : DataFrame, optional
            Booleans (users, servers); a column may stand for all copies of a row of `servers`. Default: True.
        rate : DataFrame, optional
            Rates, with the same axes. Default: 1.

        `to_frames` returns such frames. If users have a column `count`, too, it is a resource.

        Raises
        ------
        DataError
            Names do not agree between frames, or data are invalid.
        """
        from . import _frames

        return cls(**_frames.arguments(servers, users, eligible, rate))

    def __repr__(self) -> str:
        n, i, r = self.shape
        text = f"Cluster({n} users, {i} servers, {r} resources: {_names.some(self.resources)})"
        frames = self._shown() if n * i <= 64 else []
        return "\n".join([text, *(frame.to_string() for frame in frames)])

    def _repr_html_(self) -> str:
        n, i, r = self.shape
        tables = "".join(frame.to_html(max_rows=12, max_cols=12) for frame in self._shown())
        return f"<p>{n} users, {i} servers, {r} resources</p>{tables}"

    def _shown(self) -> list[pd.DataFrame]:
        """Frames to display: servers, users, eligibility if there are placement constraints, and rates other than 1."""
        from . import _frames

        return list(_frames.to_frames(self, self.constrained).values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cluster):
            return NotImplemented
        if self.shape != other.shape:
            return False
        default = [name for name, kind in (("eligible", "constrained"), ("rate", "rated"))
                   if not (getattr(self, kind) or getattr(other, kind))]  # fmt: skip
        names = (name for name in ARGUMENTS if name not in default)
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle by the constructor, so that the result is validated, read-only, and without caches."""
        given = self._arguments() | ({} if self.constrained else {"eligible": None})
        given |= {} if self.rated else {"rate": None}
        return type(self), tuple(given.values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Cluster is immutable; use replace({name}=...) for a changed copy")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Cluster is immutable; {name} cannot be deleted")


class SparseCluster(Cluster):
    """Cluster of more than a million pairs (user, resource) with a sparse demand, for max-min mechanisms on a pool.

    `Cluster(capacity, demand)` returns a `SparseCluster` if the demand is sparse. Methods that need a dense demand
    raise `DataError`. Two sparse clusters are equal only if they are the same object.

    >>> import scipy.sparse, fairopt as fo
    >>> cluster = fo.Cluster([[1.0] * 2000], scipy.sparse.eye_array(2000).tocsr())
    >>> cluster.sparse_demand.nnz, fo.DRF().solve(cluster).user_tasks.tolist()[:2]
    (2000, [1.0, 1.0])
    """

    @property
    def sparse_demand(self) -> Any:
        """The demand, (users, resources) in SciPy's format of compressed rows, without zeros."""
        return vars(self)["demand"]

    @property
    def demand(self) -> Array:  # type: ignore[override]
        """Not available: access raises `DataError`; use `sparse_demand` instead."""
        raise DataError(
            f"the demand of these {self.shape[0]:,} users for {self.shape[2]:,} resources is sparse, and only max-min "
            "on one pool takes it as it is, such as DRF and asset fairness; where memory suffices, give "
            "cluster.sparse_demand.toarray()"
        )

    def _of_rows(self, how: np.ufunc, values: Array) -> Array:
        """Reduce values of the nonzero demands, (..., nonzeros), by user."""
        return np.asarray(how.reduceat(values, self.sparse_demand.indptr[:-1], axis=-1))

    @cached_property
    def gamma0(self) -> Array:
        """Monopoly tasks of n on i without placement constraints, (users, servers), in tasks."""
        demand = self.sparse_demand
        tasks = [self._of_rows(np.minimum, row[demand.indices] / demand.data) for row in self.capacity]
        return read_only(np.stack(tasks, axis=1))

    @cached_property
    def runnable(self) -> Mask:
        """Mask (users,) of users that can run tasks on some server."""
        return read_only(self.gamma.any(axis=1) & (self.max_tasks > 0))

    @cached_property
    def share_per_task(self) -> Any:
        """Share of a resource per task, (users, resources), in the format of `sparse_demand`."""
        share = self.sparse_demand.copy()
        with np.errstate(divide="ignore"):
            share.data = share.data / self.pooled_capacity[share.indices]
        return share

    @cached_property
    def dominant_share_per_task(self) -> Array:
        """Dominant share per task, (users,)."""
        return read_only(self._of_rows(np.maximum, self.share_per_task.data))

    def used(self, tasks: Array) -> Array:
        """Use, (servers, resources), in resource units, by tasks (users, servers); (resources,) by tasks (users,)."""
        return np.asarray(tasks.T @ self.sparse_demand)

    def _shown(self) -> list[pd.DataFrame]:
        return []

    __eq__ = object.__eq__  # by identity
    __hash__ = None


def expected(cluster: object, in_tasks: str = "") -> Cluster:
    """Return the argument if it is a cluster; if `in_tasks` names a quantity in tasks, a dense cluster without rates.

    Raises
    ------
    DataError
        The argument is not such a cluster; the message says how to obtain one.
    """
    if isinstance(cluster, Cluster):
        if in_tasks and cluster.demand.size and cluster.rated:  # a sparse demand raises an error of its own
            raise DataError(
                f"{in_tasks} are in tasks, and this cluster has rates of work: drop them with "
                "cluster.replace(rate=None), or multiply capacities by rates that are the same for all users"
            )
        return cluster
    what = getattr(cluster, "cluster", None)  # allocations and snapshots have one
    remedy = "pass its .cluster" if isinstance(what, Cluster) else "make one with fairopt.Cluster(capacity, demand)"
    if isinstance(cluster, str):
        remedy = "read a file with fairopt.Cluster.load, or an instance with fairopt.papers.instance"
    raise DataError(f"cluster is {short(cluster)}, of type {type(cluster).__name__}; {remedy}")
