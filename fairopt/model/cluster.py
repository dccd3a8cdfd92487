"""`Cluster`: who wants what, and what there is. It knows nothing of fairness."""

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
    """Servers with several resources, and the users who share them. Immutable, as are its copies and pickles.

    Parameters
    ----------
    capacity : (servers, resources)
        `c[i,r] >= 0`, in resource units. Zero: the server lacks the resource.
    demand : (users, resources)
        `d[n,r] >= 0`, in resource units per task. Every user needs something.
    weight : (users,) or a number, optional
        `phi[n] > 0`. Default: 1 for everyone.
    eligible : (users, servers) of bool, or a dict of lists, optional
        Placement constraints: may n run on i? A dict has lists of servers' names by user; who is not in it may run
        everywhere. Default: everybody may.
    max_tasks : (users,) or a number, optional
        `q[n] >= 0`, the most tasks that n has to run. Default: infinite.
    resources, users, servers : names, optional
        Distinct. Default: `resource1`, `user1`, `server1`, ...

    Raises
    ------
    DataError
        Naming the user, server or resource at fault, and the remedy.

    Notes
    -----
    Arrays are read-only and their axes are always (users n, servers i, resources r). Data frames and series count by
    their labels: they may stand in any order, and give the names if none are given. Masked arrays, complex numbers,
    dates and text are not numbers. Numbers that are neither 0 nor infinite are from 1e-50 to 1e50.
    """

    capacity: Array
    demand: Array
    weight: Array
    eligible: Mask
    max_tasks: Array
    resources: tuple[str, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]

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
    ) -> None:
        given = capacity, demand, weight, eligible, max_tasks, resources, users, servers
        self.__dict__.update(_validate.cluster(dict(zip(ARGUMENTS, given, strict=True))))

    # -- derived quantities (theory: gamma, shares) ----------------------------------------------

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """(users, servers, resources)."""
        return len(self.users), len(self.servers), len(self.resources)

    @cached_property
    def gamma0(self) -> Array:
        """Monopoly tasks `min_{r: d[n,r]>0} c[i,r]/d[n,r]`, placement ignored, (users, servers), in tasks."""
        tasks = np.full(self.shape[:2], np.inf)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for capacity, demand in zip(self.capacity.T, self.demand.T, strict=True):
                np.fmin(tasks, capacity[None, :] / demand[:, None], out=tasks)  # what is not needed is infinite, or 0/0
        return read_only(tasks)

    @cached_property
    def gamma(self) -> Array:
        """Monopoly tasks of n on i: `gamma0`, and 0 where n may not run; (users, servers), in tasks."""
        return read_only(self.gamma0 * self.eligible) if self.constrained else self.gamma0

    @cached_property
    def usable(self) -> Mask:
        """Pairs (user, server) that can run a task: eligible, with every resource that the user needs."""
        return read_only(self.gamma > 0)

    @cached_property
    def constrained(self) -> bool:
        """True if some user is not eligible on some server."""
        return any(self.eligible.strides) and not bool(self.eligible.all())

    @cached_property
    def runnable(self) -> Mask:
        """(users,): who can run anything at all."""
        somewhere = _arrays.runnable(self.capacity, self.demand, self.eligible if self.constrained else None)
        return read_only(somewhere & (self.max_tasks > 0))

    @cached_property
    def pooled_capacity(self) -> Array:
        """`C_r = sum_i c[i,r]`, (resources,)."""
        return read_only(self.capacity.sum(axis=0))

    @cached_property
    def share_per_task(self) -> Array:
        """`d[n,r]/C_r`, (users, resources); infinite where the cluster lacks what the user needs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(self.demand > 0, self.demand / self.pooled_capacity, 0.0)
        return read_only(share)

    @cached_property
    def dominant_share_per_task(self) -> Array:
        """`k_n = max_r d[n,r]/C_r`, (users,), per task."""
        return read_only(self.share_per_task.max(axis=1))

    @cached_property
    def dominant_resource(self) -> Index:
        """The resource of which one task of n needs the largest share of the whole cluster (first one in a tie)."""
        return read_only(self.share_per_task.argmax(axis=1))

    @cached_property
    def normalised_demand(self) -> Array:
        """`D[n,i,r] = gamma[n,i] d[n,r]/c[i,r]` in [0, 1], (users, servers, resources); 0 for unusable pairs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = self.gamma[:, :, None] * self.demand[:, None, :] / self.capacity[None, :, :]
        return read_only(np.where(self.usable[:, :, None] & (self.demand[:, None, :] > 0), scaled, 0.0))

    # -- other clusters --------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Cluster:
        """A copy with some of the constructor's arguments changed; what is not named stays.

        Raises
        ------
        DataError
            The constructor has no such argument, or does not take the value.
        """
        if unknown := set(changes) - set(ARGUMENTS):
            raise DataError(f"a cluster has no {', '.join(sorted(unknown))}; it has {', '.join(ARGUMENTS)}")
        return Cluster(**self._arguments() | changes)

    __replace__ = replace  # copy.replace of Python 3.13

    def derived(self, **changes: Any) -> Cluster:
        """Replace data by arrays derived from this cluster's own, without checks; `eligible=None`: all."""
        data = self._arguments() | changes
        if data["eligible"] is None:
            data["eligible"] = _intake.eligibility(None, data["users"], data["servers"])
        new = object.__new__(Cluster)
        new.__dict__.update({name: frozen(v) if isinstance(v, np.ndarray) else tuple(v) for name, v in data.items()})
        return new

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ARGUMENTS}

    def select(
        self,
        users: Sequence[str] | None = None,
        servers: Sequence[str] | None = None,
        resources: Sequence[str] | None = None,
    ) -> Cluster:
        """Only the named users, servers and resources, in the order given."""
        wanted = {"users": users, "servers": servers, "resources": resources}
        n, i, r = (self._indices(axis, names) for axis, names in wanted.items())
        return Cluster(
            self.capacity[np.ix_(i, r)],
            self.demand[np.ix_(n, r)],
            self.weight[n],
            self.eligible[np.ix_(n, i)],
            self.max_tasks[n],
            [self.resources[k] for k in r],
            [self.users[k] for k in n],
            [self.servers[k] for k in i],
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
        """The cluster after `user` leaves.

        Raises
        ------
        DataError
            There is no such user, or no other.
        """
        gone = self._indices("users", [user])[0]
        if len(self.users) == 1:
            raise DataError(f"user {user!r} is the only one; a cluster needs at least one user")
        return self.select(users=[name for n, name in enumerate(self.users) if n != gone])

    def _with_row(self, argument: str, axis: str, name: str, value: Any) -> Cluster:
        changed = np.array(getattr(self, argument))
        row = int(self._indices(axis, [name])[0])
        if changed.ndim > 1:
            columns = "server" if argument == "eligible" else "resource"
            value = _validate.row(value, argument, getattr(self, f"{columns}s"), columns)
        if argument == "eligible":
            value = _intake.eligibility([value], [name], self.servers)[0]
        new = _intake.plain(value, f"{argument} of {name!r}", (axis, row, argument), argument == "eligible")
        if new.shape != changed[row].shape:
            raise DataError(f"{argument} of {name!r} must have shape {changed[row].shape}; got {new.shape}")
        changed[row] = new
        return self.replace(**{argument: changed})

    def with_demand(self, user: str, demand: ArrayLike) -> Cluster:
        """Cluster in which `user` reports another demand, (resources,)."""
        return self._with_row("demand", "users", user, demand)

    def with_weight(self, user: str, weight: float) -> Cluster:
        """`user` has another weight."""
        return self._with_row("weight", "users", user, weight)

    def with_eligible(self, user: str, eligible: ArrayLike) -> Cluster:
        """`user` reports other servers, (servers,) of bool."""
        return self._with_row("eligible", "users", user, eligible)

    def with_max_tasks(self, user: str, max_tasks: float) -> Cluster:
        """`user` has another number of tasks to run."""
        return self._with_row("max_tasks", "users", user, max_tasks)

    def with_capacity(self, server: str, capacity: ArrayLike) -> Cluster:
        """`server` has other capacities, (resources,)."""
        return self._with_row("capacity", "servers", server, capacity)

    def pool(self) -> Cluster:
        """One server with the capacity of all; a user may use it who may use any server."""
        if len(self.servers) == 1:
            return self
        eligible = self.eligible.any(axis=1, keepdims=True) if self.constrained else None
        return self.derived(capacity=self.pooled_capacity[None, :], eligible=eligible, servers=("pool",))

    # -- files and tables ------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file (docs/cluster-file.md): TOML; JSON or CSV by suffix. Errors name the line, not of JSON."""
        return cluster_file.read(path).made(cls)

    @classmethod
    def from_csv(cls, file: str | Path, users: str | Path | None = None, eligible: str | Path | None = None) -> Self:
        """Read CSV: one file with a row per server and a row per user, or one of servers and one of users.

        Parameters
        ----------
        file : the one file, whose column `kind` says `server` or `user`; with `users`, the servers' file
        users : the users' file
        eligible : a file with a row per user and a column per server, of 1 and 0; for two files only

        Columns are `name`, `count` (of servers: that many identical ones), `weight`, `max_tasks`, in the one file
        `eligible` (servers' names between semicolons), and one per resource. Empty cells are 0 of a resource, and the
        default of the others. docs/cluster-file.md has examples.

        Raises
        ------
        DataError
            Naming the file, the line and the remedy.
        """
        return cluster_file.read_csv(file, users, eligible).made(cls)

    def save(self, path: str | Path) -> None:
        """Write a cluster file that `load` reads back unchanged."""
        cluster_file.write(Path(path), self)

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Three tables: `servers` (capacities), `users` (demands, weight, max_tasks) and `eligible`."""
        from . import _frames

        return _frames.to_frames(self)

    @classmethod
    def from_frames(cls, servers: pd.DataFrame, users: pd.DataFrame, eligible: pd.DataFrame | None = None) -> Self:
        """Cluster from tables with a row per server and per user, under their names, and a column per resource.

        Parameters
        ----------
        servers : capacities; a column `count` makes that many identical servers, called `name-1`, `name-2`, ...
        users : demands per task, and `weight` and `max_tasks` where they are not the default
        eligible : a row per user and a column per server (or per row of `servers`, for all its copies), of true and
            false; default: everybody may run everywhere

        `to_frames` makes such tables. Where users have a column `count` too, it is a resource.
        """
        from . import _frames

        return cls(**_frames.arguments(servers, users, eligible))

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
        """Servers, users, and who may run where if not everybody may everywhere."""
        frames = self.to_frames()
        return [frames[name] for name in ("servers", "users", *(["eligible"] if self.constrained else []))]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Cluster):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ARGUMENTS)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made by the constructor: checked, read-only, and without anything computed before."""
        given = self._arguments() | ({} if self.constrained else {"eligible": None})
        return type(self), tuple(given.values())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Cluster is immutable; use replace({name}=...) for a changed copy")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Cluster is immutable; {name} cannot be deleted")


def expected(cluster: object) -> Cluster:
    """The same, if it is a cluster.

    Raises
    ------
    DataError
        It is something else; the message says how to make a cluster of it.
    """
    if isinstance(cluster, Cluster):
        return cluster
    what = getattr(cluster, "cluster", None)  # of an allocation, of a snapshot
    remedy = "pass its .cluster" if isinstance(what, Cluster) else "make one with fairopt.Cluster(capacity, demand)"
    if isinstance(cluster, str):
        remedy = "read a file with fairopt.Cluster.load, or an instance with fairopt.papers.instance"
    raise DataError(f"cluster is {short(cluster)}, of type {type(cluster).__name__}; {remedy}")
