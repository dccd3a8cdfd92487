"""`alibaba`: arrivals of pods in Alibaba's GPU trace of 2023."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np

from ...base.libraries import pd
from ...scheduling.workload import Workload
from .. import alibaba
from .._draw import Count, not_negative
from ..sources import workload_generator, workload_reader


@workload_reader(
    "alibaba",
    "the pods of Alibaba's GPU trace of 2023 (alibaba[:DIR])",
    folder="alibaba",
    stand_in="alibaba-days",
)
def alibaba_pods(
    directory: str | Path,
    variant: str = "gpuspec33",
    after: Annotated[float, not_negative] = 0.0,
    rng: np.random.Generator | None = None,
    skip_malformed: bool = False,
) -> Workload:
    """Read the pods of the trace as jobs of one task, on all nodes; resources are cores, GiB and GPUs.

    The trace has no users: pods of one quality of service and GPU shape form a user. A pod arrives at its creation, and
    lasts from its scheduling (for 897 pods that were never scheduled, from its creation) to its deletion. Its
    `gpu_spec` restricts its nodes. GPUs of a node are divisible: a pod with half a GPU may be served by fractions of
    two.

    Parameters
    ----------
    directory : str or Path
        Folder of the trace, or a folder above it.
    variant : str
        Part of the name of the pod list, `openb_pod_list_<variant>.csv`.
    after : float
        Exclude pods created before this time in seconds of the trace (most were created after 9.8e6), which becomes
        time 0.
    rng : Generator, optional
        Not used.
    skip_malformed : bool
        Skip malformed rows, and count them.

    Raises
    ------
    DataError
        There is no such trace, or a row is malformed (unless `skip_malformed`).
    """
    report: Counter[str] = Counter()
    nodes = alibaba.nodes(directory, skip_malformed)
    pods = alibaba.pods(directory, None, variant, skip_malformed, report)
    started = pods["scheduled_time"].fillna(pods["creation_time"])
    models = {*nodes["model"]}
    on = pods["gpu_spec"].map(lambda spec: "|".join(model for model in spec.split("|") if model in models))
    reasons = {
        "created before": pods["creation_time"] < after,
        "request nothing": ~(pods[list(alibaba.RESOURCES)] > 0).any(axis=1),
        "last no time": pods["deletion_time"] <= started,
        "models that no node has": (on == "") & (pods["gpu_spec"] != ""),
    }
    kept = np.ones(len(pods), dtype=bool)
    for reason, rows in reasons.items():
        report[f"pods left out, {reason}"] = int((kept & rows).sum())
        kept &= ~rows.to_numpy()
    rows = pods[kept]
    of_user = rows["qos"] + "/" + rows["num_gpu"].astype(str) + "/" + rows["gpu_milli"].astype(str)
    tasks = pd.DataFrame(
        {
            "user": of_user,
            "job": rows["name"],
            "arrival": rows["creation_time"] - after,
            "duration": rows["deletion_time"] - started[kept],
            **{name: rows[name] for name in alibaba.RESOURCES},
            "on": on[kept],
        }
    ).reset_index(drop=True)
    servers = nodes.rename(columns={"model": "type"}).reset_index(names="server")
    source = (
        f"Alibaba GPU 2023 ({Path(directory).absolute().name}, {variant}): {len(tasks)} pods on {len(servers)} nodes"
    )
    return Workload.from_frames(tasks, servers, source=source, report=dict(report))


@workload_generator("alibaba-days", "days of pods like Alibaba's")
def alibaba_days(
    rng: np.random.Generator,
    tasks: Count = 5000,
    servers: Count = 200,
    days: Count = 3,
) -> Workload:
    """Draw jobs of one pod from the groups of `alibaba-like`, in proportion to group sizes, on nodes of `alibaba-like`.

    Arrivals are uniform. Durations are lognormal with a median of an hour and a standard deviation of 1.5 of the
    logarithm, an assumption (in the trace half of the pods run for less than an hour, and a tenth for more than six).

    Parameters
    ----------
    rng : Generator
    tasks, servers : int
        Numbers of jobs and of servers.
    days : int
        Length in days of the interval in which jobs arrive.
    """
    from ..generators import alibaba_like

    cell = alibaba_like(rng, users=max(2, tasks // 50), servers=servers, max_tasks=True).cluster
    of = rng.choice(len(cell.users), tasks, p=cell.max_tasks / cell.max_tasks.sum())
    where = np.array(["" if row.all() else "|".join(np.array(cell.servers)[row]) for row in cell.eligible])
    frame = pd.DataFrame(
        {
            "user": np.array(cell.users)[of],
            "arrival": np.sort(rng.uniform(0, days * 86_400.0, tasks)),
            "duration": np.exp(rng.normal(np.log(3600.0), 1.5, tasks)),
            **{name: cell.demand[of, r] for r, name in enumerate(cell.resources)},
            "on": where[of],
        }
    )
    nodes = pd.DataFrame(
        {"server": cell.servers} | {name: cell.capacity[:, r] for r, name in enumerate(cell.resources)}
    )
    source = f"like Alibaba's: {tasks} pods over {days} days, {servers} nodes"
    return Workload.from_frames(frame, nodes, source=source)
