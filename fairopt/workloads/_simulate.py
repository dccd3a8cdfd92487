"""`simulate`: simulation of a scheduling policy on a workload given by name, file or frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import DataError
from ..scheduling.policies import Policy
from ..scheduling.schedule import Schedule
from ..scheduling.simulator import simulate as scheduling_simulate
from ..scheduling.workload import Workload
from . import open_workload


def simulate(
    workload: str | Path | Workload,
    policy: str | Policy = "best-fit-drfh",
    *,
    traces: str | Path | None = None,
    rng: np.random.Generator | int | None = None,
    **options: Any,
) -> Schedule:
    """Simulate whole tasks on servers over time under a scheduling policy.

    Parameters
    ----------
    workload : str, Path or Workload
        Name such as `google-day?tasks=190000&servers=2000&seed=11`, SWF file, folder of tables (`open_workload`), or a
        `Workload` (from frames by `Workload.from_frames`).
    policy : str or Policy
        A policy, or its name with parameters, such as `slots(n=14)`.
    traces : str or Path, optional
        Folder of the traces. Default: FAIROPT_TRACES.
    rng : Generator or int, optional
        Generator, or its seed, for names without a seed.
    options
        Options of `fairopt.scheduling.simulate`: `until`, `impossible`, `progress`, `engine`, `timeline`, ...

    Returns
    -------
    Schedule

    Raises
    ------
    DataError
        There is no such workload or policy, an option is invalid, or a task can never start.

    >>> import fairopt as fo
    >>> day = fo.simulate("google-day?tasks=50&servers=3&seed=11", "best-fit-drfh")
    >>> int(day.summary()["tasks done"])
    50
    """
    if isinstance(workload, Workload):
        found = workload
    elif isinstance(workload, str | Path):
        found = open_workload(workload, traces=traces, rng=np.random.default_rng(rng) if rng is not None else None)
    else:
        raise DataError(f"simulate takes a workload or its name; got a {type(workload).__name__}")
    return scheduling_simulate(found, policy, **options)
