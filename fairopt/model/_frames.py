"""Conversion of clusters to and from pandas; labelled data are aligned by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError
from ..base.files import Table
from ..base.libraries import pd
from ..base.names import labels, some
from . import cluster_file
from ._arrays import Array
from ._intake import labelled, plain

_USER_COLUMNS = ("weight", "max_tasks")
#: Axes of each argument of a cluster.
_AXES = {
    "capacity": ("server", "resource"),
    "demand": ("user", "resource"),
    "weight": ("user",),
    "eligible": ("user", "server"),
    "max_tasks": ("user",),
    "rate": ("user", "server"),
}


def to_frames(cluster: Any, placed: bool = True) -> dict[str, pd.DataFrame]:
    """Frames `servers` and `users` of a `Cluster`, if `placed` also `eligible`, and `rate` if some rate is not 1."""
    users, servers = pd.Index(cluster.users, name="user"), pd.Index(cluster.servers, name="server")
    demand = pd.DataFrame(cluster.demand, users, list(cluster.resources))
    return {
        "servers": pd.DataFrame(cluster.capacity, servers, list(cluster.resources)),
        "users": demand.assign(weight=cluster.weight, max_tasks=cluster.max_tasks),
    } | {
        name: pd.DataFrame(getattr(cluster, name), users, servers)
        for name, shown in (("eligible", placed), ("rate", cluster.rated))
        if shown
    }


def arguments(servers: Any, users: Any, eligible: Any = None, rate: Any = None) -> Table:
    """Arguments of `Cluster`, from frames in the format of `to_frames`, aligned by row and column names.

    Frames whose names do not agree raise `DataError`.
    """
    servers, users = _named(servers, "servers", "server", "resource"), _named(users, "users", "user", "resource")
    tables = {"eligible": eligible, "rate": rate}
    tables = {what: _named(table, what, "user", "server") for what, table in tables.items() if table is not None}
    columns = list(users.columns)
    resources = [name for name in servers.columns if name != "count" or name in columns]
    missing = [name for name in resources if name not in columns]
    extra = [name for name in columns if name not in resources and name not in _USER_COLUMNS]
    if missing or extra:
        raise DataError(
            f"the users' columns must be the servers' resources {resources}, and may add weight and max_tasks; "
            f"missing {missing}, unknown {extra}; names are the index: write users.set_index(...)"
        )
    said = {
        "resources": resources,
        "servers": _entries(servers, "capacity", resources, ("count",)),
        "users": _entries(users, "demand", resources, _USER_COLUMNS),
    }
    made, rows = cluster_file.arguments(said)
    for what, table in tables.items():
        if set(table.columns) == set(servers.index) != set(made["servers"]):
            copied = table[list(servers.index)].iloc[:, rows["servers"]]
            tables[what] = copied.set_axis(pd.Index(made["servers"], dtype=object), axis=1)
    return made | tables


def _entries(table: pd.DataFrame, amounts: str, resources: list[str], others: tuple[str, ...]) -> list[Table]:
    """Rows in the format of a cluster file; NaN stands for the default, except for weights."""
    entries = [
        {"name": name, amounts: row} for name, row in zip(table.index, _plain(table[resources]).tolist(), strict=True)
    ]
    for column in others:
        if column in table and column not in resources:
            for entry, value in zip(entries, _plain(table[column]).tolist(), strict=True):
                if column == "weight" or value == value:
                    entry[column] = value
    return entries


def aligned(given: Mapping[str, Any]) -> Table:
    """Arguments of a cluster in which arrays replace frames and series, whose labels replace default names.

    The order is that of explicit names, or else of the first labelled argument; other labels must be a permutation of
    the names, or raise `DataError`. Default integer indices of pandas count as unlabelled, unless another argument has
    labels.
    """
    given = {name: _frame(value, name) if labelled(value) else value for name, value in given.items()}
    for name in _AXES:
        _unindexed(given[name], name)
    result = dict(given)
    for axis in ("resource", "user", "server"):
        places = [(name, k) for name, axes in _AXES.items() if labelled(given[name])
                  for k, kind in enumerate(axes[: given[name].ndim]) if kind == axis]  # fmt: skip
        named = [(name, k) for name, k in places if not _numbered(given[name].axes[k])]
        wanted = given[f"{axis}s"]
        if wanted is None and named:
            wanted, named = given[named[0][0]].axes[named[0][1]], places
        if wanted is not None:
            result[f"{axis}s"] = wanted = labels(wanted, axis)
            for name, k in named:
                result[name] = result[name].take(_order(given[name].axes[k], wanted, axis, name, k), axis=k)
    return result | {name: _plain(result[name]) for name in _AXES if labelled(given[name])}


def tasks(values: Any, users: Sequence[str], servers: Sequence[str]) -> Array:
    """Tasks :math:`x_{ni}`, (users, servers), from an array, or from a frame or dict by names or by pairs of names.

    For a single server the shape (users,) is accepted, too. Servers that are missing in a dict have no tasks. Tasks of
    another shape, with other names, or that are not finite raise `DataError`.
    """
    if isinstance(values, Mapping):
        nested = {isinstance(row, Mapping) for row in values.values()}
        if len(nested) > 1:
            raise DataError("tasks are a dict of numbers and of dicts; give every user its tasks by server")
        if True in nested:
            nothing = dict.fromkeys(servers, 0.0)
            rows = {user: dict(zip(labels(row, "server"), row.values(), strict=True)) for user, row in values.items()}
            values = pd.DataFrame.from_dict({user: nothing | row for user, row in rows.items()}, orient="index")
        else:
            values = pd.Series(dict(values))
    if labelled(values) and isinstance(values, pd.Series) and values.index.nlevels == 2:
        for user, server in values.index[values.index.duplicated()][:1]:
            raise DataError(f"tasks have two entries for user {user!r} on server {server!r}; give one")
        return tasks({user: row.droplevel(0).to_dict() for user, row in values.groupby(level=0)}, users, servers)
    if labelled(values):
        values = in_order(values, "tasks", ("user", users), ("server", servers))
    table = plain(values, "tasks")
    if table.shape == (len(users),) and len(servers) == 1:
        return table[:, None]
    if table.shape == (len(users),):
        raise DataError(
            f"tasks are one number per user, and there are {len(servers)} servers; give tasks per server, or judge "
            "them on cluster.pool()"
        )
    if table.shape != (len(users), len(servers)):
        raise DataError(f"tasks must have shape (users, servers) = {len(users), len(servers)}; got {table.shape}")
    for n, i in np.argwhere(~np.isfinite(table))[:1].tolist():
        raise DataError(f"user {users[n]!r} has {table[n, i]:g} tasks on {servers[i]!r}; tasks must be finite numbers")
    return table


def in_order(values: Any, argument: str, *axes: tuple[str, Sequence[str]]) -> NDArray[Any]:
    """Values of a labelled object, in the order of the names in `axes`; other labels raise `DataError`."""
    table = _frame(values, argument)
    for k, (axis, names) in enumerate(axes[: table.ndim] if table.ndim <= len(axes) else ()):
        if not _numbered(table.axes[k]):
            place = k if len(axes) > 1 else 2
            table = table.take(_order(table.axes[k], names, axis, argument, place), axis=k)
    return _plain(table)


def _frame(values: Any, what: str) -> pd.DataFrame | pd.Series:
    """Convert a labelled object to pandas with its labels; raises `DataError` if that is impossible."""
    if isinstance(values, pd.DataFrame | pd.Series):
        return values
    found = values.to_pandas() if hasattr(values, "to_pandas") else None
    if not isinstance(found, pd.DataFrame | pd.Series):
        raise DataError(
            f"{what} is of type {type(values).__name__}, whose labels would be ignored; make it a pandas DataFrame"
        )
    return found


def _order(index: pd.Index, wanted: Sequence[str], axis: str, argument: str, k: int) -> list[int]:
    """Positions of the wanted names in an index; `DataError` unless the index is a permutation of these names."""
    places = {name: place for place, name in enumerate(labels(index, axis))}
    missing = [name for name in wanted if name not in places]
    if missing or len(places) != len(wanted):
        unknown = [name for name in places if name not in wanted]
        raise DataError(
            f"{argument} must have {('a row', 'a column', 'an entry')[k]} per {axis}, under its name; "
            f"missing: {some(missing) or 'none'}; unknown: {some(unknown) or 'none'}"
        )
    return [places[name] for name in wanted]


def _numbered(index: pd.Index) -> bool:
    """True for a default integer index of pandas."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _named(table: Any, what: str, rows: str, columns: str) -> pd.DataFrame:
    """Frame with its labels converted to text; anything but a frame raises `DataError`."""
    if not labelled(table) or not isinstance(table := _frame(table, what), pd.DataFrame):
        raise DataError(f"{what} is of type {type(table).__name__}; it must be a DataFrame, as to_frames makes it")
    _unindexed(table, what)
    index = pd.Index(labels(table.index, rows), dtype=object)
    return table.set_axis(index).set_axis(pd.Index(labels(table.columns, columns), dtype=object), axis=1)


def _unindexed(table: Any, what: str) -> None:
    """Raise `DataError` for a frame with names in a column instead of the index."""
    if not isinstance(table, pd.DataFrame) or not _numbered(table.index):
        return
    for name, column in table.items():
        if not pd.api.types.is_numeric_dtype(column) and all(isinstance(value, str) for value in column):
            raise DataError(
                f"{what} has text in column {name!r}, and its rows are only numbered; if these are names, write "
                f"{what}.set_index({name!r})"
            )


def _plain(table: pd.DataFrame | pd.Series) -> NDArray[Any]:
    """Convert to an array, numeric if possible, with NaN for missing values."""
    kinds = table.dtypes if isinstance(table, pd.DataFrame) else [table.dtype]
    if all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds):
        return np.asarray(table.to_numpy())
    return np.asarray(table.to_numpy(dtype=object, na_value=np.nan))
