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
    """Margins by kind of node and resource: nodes, tasks gained by 1% more, and by whom; with notes.

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
    keys = pd.Index([(kind[server], what) for server, what in by_capacity.index], tupleize_cols=False)
    of, known = pd.factorize(keys)
    sums = np.zeros((len(known), len(tasks)))
    np.add.at(sums, of, np.where(tasks > 0, by_capacity.to_numpy() * tasks * _MORE, 0.0))
    # Gains below this part of all tasks, for so much more, are none.
    least = 1e-7 * float(tasks.sum())
    rows = [
        (where, count, what, *summed(cluster.users, gain, least))
        for (where, what), count, gain in zip(known, np.bincount(of).tolist(), sums, strict=True)
        if np.isfinite(gain).all() and np.abs(gain).max(initial=0.0) > least
    ]
    unknown = int(np.isnan(sums).any(axis=1).sum())
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
