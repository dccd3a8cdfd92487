"""One cluster, many mechanisms, one row each."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from .. import mechanisms
from .._progress import tqdm
from ..errors import DataError, FairoptError
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from .pooled import marked, pooled


def compare(
    cluster: Cluster,
    chosen: Iterable[str | Mechanism] | None = None,
    *,
    tol: float | None = None,
    solver: str | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Solve a cluster with several mechanisms.

    Parameters
    ----------
    chosen : names such as `"drfh"` or `"alphapf-vds(alpha=3)"`, or mechanisms; by default all registered ones
    tol, solver : as in `Mechanism.solve`
    progress : show a progress bar

    Returns
    -------
    A frame with one row per mechanism: tasks in all, smallest and largest weighted dominant share, utilization per
    resource (`use_...`), Jain's index of weighted dominant shares, welfare (sum of dominant shares), certificate,
    seconds, and `status`: `ok`, `not applicable: ...`, or the error of a mechanism that failed (its numbers are then
    missing). Single-pool mechanisms are solved on the pool: where there are several servers these rows are `pooled`,
    marked (`DRF*`), and stand last, as their tasks need not fit on the servers.
    """
    picked: list[Mechanism] = []
    for item in mechanisms.names() if chosen is None else chosen:
        picked += mechanisms.parse(item) if isinstance(item, str) else [item]
    rows = []
    for mechanism in tqdm(picked, disable=None if progress else True, unit="mechanism", leave=False):
        row: dict[str, object] = {"mechanism": str(mechanism), "pooled": False}
        try:
            allocation = mechanism.solve(cluster, tol, solver=solver)
            row |= allocation.summary() | {"status": "ok", "notes": "; ".join(allocation.notes)}
            row["pooled"] = pooled(cluster, allocation)
        except DataError as error:
            row |= {"status": f"not applicable: {error}"}
        except FairoptError as error:
            row |= {"status": f"{type(error).__name__}: {error}"}
        rows.append(row)
    columns = ["mechanism", "tasks", "min_share", "max_share", *(f"use_{name}" for name in cluster.resources)]
    columns += ["jain", "welfare", "certificate", "seconds", "pooled", "status", "notes"]
    frame = pd.DataFrame(rows, columns=columns).sort_values("pooled", kind="stable")
    frame["mechanism"] = marked(frame["mechanism"], frame["pooled"])
    return frame.set_index("mechanism")
