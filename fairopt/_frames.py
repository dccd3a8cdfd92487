"""A cluster as pandas tables, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .errors import DataError

if TYPE_CHECKING:
    from .cluster import Cluster

_USER_COLUMNS = {"weight": 1.0, "max_tasks": np.inf}


def to_frames(cluster: Cluster) -> dict[str, pd.DataFrame]:
    """The tables `servers`, `users` and `eligible` of a cluster."""
    servers = pd.Index(cluster.servers, name="server")
    users = pd.Index(cluster.users, name="user")
    demand = pd.DataFrame(cluster.demand, index=users, columns=list(cluster.resources))
    return {
        "servers": pd.DataFrame(cluster.capacity, index=servers, columns=list(cluster.resources)),
        "users": demand.assign(weight=cluster.weight, max_tasks=cluster.max_tasks),
        "eligible": pd.DataFrame(cluster.eligible, index=users, columns=servers),
    }


def arguments(servers: pd.DataFrame, users: pd.DataFrame, eligible: pd.DataFrame | None) -> dict[str, Any]:
    """The constructor's arguments; columns are matched by name, in the order of `servers`."""
    resources = list(servers.columns)
    missing = [name for name in resources if name not in users.columns]
    extra = [name for name in users.columns if name not in resources and name not in _USER_COLUMNS]
    if missing or extra:
        raise DataError(
            f"the users' columns must be the servers' resources {resources}, and may add weight and max_tasks; "
            f"missing {missing}, unknown {extra}"
        )
    result: dict[str, Any] = {
        "capacity": servers.to_numpy(dtype=float),
        "demand": users[resources].to_numpy(dtype=float),
        "resources": resources,
        "users": list(users.index),
        "servers": list(servers.index),
    }
    for name, default in _USER_COLUMNS.items():
        if name in users.columns:
            result[name] = users[name].fillna(default).to_numpy(dtype=float)
    if eligible is not None:
        try:
            result["eligible"] = eligible.loc[list(users.index), list(servers.index)].to_numpy()
        except KeyError as error:
            raise DataError(f"eligible must have a row per user and a column per server: {error}") from None
    return result
