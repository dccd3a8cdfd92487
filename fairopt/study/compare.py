"""One cluster, many mechanisms, one row each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import mechanisms
from .._libraries import pd
from .._progress import tqdm
from ..errors import DataError, FairoptError
from ..game.selection import MAYBE_OTHERS
from ..mechanisms import Mechanism
from ..model.cluster import Cluster, expected
from ..result import metrics
from ..result.allocation import Allocation


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
    cluster : what is shared, and among whom
    chosen : names such as `"drfh"` or `"alphapf-vds(alpha=3)"`, or mechanisms; by default all registered ones
    tol, solver : as in `Mechanism.solve`
    progress : show a progress bar

    Returns
    -------
    A frame with one row per mechanism: `status` (`ok`, `not applicable: ...`, or the error of a mechanism that failed,
    whose numbers are missing) and `notes`; tasks in all,
    smallest and largest weighted dominant share, utilization per resource (`use_...`) and its mean over resources,
    Jain's index of weighted dominant shares, welfare (sum of dominant shares), certificate, seconds. What is missing,
    as the use of a resource that no server has, is printed as a blank. `fairopt.plot.compare` draws the frame.
    Single-pool mechanisms are solved on the pool: where there are several servers these rows are `pooled`, marked
    (`DRF*`), and stand last, as their tasks need not fit on the servers.

    Raises
    ------
    DataError
        `cluster` is not a cluster, or `chosen` names a mechanism that there is not, or is empty. What a mechanism
        raises is in its row.
    """
    expected(cluster)
    rows = []
    for mechanism in tqdm(mechanisms.chosen(chosen), disable=None if progress else True, unit="mechanism", leave=False):
        row: dict[str, object] = {"mechanism": str(mechanism), "pooled": False}
        try:
            allocation = mechanism.solve(cluster, tol, solver=solver)
            notes = (note for note in allocation.notes if note != MAYBE_OTHERS)  # what is said of most games
            row |= allocation.summary() | {"status": "ok", "notes": "; ".join(notes)}
            row["pooled"] = pooled(cluster, allocation)
        except DataError as error:
            row |= {"status": f"not applicable: {error}"}
        except FairoptError as error:
            row |= {"status": f"{type(error).__name__}: {error}"}
        rows.append(row)
    columns = ["mechanism", "status", "notes", "pooled"]
    for name in metrics.MEASURES:
        columns += [*(f"use_{part}" for part in cluster.resources if name == "utilization"), name]
    columns += ["certificate", "seconds"]
    frame = Blank(rows, columns=columns).sort_values("pooled", kind="stable").fillna({"notes": ""})
    frame["mechanism"] = marked(frame["mechanism"], frame["pooled"])
    return frame.set_index("mechanism")


#: Stands behind the name of a mechanism that answered for the pool; `NOTE` is its footnote.
MARK = "*"
NOTE = f"{MARK} answers for the pool, as if all servers were one; their tasks need not fit on the servers"


def pooled(requested: Cluster, found: Allocation) -> bool:
    """Has the mechanism pooled the servers that it was asked about?"""
    return len(found.cluster.servers) < len(requested.servers)


def marked(labels: Iterable[object], which: Iterable[object]) -> list[str]:
    """The labels of mechanisms, marked where they answered for the pool."""
    return [f"{label}{MARK if one is True else ''}" for label, one in zip(labels, which, strict=True)]


class Blank(pd.DataFrame):  # type: ignore[misc]
    """A frame that is printed with blanks for missing numbers; they are NaN all the same."""

    @property
    def _constructor(self) -> Any:
        return Blank

    def to_string(self, *arguments: Any, **more: Any) -> Any:
        return super().to_string(*arguments, **({"na_rep": ""} | more))

    def to_html(self, *arguments: Any, **more: Any) -> Any:
        return super().to_html(*arguments, **({"na_rep": ""} | more))

    def _repr_html_(self) -> str:
        rows, columns = pd.get_option("display.max_rows"), pd.get_option("display.max_columns")
        return str(self.to_html(max_rows=rows, max_cols=columns, notebook=True))
