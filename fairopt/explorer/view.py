"""An answer as what is drawn and read: JSON, of bounded size whatever the cluster's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificates import Certificate
from ..game.selection import NOT_FOLLOWED
from ..result import metrics
from ..result.allocation import Allocation
from ..result.holds import Holds, holds
from .edits import Edited, Start

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class ViewOptions:
    """What is drawn one by one."""

    #: Users with a colour of their own; of more, the largest but for one band of others.
    coloured: int = 9
    #: Bars (an entry of servers and a resource each); of more, one bar per resource of all servers.
    bars: int = 60
    #: Rows of users; of more, the largest of them, and the others in groups by what holds them.
    rows: int = 200
    #: Digits that are sent.
    digits: int = 6


#: What is used unless a caller says otherwise.
OPTIONS = ViewOptions()

#: Numbers about an answer that are shown.
SHOWN = ("tasks", "utilization", "min_share", "jain")

#: What a certificate's number means.
_MEANS = {
    "backward error": "the tasks are exact for data that differ from these by at most {0}, relatively",
    "lexicographic rise": "nobody could rise by more than {0}, relatively, without a poorer one falling",
    "distance from the optimum": "no user's tasks are farther than {0} from the exact optimum, relatively",
    "exploitability": "no server owes a user more than {0} of its tasks",
    "welfare gap": "welfare could be larger by at most {0}, relatively",
    "complaint": "no user has a justified complaint beyond {0}",
}


def view(start: Start, edited: Edited, found: Allocation, drawn: Sequence[int]) -> dict[str, Any]:
    """An answer for people. `drawn`: users (of the start) with a colour."""
    held = holds(found)
    return {
        "mechanism": found.mechanism,
        "pooled": len(found.cluster.servers) < len(edited.cluster.servers),
        "bars": _bars(start, edited, found, drawn),
        "users": _users(edited, found, held),
        "measures": {name: tidy(metrics.MEASURES[name](found)) for name in SHOWN},
        "use": [tidy(part) for part in metrics.used_parts(found).tolist()],
        "certificate": words(found.certificate, found.tol),
        "flagged": found.flagged,
        "notes": [note for note in found.notes if note != NOT_FOLLOWED],
        "equilibrium": _equilibrium(found),
    }


def largest(found: Allocation, edited: Edited) -> list[int]:
    """The users to be drawn with a colour: everybody, or those with the largest dominant shares, in their order."""
    users = edited.user_of
    if len(users) <= OPTIONS.coloured:
        return [int(n) for n in users]
    top = np.argsort(-found.dominant_shares, kind="stable")[: OPTIONS.coloured - 1]
    return sorted(int(users[n]) for n in top)


def words(certificate: Certificate, tol: float) -> str:
    """A certificate as a sentence."""
    means = _MEANS.get(certificate.measure, f"its {certificate.measure} is {{0}}").format(_size(certificate.optimality))
    verdict = "Certified" if certificate.passes(tol) else "NOT certified"
    over = f"nothing is overused by more than {_size(certificate.feasibility)}"
    return f"{verdict} (tolerance {tol:g}): {over}, and {means}."


def tidy(value: float) -> float | None:
    """A number as it is sent: with so many digits, and none for what is no number."""
    return float(f"{value:.{OPTIONS.digits}g}") if math.isfinite(value) else None


def _size(value: float) -> str:
    return "1e-12" if value < 1e-12 else f"{value:.0e}"


def _bars(start: Start, edited: Edited, found: Allocation, drawn: Sequence[int]) -> dict[str, Any]:
    """Used parts of capacities, stacked by drawn users and the others, per entry and resource, or per resource."""
    cluster = found.cluster
    place = {n: k for k, n in enumerate(drawn)}
    band = np.array([place.get(int(n), len(drawn)) for n in edited.user_of])
    labels: list[str]
    entries = np.unique(edited.entry_of)
    single = len(cluster.servers) < len(edited.cluster.servers) or len(entries) * len(cluster.resources) > OPTIONS.bars
    if single or len(edited.cluster.servers) == 1:
        whole, tasks, labels = cluster.pooled_capacity[None], found.user_tasks[:, None], ["all servers"]
        labels = [start.names[entries[0]]] if len(edited.cluster.servers) == 1 else labels
    else:
        whole, tasks = _by_entry(edited, found, entries)
        counts = np.bincount(edited.entry_of)[entries].tolist()
        labels = [start.names[e] + (f" ×{k}" if k > 1 else "") for e, k in zip(entries, counts, strict=True)]
    use = np.zeros((len(drawn) + 1, *whole.shape))
    for k in range(len(drawn) + 1):
        mine = band == k
        use[k] = tasks[mine].T @ cluster.demand[mine]
    part = np.divide(use, whole[None], out=np.zeros_like(use), where=whole[None] > 0)
    others = int((band == len(drawn)).sum())
    heights = [[[_part(x) for x in row] for row in of] for of in (part if others else part[:-1]).tolist()]
    return {"servers": labels, "drawn": [int(n) for n in drawn], "others": others, "heights": heights,
            "there": (whole > 0).astype(int).tolist()}  # fmt: skip


def _part(value: float) -> float:
    return round(value, 4)


def _by_entry(edited: Edited, found: Allocation, entries: Index) -> tuple[Array, Array]:
    """Capacity (entries, resources) and tasks (users, entries)."""
    capacity, split = found.cluster.capacity, found._split
    of = np.searchsorted(entries, edited.entry_of)
    whole = np.zeros((len(entries), capacity.shape[1]))
    np.add.at(whole, of, capacity)
    if split is None:
        tasks = np.zeros((len(entries), len(found.cluster.users)))
        np.add.at(tasks, of, found.tasks.T)
        return whole, tasks.T
    merged = split.merging.server_of[np.unique(of, return_index=True)[1]]
    size = split.merging.cluster.capacity.sum(axis=1)[merged]
    part = np.divide(whole.sum(axis=1), size, out=np.zeros(len(size)), where=size > 0)
    return whole, split.merged[:, merged] * part


def _users(edited: Edited, found: Allocation, held: Holds) -> dict[str, Any]:
    """Rows of users; of many, the largest, and groups of the others."""
    tasks, shares, weight = found.user_tasks, found.dominant_shares, found.cluster.weight
    text = held_texts(found, held)
    order = np.arange(len(tasks))
    if len(tasks) > OPTIONS.rows:
        order = np.sort(np.argsort(-shares / weight, kind="stable")[: OPTIONS.rows])
    shown = {
        "of": edited.user_of[order].tolist(),
        "tasks": [tidy(x) for x in tasks[order].tolist()],
        "share": [tidy(x) for x in shares[order].tolist()],
        "held": [text[n] for n in order.tolist()],
    }
    rest = np.setdiff1d(np.arange(len(tasks)), order)
    groups: dict[str, list[int]] = {}
    for n in rest.tolist():
        groups.setdefault(text[n], []).append(n)
    listed = sorted(groups.items(), key=lambda item: -len(item[1]))
    return shown | {"groups": [
        {"held": label, "users": len(mine), "tasks": tidy(float(tasks[mine].sum())),
         "least": tidy(float(shares[mine].min())), "most": tidy(float(shares[mine].max()))}
        for label, mine in listed[:20]
    ]}  # fmt: skip


def held_texts(found: Allocation, held: Holds) -> list[str]:
    """What holds each user, in words."""
    cluster, one = found.cluster, len(found.cluster.servers) == 1
    said = {"task limit": "has all its tasks", "unproved": "not known"}
    made = []
    for by, i, r in zip(held.by.tolist(), held.server.tolist(), held.resource.tolist(), strict=True):
        if by == "capacity":
            made.append(cluster.resources[r] if one else f"{cluster.resources[r]} on {cluster.servers[i]}")
        else:
            made.append(said.get(by, by))
    return made


def _equilibrium(found: Allocation) -> str:
    """What is known of other equilibria, in words; empty where the answer is the only one."""
    if found.criterion.scope != "game" or found.criterion.alpha == 1:
        return ""
    if np.isfinite(found.criterion.alpha) and len(found.cluster.users) * len(found.cluster.servers) <= 500:
        if found.index == 0:
            return "Tasks of users are not locally unique here: there are other equilibria beside it."
        if found.index == -1:
            return "Best responses leave this equilibrium (index -1): there are others."
    if NOT_FOLLOWED in found.notes:
        return "There may be other equilibria at this alpha: it is not shown that this is the first on the curve."
    return ""
