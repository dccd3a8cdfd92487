"""A cluster and a mechanism as Python."""

from __future__ import annotations

import re
from pprint import pformat

import numpy as np

from .. import mechanisms
from ..errors import DataError
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
        plain = {"weight": (cluster.weight == 1).all(), "eligible": not cluster.constrained,
                 "max_tasks": np.isinf(cluster.max_tasks).all()}  # fmt: skip
        names = [one for one in ("capacity", "demand", "weight", "eligible", "max_tasks") if not plain.get(one)]
        given = {name: pformat(getattr(cluster, name).tolist(), width=100) for name in names}
        given |= {name: repr(list(getattr(cluster, name))) for name in ("resources", "users", "servers")}
        if "max_tasks" in given:
            given["max_tasks"] = given["max_tasks"].replace("inf", 'float("inf")')
        made = ["cluster = fo.Cluster(", *(f"    {name}={text}," for name, text in given.items()), ")"]
    return "\n".join(["import fairopt as fo", "", *made, ""])


def _quoted(found: re.Match[str]) -> str:
    """`=inf` and `=log1p` as Python."""
    word = found[1]
    if word in ("True", "False", "None"):
        return found[0]
    return f"=float({word!r})" if word == "inf" else f"={word!r}"


def call(mechanism: str) -> str:
    """A label as a call: `fo.AlphaPFVDS(alpha=3)`."""
    for name in mechanisms.names():
        kind = mechanisms.kind(name)
        if mechanism == kind.title or mechanism.startswith(f"{kind.title}("):
            inside = _WORD.sub(_quoted, mechanism[len(kind.title) + 1 : -1])
            return f"fo.{kind.__name__}({inside})"
    raise DataError(f"there is no mechanism {mechanism!r}")
