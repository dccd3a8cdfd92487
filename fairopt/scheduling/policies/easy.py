"""EASY backfilling of gangs."""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Policy


@dataclass(frozen=True)
class Easy(Policy):
    r"""Start jobs by arrival, all tasks at once; a later job may overtake the first waiting job without delaying it.

    The tasks of a job that have equal demands start together. The first job that does not fit has a reservation at the
    time s at which it fits if all running tasks last as long as they may (`Workload.walltime`, or, if it is not stated,
    the longest duration of the group). A later job that fits now starts if

    .. math:: t + \text{walltime} \le s, \quad \text{or the first job still fits at s beside it,}

    where t is the present time.

    Source: D. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; A. Mu'alem, D. Feitelson, "Utilization,
    predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling", IEEE TPDS 12
    (2001).

    >>> import pandas as pd, fairopt as fo
    >>> tasks = pd.DataFrame({"user": ["ann", "bob", "cat"], "tasks": [3, 4, 1], "duration": [9.0, 5.0, 8.0], "cpu": 1})
    >>> workload = fo.Workload.from_frames(tasks, pd.DataFrame({"cpu": [4]}))
    >>> fo.simulate(workload, "easy").jobs["start"].tolist()
    [0.0, 9.0, 0.0]
    """

    name = "easy"
    title = "EASY backfilling"
    source = "JSSPP 1995"
    queue = "one"

    @property
    def gangs(self) -> int:
        return 2
