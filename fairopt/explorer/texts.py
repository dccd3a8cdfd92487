"""A cluster and a mechanism as Python, and a cluster as a cluster file."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from .. import mechanisms
from ..errors import DataError
from ..model import cluster_file
from ..model.cluster import Cluster

_WORD = re.compile(r"=([A-Za-z]\w*)\b")


def python(cluster: Cluster, mechanism: str) -> str:
    """Code that gives the same answer; `mechanism` is its label, such as `alphaPF-VDS(alpha=3)`."""
    return head(cluster) + solved(call(mechanism))


def solved(code: str) -> str:
    """The lines that solve with a mechanism."""
    return f"allocation = {code}.solve(cluster)\nprint(allocation)\n"


def head(cluster: Cluster) -> str:
    """The lines that make a cluster."""
    users, servers, resources = cluster.shape
    # So many numbers of a cluster are written into Python; larger ones are saved first.
    if (users + servers) * resources + (users * servers if cluster.constrained else 0) > 4000:
        made = ["# save the cluster file from the explorer first", 'cluster = fo.Cluster.load("cluster.toml")']
    else:
        made = _constructor(cluster)
    return "\n".join(["import fairopt as fo", "", *made, ""])


def file(cluster: Cluster) -> str:
    """A cluster file in TOML, with every digit."""
    return cluster_file.text(cluster)


def _quoted(found: re.Match[str]) -> str:
    """`=inf` and `=log1p` as Python."""
    word = found[1]
    if word in ("True", "False", "None"):
        return found[0]
    return f"=float({word!r})" if word == "inf" else f"={word!r}"


def _constructor(cluster: Cluster) -> list[str]:
    given = {"capacity": _rows(cluster.capacity), "demand": _rows(cluster.demand)}
    if (cluster.weight != 1).any():
        given["weight"] = _plain(cluster.weight)
    if cluster.constrained:
        given["eligible"] = _rows(cluster.eligible.astype(int))
    if np.isfinite(cluster.max_tasks).any():
        given["max_tasks"] = _plain(cluster.max_tasks)
    given |= {name: repr(list(getattr(cluster, name))) for name in ("resources", "users", "servers")}
    return ["cluster = fo.Cluster(", *(f"    {name}={text}," for name, text in given.items()), ")"]


def _rows(table: NDArray[np.generic]) -> str:
    inside = ",\n        ".join(_plain(row) for row in table)
    return f"[\n        {inside},\n    ]"


def _plain(row: NDArray[np.generic]) -> str:
    def text(value: object) -> str:
        if isinstance(value, float):
            return 'float("inf")' if value == float("inf") else repr(int(value) if value.is_integer() else value)
        return repr(value)

    return f"[{', '.join(text(value) for value in row.tolist())}]"


def call(mechanism: str) -> str:
    """A label as a call: `fo.AlphaPFVDS(alpha=3)`."""
    for name in mechanisms.names():
        kind = mechanisms.kind(name)
        if mechanism == kind.title or mechanism.startswith(f"{kind.title}("):
            inside = _WORD.sub(_quoted, mechanism[len(kind.title) + 1 : -1])
            return f"fo.{kind.__name__}({inside})"
    raise DataError(f"there is no mechanism {mechanism!r}")
