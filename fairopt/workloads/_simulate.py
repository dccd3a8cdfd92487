"""`simulate`: a policy on a workload that is named, in a file or in frames."""

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
    """Run whole tasks on servers over time, as a policy decides.

        fo.simulate("google-day?tasks=20000&servers=200&seed=11", policy="best-fit-drfh").summary()

    Parameters
    ----------
    workload
        What `open_workload` takes, a name such as `google-day?tasks=190000&servers=2000&seed=11`, an SWF file or a
        folder of tables, or a `Workload` (`Workload.from_frames` makes one of data frames).
    policy
        Its name with parameters, such as `slots(n=14)`, or an instance, of a class of yours too.
    traces, rng
        As of `open_workload`: the folder of the traces, and what is drawn with where the name has no seed.
    options
        Those of `fairopt.scheduling.simulate`: `until`, `impossible`, `progress`, `engine`, `timeline`, ...

    Raises
    ------
    DataError
        There is no such workload or policy, or a task that can never start.
    """
    if isinstance(workload, Workload):
        found = workload
    elif isinstance(workload, str | Path):
        found = open_workload(workload, traces=traces, rng=np.random.default_rng(rng) if rng is not None else None)
    else:
        raise DataError(f"simulate takes a workload or its name; got a {type(workload).__name__}")
    return scheduling_simulate(found, policy, **options)
