"""Open a cluster or a workload by a short name: `bitbrains?vms=50&seed=3`, `google:DIR?at=600`, `jobs.swf`, a folder.

    name[:directory][?option=value&option=value...]

A trace without a directory is looked for below the traces root: the `traces` argument, else the environment
variable FAIROPT_TRACES. Where there is none, the calibrated generator stands in and the snapshot says so.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..scheduling.workload import Workload
from ._snapshot import Snapshot
from ._sources import CLUSTERS, WORKLOADS
from .jobs import files


def open_source(name: str, *, traces: str | Path | None = None, rng: np.random.Generator | None = None) -> Snapshot:
    """The cluster that `name` stands for.

    Parameters
    ----------
    name
        One of `known()`, perhaps with a directory (the trace, a folder above or a part of it) and options; the
        options are the arguments of the reader or generator, and `seed`.
    traces
        The folder that holds the traces. Default: the environment variable FAIROPT_TRACES.
    rng
        For everything that is drawn. `seed=` in the name comes first; without either the seed is 0.

    Raises
    ------
    DataError
        An unknown name or option (the message lists the known ones), a value that does not fit, an option of a
        trace that is not there, or what the reader raises.
    """
    return CLUSTERS.open(name, traces, rng)


def trace_folder(name: str, traces: str | Path | None = None) -> Path | None:
    """The folder of the trace that `open_source` would read; None for a generator, named or standing in.

    Parameters
    ----------
    name : as of `open_source`
    traces : the folder that holds the traces; by default the environment variable FAIROPT_TRACES

    Raises
    ------
    DataError
        `traces` is not a folder.
    """
    return CLUSTERS.folder(name, traces)


def known() -> dict[str, str]:
    """Every name with one line about it and its options."""
    return CLUSTERS.known()


def open_workload(
    name: str | Path, *, traces: str | Path | None = None, rng: np.random.Generator | None = None
) -> Workload:
    """The jobs over time that `name` stands for.

    Parameters
    ----------
    name
        A source with options, `name[:directory][?option=value&...]`; a folder with `tasks.csv` and `servers.csv`; or
        a file in the Standard Workload Format, `FILE.swf`.
    traces
        The folder that holds the traces. Default: the environment variable FAIROPT_TRACES. A trace that is not there
        is replaced by the generator that is calibrated to it, and `source` says so.
    rng
        For everything that is drawn. `seed=` in the name comes first; without either the seed is 0.

    Raises
    ------
    DataError
        An unknown name or option, a file that cannot be read (with its line), or what the reader raises.
    """
    text = str(name)
    return files.load(text) if files.is_file(text) else WORKLOADS.open(text, traces, rng)


def known_workloads() -> dict[str, str]:
    """Every source of workloads with one line about it and its options."""
    return WORKLOADS.known()
