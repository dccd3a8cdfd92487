"""`fo.explore`: a cluster in a notebook, to look at and to tweak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.errors import DataError
from ...mechanisms import Mechanism
from ...model.cluster import Cluster, expected
from .edits import State
from .edits import alpha as an_alpha
from .session import Session

if TYPE_CHECKING:
    from ...result.allocation import Allocation
    from .widget import Explorer


def explore(
    cluster: Cluster | Allocation,
    mechanism: str | Mechanism = "alphapf-vds",
    alpha: float | str = 1.0,
    running: Allocation | None = None,
) -> Explorer:
    """Show a cluster in a notebook: alpha on a slider, tables to edit, what holds whom. Needs `fairopt[notebook]`.

    What stands there can be taken from Python: `explore(cluster).allocation`, `.cluster`. Without a notebook:
    `fairopt explore FILE` on the command line.

    Parameters
    ----------
    cluster : or an allocation, which is then what runs
    mechanism : a name such as `"drfh"`, or a mechanism, to begin with
    alpha : to begin with, of mechanisms that have one
    running : what runs on the cluster, to be shown beside answers, such as a snapshot's `running`

    Raises
    ------
    DataError
        anywidget is not installed, there is no such mechanism, or no such alpha.
    """
    from ...result.allocation import Allocation

    if isinstance(cluster, Allocation):
        running = cluster if running is None else running
        cluster = cluster.cluster
    expected(cluster)
    name = mechanism if isinstance(mechanism, str) else _named(mechanism)
    at = mechanism.alpha if hasattr(mechanism, "alpha") else alpha
    session = Session(cluster, State(name, an_alpha(at)), "cluster", running)
    try:
        from .widget import Explorer
    except ImportError:
        raise DataError(
            "fo.explore needs anywidget: pip install 'fairopt[notebook]'; without a notebook: fairopt explore FILE"
        ) from None
    return Explorer(session)


def _named(mechanism: Mechanism) -> str:
    """The name that the registry has; with its parameters where it has others than alpha."""
    inside = str(mechanism).partition("(")[2].rstrip(")")
    given = [part for part in inside.split(", ") if part and not part.startswith("alpha=")]
    return f"{mechanism.name}({', '.join(given)})" if given else mechanism.name
