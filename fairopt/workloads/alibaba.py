"""Alibaba's GPU cluster trace of 2023 (cluster-trace-gpu-v2023, "openb"): nodes and pods.

Source: Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023. Layout: `openb_node_list_all_node.csv` and `openb_pod_list_<variant>.csv` in one
folder, with headers. The variant `gpuspec33` has placement constraints, `default` has none.

Valid rows may have an empty `model` (a node without GPUs), an empty `gpu_spec` (any node), and a memory request of 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError
from ..base.libraries import pd
from ..model._arrays import Mask
from ..model.cluster import Cluster
from . import _csv
from ._csv import Column
from ._draw import Amount, choose, finite
from ._snapshot import Snapshot
from .sources import reader

RESOURCES = ("cpu", "memory", "gpu")  # cores, GiB, GPUs
GROUPS = ("name", "qos", "num_gpu", "gpu_milli", "cpu_milli", "memory_mib", "pod_phase")
SHAPE = ("qos", "num_gpu", "gpu_milli")

_NODES = "openb_node_list"
_PODS = "openb_pod_list"
_LAYOUT = f"a folder with {_NODES}_all_node.csv and {_PODS}_<variant>.csv (or .csv.gz)"
_NODE = _csv.Format(
    columns=(
        Column("sn", "text"),
        Column("cpu_milli"),
        Column("memory_mib"),
        Column("gpu", "int"),
        Column("model", "text", optional=True),
    )
)
_POD = _csv.Format(
    columns=(
        Column("name", "text"),
        Column("cpu_milli", "int"),
        Column("memory_mib", "int"),
        Column("num_gpu", "int"),
        Column("gpu_milli", "int", most=1000),
        Column("gpu_spec", "text", optional=True),
        Column("qos", "text"),
        Column("pod_phase", "text"),
        Column("creation_time", "int"),
        Column("deletion_time", "int"),
        Column("scheduled_time", optional=True),
    )
)


def nodes(directory: str | Path, skip_malformed: bool = False, report: Counter[str] | None = None) -> pd.DataFrame:
    """All nodes in file order: index `node`; `cpu` [cores], `memory` [GiB], `gpu` [GPUs], `model` ("": no GPU).

    Raises
    ------
    DataError
        There is no such trace, or a row is malformed (unless `skip_malformed`).
    """
    frame = _table(directory, f"{_NODES}_all_node", _NODE, skip_malformed, report)
    frame = frame.assign(gpu=frame["gpu"].astype(float), model=frame["model"].fillna(""))
    return frame.rename(columns={"sn": "node"}).set_index("node")[[*RESOURCES, "model"]]


def pods(
    directory: str | Path,
    at: float | None = None,
    variant: str = "gpuspec33",
    skip_malformed: bool = False,
    report: Counter[str] | None = None,
) -> pd.DataFrame:
    """Pods that exist at `at` seconds, creation_time <= at < deletion_time; all pods of the list if `at` is None.

    The columns are those of the trace (`scheduled_time` is NaN for a pod that was never scheduled), `cpu` [cores],
    `memory` [GiB], and `gpu = num_gpu*gpu_milli/1000` [GPUs]; `gpu_spec` is normalised: each model once, in order of
    name, "" for any model. Pods are counted in `report`.

    Raises
    ------
    DataError
        There is no such trace, a row is malformed (unless `skip_malformed`), or `at` is outside of the trace.
    """
    report = Counter() if report is None else report
    frame = _table(directory, f"{_PODS}_{variant}", _POD, skip_malformed, report)
    if at is not None:
        first, last = frame["creation_time"].min(), frame["deletion_time"].max()
        if not first <= at < last:
            raise DataError(
                f"at is {at:g} s, and {_PODS}_{variant} has pods from {first} to {last} s; choose an instant there"
            )
        frame = frame[(frame["creation_time"] <= at) & (at < frame["deletion_time"])]
    report["pods found"] = len(frame)
    specs = ["|".join(sorted(set(spec.split("|")))) for spec in frame["gpu_spec"].fillna("")]
    return frame.assign(gpu=frame["num_gpu"] * frame["gpu_milli"] / 1000, gpu_spec=specs)


def _columns(by: str | Sequence[str], what: str = "by") -> list[str]:
    columns = [by] if isinstance(by, str) else list(by)
    if unknown := [name for name in columns if name not in GROUPS]:
        raise DataError(f"pods cannot be grouped {what} {unknown[0]!r}; choose among {', '.join(GROUPS)}")
    return columns


@reader(
    "alibaba",
    "Alibaba's GPU trace of 2023: groups of pods and nodes (alibaba[:DIR])",
    folder="alibaba",
    stand_in="alibaba-like",
)
def cluster(
    directory: str | Path,
    at: Annotated[float | None, finite] = None,
    by: Annotated[str | Sequence[str], _columns] = SHAPE,
    variant: str = "gpuspec33",
    users: Amount = None,
    max_tasks: bool = False,
    rng: np.random.Generator | None = None,
    skip_malformed: bool = False,
) -> Snapshot:
    """Cluster of groups of pods as users, on all nodes.

    The trace names no users. Pods that agree in gpu_spec and in the columns `by` form a user. Its demand is the
    mean request of its pods (cores, GiB, GPUs), and it is eligible on nodes whose model is in its gpu_spec, or on
    all nodes if the gpu_spec is empty. Groups that request nothing, or whose models no node has, are left out and
    listed in the snapshot. The name of a group lists its values, for instance `LS/2/1000/G2|T4`.

    Parameters
    ----------
    directory : str or Path
        Folder of the trace, or a folder above it.
    at : seconds, or None
        Include the pods that exist at this instant; None: all pods of the list.
    by : names of pod columns
        Some of name, qos, num_gpu, gpu_milli, cpu_milli, memory_mib, pod_phase. Default: quality of service and GPU
        shape. `"name"` makes every pod a user.
    variant : str
        Part of the name of the pod list, `openb_pod_list_<variant>.csv`.
    users : int, float or None
        Number of groups to draw with `rng`, as a number, a fraction of all groups, or None for all.
    max_tasks : bool
        Limit each group to the number of its pods. Default: no limit.
    rng : Generator, optional
        Random generator, for a draw of groups.
    skip_malformed : bool
        Skip malformed rows, and count them.

    Raises
    ------
    DataError
        There is no such trace, a row is malformed (unless `skip_malformed`), no pod exists at the instant, or `rng` is
        missing.
    """
    columns = _columns(by)
    folder = _find(directory)
    report: Counter[str] = Counter()
    hosts = nodes(folder, skip_malformed, report)
    alive = pods(folder, at, variant, skip_malformed, report)
    groups = alive.groupby([*columns, "gpu_spec"], sort=True)
    means = groups[list(RESOURCES)].mean()
    keys = [key if isinstance(key, tuple) else (key,) for key in means.index]
    names = ["/".join(str(part) for part in (*key[:-1], key[-1] or "any")) for key in keys]
    demand, models = means.to_numpy(), hosts["model"].to_numpy(dtype=str)
    masks = {key[-1]: allowed(models, str(key[-1])) for key in keys}
    eligible = np.array([masks[key[-1]] for key in keys], dtype=bool).reshape(len(keys), len(models))
    needy = (demand > 0).any(axis=1)
    usable = np.flatnonzero(needy & eligible.any(axis=1))
    left_out = {
        names[n]: "no node has a model that it may run on" if needy[n] else "its pods request nothing"
        for n in np.setdiff1d(np.arange(len(names)), usable)
    }
    report["groups found"] = len(names)
    report["groups left out"] = len(left_out)
    if not usable.size:
        raise DataError(f"{folder} has no group of pods that can run{'' if at is None else f' at {at:g} s'}")
    chosen = usable[choose(len(usable), users, rng, "groups of pods")]
    result = Cluster(
        hosts[list(RESOURCES)].to_numpy(dtype=float),
        demand[chosen],
        eligible=eligible[chosen],
        max_tasks=groups.size().to_numpy(dtype=float)[chosen] if max_tasks else None,
        resources=RESOURCES,
        users=[names[n] for n in chosen],
        servers=hosts.index,
    )
    source = (
        f"Alibaba GPU 2023 ({folder.absolute().name}, {variant}): {len(chosen)} of {len(usable)} groups of pods by "
        f"{', '.join([*columns, 'gpu_spec'])}, {'all pods' if at is None else f'pods alive at {at:g} s'}; "
        f"{len(hosts)} nodes"
    )
    return Snapshot(result, source, dict(report), left_out)


def allowed(models: NDArray[np.str_], spec: str) -> Mask:
    """Mask (nodes,) of nodes whose model a gpu_spec admits (`G2|T4`; an empty gpu_spec admits all)."""
    if spec == "":
        return np.ones(len(models), dtype=bool)
    return np.isin(models, spec.split("|"))


def _find(directory: str | Path) -> Path:
    def holds(folder: Path) -> bool:
        return all(_csv.table_files(folder, start) for start in (_NODES, _PODS))

    return _csv.locate(directory, "alibaba", holds, _LAYOUT)


def _table(
    directory: str | Path, start: str, layout: _csv.Format, skip: bool, report: Counter[str] | None
) -> pd.DataFrame:
    """Read one of the tables, with additional columns `cpu` [cores] and `memory` [GiB]."""
    folder = _find(directory)
    files = _csv.table_files(folder, start)
    named = [path for path in files if path.name.removeprefix(start) in _csv.SUFFIXES]
    if not named:
        others = ", ".join(path.name for path in _csv.table_files(folder))
        raise DataError(f"{folder} has no {start}.csv; it has {others}")
    frame = _csv.read(named[0], layout, skip, Counter() if report is None else report, f"{start} ")
    return frame.assign(cpu=frame["cpu_milli"] / 1000, memory=frame["memory_mib"] / 1024)
