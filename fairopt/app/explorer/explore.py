"""`fo.explore`: interactive exploration of a cluster in a notebook."""

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
    """Show a cluster in a notebook, with a slider for alpha, editable tables, and bottlenecks of users.

    Requires the extra `fairopt[notebook]`. The current state is accessible from Python as `explore(cluster).allocation`
    and `.cluster`. Outside of notebooks `fairopt explore FILE` serves the same view.

    Parameters
    ----------
    cluster : Cluster or Allocation
        The cluster, or an allocation, which provides both the cluster and its running tasks.
    mechanism : str or Mechanism
        Initial mechanism.
    alpha : float or str
        Initial alpha, for a mechanism given by name that has this parameter.
    running : Allocation, optional
        Running tasks, shown beside allocations, for example `Snapshot.running`.

    Returns
    -------
    Explorer
        An anywidget.

    Raises
    ------
    DataError
        anywidget is not installed, or the mechanism or alpha is invalid.

    >>> import fairopt as fo
    >>> view = fo.explore(fo.papers.instance("drf-4.1"), "drf")  # doctest: +SKIP
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
    """Registered name of a mechanism, with its parameters other than alpha."""
    inside = str(mechanism).partition("(")[2].rstrip(")")
    given = [part for part in inside.split(", ") if part and not part.startswith("alpha=")]
    return f"{mechanism.name}({', '.join(given)})" if given else mechanism.name
