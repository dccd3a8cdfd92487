"""Data that the page shows of an allocation, as JSON with a bounded number of rows, bars and bands."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...certificates import Certificate
from ...core.game.selection import MAYBE_OTHERS
from ...model._arrays import Array, Index, ratio
from ...model.merging import Split, unmerged
from ...result import palette
from ...result.allocation import Allocation
from ...result.holds import Holds, holds
from ...study import metrics
from .edits import Edited, Start

#: Largest number of bands; further users or groups, with smaller shares, are merged into one band.
_COLOURED = 9
#: Largest number of users that have a row each; all other users are grouped by bottleneck.
_ROWS = 200


#: Displayed measures of `metrics` and their titles.
SHOWN = {
    "tasks": "tasks",
    "utilization": "utilization",
    "min_share": "smallest share",
    "jain": "Jain's index",
    "min_share_wanting": "smallest share (want more)",
    "jain_wanting": "Jain's index (want more)",
    "satisfaction": "satisfaction",
    "distance": "distance",
    "complaints": "complaints",
}

#: Explanations of the measures of certificates; `{0}` is replaced by the value.
_EXPLANATIONS = {
    "backward error": "the tasks are exact for data within a relative {0} of the given ones",
    "lexicographic rise": "no user's share can grow by more than a relative {0} unless a smaller one shrinks",
    "distance from the optimum": "every user's tasks are within a relative {0} of the exact optimum",
    "exploitability": "no server can raise a user's tasks by more than a relative {0} by deviating alone",
    "complaint": "no user has a justified complaint beyond {0}",
}


@dataclass(frozen=True, eq=False)
class Bands:
    """Bands of the charts: users or groups that have a colour each, and one band, of index `len(names)`, for the rest.

    `of` has the index of the band of every user.
    """

    names: tuple[str, ...]
    colours: tuple[int, ...]  # indices of the palette of users
    of: Index  # shape (users of the unedited cluster,)
    what: str  # kind of the groups, in words; '' for users


def view(start: Start, edited: Edited, found: Allocation, drawn: Bands) -> dict[str, Any]:
    """Collect what the page shows of an allocation; `drawn` assigns the colours, which stay the same in a session."""
    holding = holds(found)
    return {
        "mechanism": found.mechanism,
        "pooled": len(found.cluster.servers) < len(edited.cluster.servers),
        "bars": _bars(start, edited, found, drawn),
        "users": _users(edited, found, holding, drawn),
        "measures": measures(found),
        "use": tidied(found.arrays.utilization),
        "certificate": words(found.certificate, found.tol),
        "flagged": found.flagged,
        "notes": [note for note in found.notes if note != MAYBE_OTHERS],
        "equilibrium": _equilibrium(found),
    }


def measures(found: Allocation) -> dict[str, Any]:
    """Displayed measures of an allocation."""
    return {name: tidy(metrics.KNOWN[name](found)) for name in SHOWN}


def bands(start: Start, edited: Edited, found: Allocation) -> Bands:
    """Assign bands to the users or groups with the largest dominant shares, in the order of the cluster.

    If there are more users than colours, they are grouped by namespace or account. If every user is a group of its own
    and there are more than `_ROWS` users, they are grouped by the resource of their dominant share.
    """
    cluster = start.cluster
    keys, what = list(cluster.users), ""
    if len(keys) > _COLOURED and len({*start.groups}) < len(keys):
        keys, what = list(start.groups), "namespaces or accounts"
    elif len(keys) > _ROWS:
        mostly = cluster.share_per_task.argmax(axis=1)
        keys, what = [f"mostly {cluster.resources[r]}" for r in mostly], "users by the resource that they need most of"
    names = [*dict.fromkeys(keys)]
    of = np.array([*map({name: k for k, name in enumerate(names)}.__getitem__, keys)], dtype=np.intp)
    chosen = np.arange(len(names))
    if len(names) > _COLOURED:
        shares = np.bincount(of[edited.user_of], weights=found.arrays.dominant_shares, minlength=len(names))
        chosen = np.sort(np.argsort(-shares, kind="stable")[: _COLOURED - 1])
    band = np.full(len(names), len(chosen))
    band[chosen] = np.arange(len(chosen))
    return Bands(tuple(names[k] for k in chosen), tuple(palette.of_users(chosen.tolist())), band[of], what)


def words(certificate: Certificate, tol: float) -> str:
    """Describe a certificate and its tolerance in a sentence."""
    means = _EXPLANATIONS.get(certificate.measure, f"its {certificate.measure} is {{0}}")
    means = means.format(_size(certificate.optimality, tol))
    verdict = "Certified" if certificate.passes(tol) else "NOT certified"
    over = f"no capacity is exceeded by more than a relative {_size(certificate.feasibility, tol)}"
    return f"{verdict} (tolerance {tol:g}): {over}, and {means}."


def tidy(value: float) -> float | None:
    """Round a number to six significant digits; None for infinity and NaN."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def tidied(values: NDArray[Any]) -> list[float | None]:
    """Round the numbers of an array by `tidy`; None for infinity and NaN."""
    return [tidy(value) for value in values.tolist()]


def _size(value: float, tol: float) -> str:
    """Format an error with one digit, but never as less than 1e-15 or a thousandth of the tolerance.

    Smaller values consist mostly of rounding errors.
    """
    return f"{max(value, 1e-3 * tol, 1e-15):.0e}"


def _bars(start: Start, edited: Edited, found: Allocation, drawn: Bands) -> dict[str, Any]:
    """Data of the bar chart: the part of each resource that each band uses, by entry of servers or on all servers."""
    cluster, count = found.cluster, len(drawn.names)
    band, entries = drawn.of[edited.user_of], np.unique(edited.entry_of)
    one = len(edited.cluster.servers) == 1
    # A chart with more than 60 bars, one per entry and resource, is reduced to one bar per resource of all servers.
    single = len(cluster.servers) < len(edited.cluster.servers) or len(entries) * len(cluster.resources) > 60
    if single or one:
        whole, tasks = cluster.pooled_capacity[None], found.arrays.user_tasks[:, None]
        labels = [start.names[entries[0]] if one else "all servers"]
    else:
        whole, tasks = _by_entry(edited, found, entries)
        counts = np.bincount(edited.entry_of)[entries].tolist()
        labels = [start.names[e] + (f" ×{k}" if k > 1 else "") for e, k in zip(entries, counts, strict=True)]
    use = np.array([tasks[mine].T @ cluster.demand[mine] for mine in np.arange(count + 1)[:, None] == band])
    part = ratio(use, whole[None])
    others = int((band == count).sum())
    heights = (part if others else part[:-1]).round(3).tolist()  # bars are 190 pixels high, so three decimals suffice
    of_band = np.bincount(band, weights=found.arrays.user_tasks, minlength=count + 1)
    return {
        "servers": labels,
        "bands": list(drawn.names),
        "colours": list(drawn.colours),
        "what": drawn.what,
        "others": others,
        "heights": heights,
        "tasks": tidied(of_band),
        "there": (whole > 0).astype(int).tolist(),
    }


def _by_entry(edited: Edited, found: Allocation, entries: Index) -> tuple[Array, Array]:
    """Capacity (entries, resources) and tasks (users, entries), summed over the servers of each entry."""
    of = np.searchsorted(entries, edited.entry_of)
    whole = np.zeros((len(entries), found.cluster.shape[2]))
    np.add.at(whole, of, found.cluster.capacity)
    split = found._split or Split(unmerged(found.cluster), found.tasks)
    part = np.zeros((split.merged.shape[1], len(entries)))
    np.add.at(part, (split.merging.server_of, of), split.merging.server_part)
    return whole, split.merged @ part


def _users(edited: Edited, found: Allocation, holding: Holds, drawn: Bands) -> dict[str, Any]:
    """Rows of the users with the largest weighted dominant shares, and groups of all other users by bottleneck."""
    tasks, shares = found.arrays.user_tasks, found.arrays.dominant_shares
    text = held_texts(found, holding)
    largest = np.argsort(-shares / found.cluster.weight, kind="stable")
    order = np.sort(largest[:_ROWS])
    shown = {
        "of": edited.user_of[order].tolist(),
        "band": drawn.of[edited.user_of[order]].tolist(),
        "tasks": tidied(tasks[order]),
        "share": tidied(shares[order]),
        "held": [text[n] for n in order.tolist()],
    }
    groups = defaultdict(list)
    for n in np.sort(largest[_ROWS:]).tolist():
        groups[text[n]].append(n)
    listed = sorted(groups.items(), key=lambda item: -len(item[1]))
    return shown | {"groups": [
        {"held": label, "users": len(mine), "tasks": tidy(float(tasks[mine].sum())),
         "least": tidy(float(shares[mine].min())), "most": tidy(float(shares[mine].max()))}
        for label, mine in listed[:20]
    ]}  # fmt: skip


def held_texts(found: Allocation, holding: Holds) -> list[str]:
    """Text on the bottleneck of each user."""
    cluster, one = found.cluster, len(found.cluster.servers) == 1
    said = {"task limit": "its task limit", "unproved": "not known"}
    held = zip(holding.by.tolist(), holding.server.tolist(), holding.resource.tolist(), strict=True)
    return [
        said.get(by, by) if by != "capacity"
        else cluster.resources[r] if one
        else f"{cluster.resources[r]} on {cluster.servers[i]}"
        for by, i, r in held
    ]  # fmt: skip


def _equilibrium(found: Allocation) -> str:
    """Note that there are, or may be, other equilibria; '' if nothing indicates others."""
    if found.criterion.scope != "game" or found.criterion.alpha == 1:
        return ""
    if np.isfinite(found.criterion.alpha) and len(found.cluster.users) * len(found.cluster.servers) <= 500:
        if found.index == 0:
            return "Tasks of users are not locally unique here: there are other equilibria beside it."
        if found.index == -1:
            return "Best responses leave this equilibrium (index -1): there are others."
    if MAYBE_OTHERS in found.notes:
        return "There may be other equilibria at this alpha: it is not shown that this is the only one."
    return ""
