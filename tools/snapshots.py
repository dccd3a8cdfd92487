"""Small snapshots of real traces, drawn by number: what `errors_table.py` solves of Bitbrains and Google."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

import fairopt as fo
from fairopt.workloads import google2011, open_source, trace_folder

Rng = np.random.Generator
#: Seconds of Google's trace at which its users are looked at: all before it, and every tenth of an hour or so.
MOMENTS = (0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0)


def bitbrains(rng: Rng, most: tuple[int, int], folder: Path) -> fo.Cluster:
    """Virtual machines in a drawn hour, on as many servers of the alphaPF-VDS paper as are drawn."""
    vms, servers = (int(rng.integers(2, number + 1)) for number in most)
    return open_source(f"bitbrains:{folder}?vms={vms}&servers={servers}", rng=rng).cluster


def google(rng: Rng, most: tuple[int, int], folder: Path) -> fo.Cluster:
    """Users at a drawn moment, on all machines or on a hundred, merged; a third of the time limited to their tasks."""
    everything = _google(folder, float(rng.choice(MOMENTS)))
    users = np.sort(rng.choice(len(everything.users), int(rng.integers(2, most[0] + 1)), replace=False))
    machines = np.arange(len(everything.servers))
    if rng.random() < 0.5:
        machines = np.sort(rng.choice(machines, 100, replace=False))
    limited = rng.random() < 1 / 3
    chosen = fo.Cluster(
        everything.capacity[machines],
        everything.demand[users],
        max_tasks=everything.max_tasks[users] if limited else None,
        resources=everything.resources,
        users=[everything.users[n] for n in users],
    )
    return fo.merge(chosen).cluster


@lru_cache(maxsize=len(MOMENTS))
def _google(folder: Path, at: float) -> fo.Cluster:
    return google2011.cluster(folder, at=at, max_tasks=True).cluster


SNAPSHOTS: dict[str, Callable[[Rng, tuple[int, int], Path], fo.Cluster]] = {"bitbrains": bitbrains, "google": google}


def missing(family: str, traces: Path | None) -> str:
    """Why there are no snapshots of it; nothing if there are."""
    if trace_folder(family, traces) is not None:
        return ""
    return f"{family}: no trace {f'below {traces}' if traces else '(name its folder by --traces or FAIROPT_TRACES)'}"


@lru_cache(maxsize=4)
def snapshot(family: str, seed: int, most: tuple[int, int], traces: Path | None) -> fo.Cluster:
    """Number `seed` of a trace, of at most `most` users and servers (Google's machines: of ten kinds)."""
    folder = trace_folder(family, traces)
    assert folder is not None
    return SNAPSHOTS[family](np.random.default_rng([seed, *family.encode()]), most, folder)
