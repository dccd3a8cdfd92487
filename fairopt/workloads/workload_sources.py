"""Open a workload by a short name: `google-day?tasks=190000&servers=2000&seed=11`, `google`, `jobs.swf`, a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..scheduling.workload import Workload
from ._registry import WORKLOADS
from .jobs import files


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
