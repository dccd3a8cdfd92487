"""Gains from a little more of a resource, by kind of node: derivatives of the answer, where it has them.

To first order, `sum_i c[i,r] dx_n/dc[i,r] / 100` over the nodes i of a kind: tasks of user n that 1% more of r on them
adds (docs/sensitivity.md). Steps of a tenth, or of whole nodes, are solved again instead: users whose tasks jump over a
kink of the answer gain a fraction of what the derivative says (five times less for DRFH on a lognormal 20 x 10).
"""

from __future__ import annotations

import numpy as np

from .._libraries import pd
from ..errors import DataError, SolverError
from ..model._arrays import Array
from ..result.allocation import Allocation
from .edits import Edited, Start

#: So much more of a resource, as a part.
_MORE = 0.01


def margins(start: Start, edited: Edited, found: Allocation) -> tuple[pd.DataFrame, str]:
    """By kind of node and resource: how many nodes, tasks that 1% more would add, and for whom; and what to know of it.

    The frame is empty where the answer has no derivatives; then the words say why.
    """
    columns = ["nodes", "count", "resource", "tasks more", "for"]
    try:
        by_capacity = found.sensitivity().capacities
    except (DataError, SolverError) as error:
        return pd.DataFrame(columns=columns), f"No derivatives: {error}."
    cluster = found.cluster
    single = len(cluster.servers) < len(edited.cluster.servers)
    names = ["all nodes"] if single else [start.names[entry] for entry in edited.entry_of]
    kind, tasks = dict(zip(cluster.servers, names, strict=True)), found.arrays.user_tasks
    gains: dict[tuple[str, str], list[Array]] = {}
    for (server, what), gain in zip(by_capacity.index, by_capacity.to_numpy() * tasks * _MORE, strict=True):
        gains.setdefault((kind[server], what), []).append(np.where(tasks > 0, gain, 0.0))
    sums = {key: np.sum(each, axis=0) for key, each in gains.items()}
    # Gains below this part of all tasks, for so much more, are none.
    least = 1e-7 * float(tasks.sum())
    rows = [
        (key[0], len(gains[key]), key[1], *summed(cluster.users, gain, least))
        for key, gain in sums.items()
        if np.isfinite(gain).all() and np.abs(gain).max(initial=0.0) > least
    ]
    unknown = sum(bool(np.isnan(gain).any()) for gain in sums.values())
    note = f"{_MORE:.0%} more there, to first order; a larger step has to be solved."
    if unknown:
        note += f" {unknown} of {len(sums)} kinds of nodes and resources have no derivative, as at a kink."
    return pd.DataFrame(sorted(rows, key=lambda row: -row[3]), columns=columns), note


def summed(users: tuple[str, ...], gain: Array, least: float) -> tuple[float, str]:
    """Tasks that all gain together, and who gains most; up to `least` tasks, of anybody or in all, are none."""
    gain = np.where(np.abs(gain) > least, gain, 0.0)
    everything = float(gain.sum())
    return everything if abs(everything) > least else 0.0, gainers(users, gain)


def gainers(users: tuple[str, ...], gain: Array, most: int = 3) -> str:
    """Users who gain most, the largest first, with their tasks; of equal gains, as shown, in the cluster's order."""
    # Users that are named gain more than this part of what all gain who do.
    least = 0.05 * float(gain[gain > 0].sum())
    shown = np.array([float(f"{value:.3g}") for value in gain])
    first = [n for n in np.argsort(-shown, kind="stable")[:most] if gain[n] > least]
    return ", ".join(f"{users[n]} +{gain[n]:.3g}" for n in first)
