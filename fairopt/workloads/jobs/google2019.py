"""The machines of Google's cluster trace of 2019 (clusterdata 2019, v3), one cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._libraries import pd, pq
from ...errors import DataError
from .. import google2011
from .._csv import locate

_LAYOUT = "a folder with machine_events-*.parquet"
_REMOVE = 2


def machines(directory: str | Path) -> pd.DataFrame:
    """Every machine that was ever there with its last known capacity: columns `cpu`, `memory`, index `machine`.

    Rows of the file are in no order of time, and some lack a capacity; a machine without any is left out.

    Raises
    ------
    DataError
        No such trace, or it cannot be read.
    """
    folder = locate(directory, "google-2019", lambda path: bool(_files(path)), _LAYOUT)
    parts = []
    for path in _files(folder):
        try:
            parts.append(pq.read_table(path, columns=["time", "machine_id", "type", "capacity"]).flatten().to_pandas())
        except (OSError, ValueError, KeyError) as error:
            raise DataError(f"{path} cannot be read: {error}; fetch it again") from None
    events = pd.concat(parts, ignore_index=True).sort_values("time", kind="stable")
    events = events.rename(columns={"machine_id": "machine", "capacity.cpus": "cpu", "capacity.memory": "memory"})
    known = events[(events["type"] != _REMOVE) & np.isfinite(events[["cpu", "memory"]]).all(axis=1)]
    last = known.drop_duplicates("machine", keep="last").set_index("machine").sort_index()
    return last[list(google2011.RESOURCES)]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("machine_events-*.parquet"))
