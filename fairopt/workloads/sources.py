"""Open a cluster by a short name: `bitbrains?vms=50&seed=3`, `google:DIR?at=600`, `alibaba-like`.

    name[:directory][?option=value&option=value...]

A trace without a directory is looked for below the traces root: the `traces` argument, else the environment
variable FAIROPT_TRACES. Where there is none, the calibrated generator stands in and the snapshot says so.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ._registry import CLUSTERS
from ._snapshot import Snapshot


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


def check_source(name: str, *, traces: str | Path | None = None, there: bool = False) -> None:
    """Raise what `open_source` would raise of the name alone, before anything is read or drawn.

    `there` checks as well that the generator that would stand in for a trace has the options.

    Raises
    ------
    DataError
        As there; `where` names the option, if it is about one.
    """
    CLUSTERS.check(name, traces, there)


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


def made_by(name: str) -> str:
    """The module whose function makes the cluster of a source, where no trace is read."""
    return CLUSTERS.made_by(name)
