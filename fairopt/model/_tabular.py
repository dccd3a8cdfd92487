"""A cluster as files and as tables: what `Cluster` reads, writes and shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from . import _csv_files, _names, cluster_file
from ._immutable import Sealed
from ._validate import ARGUMENTS

if TYPE_CHECKING:
    import pandas as pd


class Tabular(Sealed):
    """The part of `Cluster` that knows of files and data frames."""

    capacity: NDArray[np.float64]
    demand: NDArray[np.float64]
    weight: NDArray[np.float64]
    eligible: NDArray[np.bool_]
    max_tasks: NDArray[np.float64]
    resources: tuple[str, ...]
    users: tuple[str, ...]
    servers: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(users, servers, resources)."""
        return len(self.users), len(self.servers), len(self.resources)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a cluster file (TOML; JSON or CSV by its suffix): `docs/cluster-file.md`. Errors name the line."""
        if Path(path).suffix.lower() == ".csv":
            return cls.from_csv(path)
        source = cluster_file.read(path)
        try:
            return cls(**source.arguments)
        except DataError as error:
            raise source.locate(error) from None

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
        return _csv_files.read(cls, file, users, eligible)

    def save(self, path: str | Path) -> None:
        """Write a cluster file that `load` reads back unchanged."""
        arguments = {name: getattr(self, name) for name in ARGUMENTS}
        if Path(path).suffix.lower() == ".csv":
            _csv_files.write(path, arguments)
        else:
            cluster_file.write(path, arguments)

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Three tables: `servers` (capacities), `users` (demands, weight, max_tasks) and `eligible`."""
        from . import _frames

        names = self.servers, self.users, self.resources
        return _frames.to_frames(*names, self.capacity, self.demand, self.weight, self.max_tasks, self.eligible)

    @classmethod
    def from_frames(cls, servers: pd.DataFrame, users: pd.DataFrame, eligible: pd.DataFrame | None = None) -> Self:
        """From tables with a row per server and per user, under their names, and a column per resource.

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
        frames = self.to_frames() if n * i <= 64 else {}
        return "\n".join([text, *(frames[name].to_string() for name in ("servers", "users") if frames)])

    def _repr_html_(self) -> str:
        n, i, r = self.shape
        frames = self.to_frames()
        return f"<p>{n} users, {i} servers, {r} resources</p>" + "".join(
            frames[name].to_html(max_rows=12) for name in ("servers", "users")
        )
