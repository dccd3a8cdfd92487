"""Bitbrains (GWA-T-12): virtual machines of business-critical workloads, `fastStorage` and `rnd`.

Source: S. Shen, V. van Beek, A. Iosup, "Statistical characterization of business-critical workloads hosted in
cloud datacenters", CCGrid 2015. Layout: one `<vm>.csv[.gz]` per virtual machine in a folder; a header line;
fields separated by a semicolon (and a tab).

Times are Unix seconds, whatever the header says. A row with 0 cores states that the VM is switched off; it is dropped
and counted. Use in excess of the provisioned amount, repeated timestamps, other sampling steps and late starts are
properties of the data, and do not make a row malformed. No field may be empty.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..model.cluster import Cluster
from ..scheduling.workload import one_of
from . import _csv
from ._csv import Column
from ._draw import (
    Amount,
    Count,
    Positive,
    Probability,
    above_zero,
    choose,
    eligible,
    finite,
    needed,
    placed,
    positive,
)  # fmt: skip
from ._pf_servers import Kinds, pf_servers
from ._snapshot import Snapshot
from .sources import reader

Statistic = Literal["mean", "provisioned"]

_LAYOUT = (
    "a folder of <vm>.csv or <vm>.csv.gz files, one per virtual machine, named by number, or a folder above such "
    "folders (fastStorage/2013-8, rnd/2013-7, ...)"
)
_TIME, _CORES = "Timestamp [ms]", "CPU cores"
_KB = 1.0 / 2**20  # KB to GB: the trace writes 8388608 KB for 8 GB
# Name of a column here: (name in the trace, factor to the unit here). Rates in the trace are taken as decimal kB/s.
_COLUMNS = {
    "cpu": ("CPU usage [MHZ]", 1e-3),
    "memory": ("Memory usage [KB]", _KB),
    "disk_read": ("Disk read throughput [KB/s]", 1e-3),
    "disk_write": ("Disk write throughput [KB/s]", 1e-3),
    "received": ("Network received throughput [KB/s]", 8e-3),
    "transmitted": ("Network transmitted throughput [KB/s]", 8e-3),
    "cpu_provisioned": ("CPU capacity provisioned [MHZ]", 1e-3),
    "memory_provisioned": ("Memory capacity provisioned [KB]", _KB),
}
_USED = [name for name in _COLUMNS if not name.endswith("provisioned")]
_FORMAT = _csv.Format(
    separator=";",
    columns=(Column(_TIME, "int"), Column(_CORES), *(Column(name) for name, _ in _COLUMNS.values())),
)


def samples(
    directory: str | Path,
    start: float = -math.inf,
    end: float = math.inf,
    part: str | None = None,
    skip_malformed: bool = False,
    report: Counter[str] | None = None,
) -> pd.DataFrame:
    """Every sample of every VM that is switched on, with `start` <= time < `end` (Unix seconds).

    Columns: `vm` (number), `time`, `cpu` and `cpu_provisioned` [GHz], `memory` and `memory_provisioned` [GB],
    `disk_read` and `disk_write` [MB/s], `received` and `transmitted` [Mb/s]. The table takes 80 bytes per row;
    `start` and `end` reduce it, as the whole archive has 11 million rows.

    Parameters
    ----------
    directory
        A folder of VM files, or a folder above it. Of several folders of VM files in `directory`, only folders with
        `part` in their path below `directory` are considered, and the folder with the most files is read (the first by
        name in a tie).
    report
        Counter to which numbers of rows are added.

    Raises
    ------
    DataError
        There is no such trace, or a row is malformed (unless `skip_malformed`).
    """
    report, folder = Counter() if report is None else report, _find(directory, part)
    frames, times = {}, []
    for vm, path in sorted(_vm_files(folder).items()):
        frame = _csv.read(path, _FORMAT, skip_malformed, report)
        on = frame[_CORES] > 0
        times += [frame[_TIME].min(), frame[_TIME].max()]
        report["rows dropped, switched off"] += int((~on).sum())
        kept = frame[on & (frame[_TIME] >= start) & (frame[_TIME] < end)]
        if len(kept):
            frames[vm] = kept
    if not frames:
        raise DataError(
            f"{folder} has no sample of a virtual machine that is on from {start:.12g} to {end:.12g}; "
            f"its samples are from {min(times)} to {max(times)} (Unix seconds)"
        )
    found = pd.concat(frames, names=["vm", "row"]).reset_index("vm").reset_index(drop=True)
    columns = {name: found[column] * factor for name, (column, factor) in _COLUMNS.items()}
    return pd.DataFrame({"vm": found["vm"], "time": found[_TIME], **columns})


def demands(table: pd.DataFrame, at: float, window: float, statistic: Statistic = "mean") -> pd.DataFrame:
    """Demand of each VM (index, ascending) for cpu, memory, disk_read, disk_write, received and transmitted.

    `"mean"`: the mean of `samples` with at <= time < at + window. `"provisioned"`: cpu and memory as provisioned,
    on average, and the mean use of the other resources, for which the trace states no provisioned amount. Samples of
    one VM with the same time count as one, with their mean. Units are those of `samples`.

    Raises
    ------
    DataError
        `statistic` is neither of the two.
    """
    one_of(statistic, "statistic", Statistic)
    inside = table[(table["time"] >= at) & (table["time"] < at + window)]
    once = inside.groupby(["vm", "time"]).mean()
    result = once.groupby(level="vm").mean()
    if statistic == "provisioned":
        result = result.assign(cpu=result["cpu_provisioned"], memory=result["memory_provisioned"])
    return result[_USED]


@reader(
    "bitbrains",
    "Bitbrains virtual machines on the servers of the alphaPF-VDS paper (bitbrains[:DIR])",
    folder="bitbrains",
    stand_in="bitbrains-like",
)
def cluster(
    directory: str | Path,
    at: Annotated[float | None, finite] = None,
    window: Positive = 3600.0,
    vms: Amount = 100,
    servers: Count = 20,
    statistic: Statistic = "mean",
    split_disk: bool = False,
    density: Probability = 1.0,
    by: Kinds = "type",
    part: str | None = None,
    rng: np.random.Generator | None = None,
    skip_malformed: bool = False,
) -> Snapshot:
    """Cluster of virtual machines as users, on the servers of `pf_servers`.

    A user is a VM that is switched on within the window; the demand of its task is given by `demands`. A VM that
    uses nothing at all in the window is left out and listed in the snapshot.

    Parameters
    ----------
    directory : str or Path
        Folder of VM files, or a folder above it, as in `samples`.
    at : Unix seconds, or None
        Start of the window. None: the window is drawn with `rng` from the consecutive windows since the first sample in
        which at least `vms` VMs (if an integer) have a demand, so that VMs that start late do not matter.
    window : seconds
        Length of the window; samples are usually 300 s apart.
    vms : int, float or None
        Number of VMs to draw with `rng`, as a number, a fraction of all VMs, or None for all.
    servers : int
        Number of servers; for another mix use `snapshot.cluster.replace` with `pf_servers(...)`.
    statistic : "mean" or "provisioned"
        Definition of demands, as in `demands`.
    split_disk : bool
        Model reading and writing as two resources, `disk_read` and `disk_write`, in place of their sum `disk`.
    density : float
        Probability in (0, 1] that a VM may use a kind of servers; each may use at least one kind.
    by : "type", "location" or "server"
        Kinds of servers in placement constraints.
    part : str, optional
        Part of the path of the folder, as in `samples`.
    rng : Generator, optional
        Random generator, for draws of the window, of VMs or of placement.
    skip_malformed : bool
        Skip malformed rows, and count them.

    Raises
    ------
    DataError
        There is no such trace, a row is malformed (unless `skip_malformed`), there are too few VMs, or `rng` is
        missing.
    """
    above_zero(window, "window")
    hosts = pf_servers(servers, split_disk=split_disk)
    folder = _find(directory, part)
    report: Counter[str] = Counter()
    if at is None:
        table = _csv.once(
            "bitbrains", lambda counts: samples(folder, skip_malformed=skip_malformed, report=counts),
            _vm_files(folder).values(), skip_malformed, report,
        )  # fmt: skip
        at = _drawn_instant(table, window, vms, needed(rng, "choose an instant (or pass at=...)"))
    else:
        table = samples(folder, at, at + window, None, skip_malformed, report)
    demand = demands(table, at, window, statistic)
    report["virtual machines found"] = len(demand)
    usable = (demand > 0).any(axis=1)
    left_out = {f"vm{vm}": "it uses nothing within the window" for vm in demand.index[~usable]}
    report["virtual machines left out"] = len(left_out)
    demand = demand[usable]
    if demand.empty:
        raise DataError(f"{folder} has no virtual machine that is on and in use within {window:g} s from {at:.0f}")
    chosen = choose(len(demand), vms, rng, "virtual machines")
    if not split_disk:
        demand = demand.assign(disk=demand["disk_read"] + demand["disk_write"])
    result = Cluster(
        hosts.capacity,
        demand[list(hosts.resources)].to_numpy()[chosen],
        eligible=eligible(hosts.kinds(by), len(chosen), density, rng),
        resources=hosts.resources,
        users=[f"vm{vm}" for vm in demand.index[chosen]],
        servers=hosts.names,
    )
    what = "mean use" if statistic == "mean" else "provisioned CPU and memory, mean use of the rest"
    where = folder.absolute().relative_to(Path(directory).absolute().parent).as_posix()
    source = (
        f"Bitbrains ({where}): {len(chosen)} of {len(demand)} virtual machines, {what} "
        f"within {window:g} s from {at:.0f}; {servers} servers of three types at three locations{placed(density, by)}"
    )
    return Snapshot(result, source, dict(report), left_out)


def _drawn_instant(table: pd.DataFrame, window: float, vms: int | float | None, rng: np.random.Generator) -> float:
    first = int(table["time"].min())
    used = table.loc[(table[_USED] > 0).any(axis=1)]
    number = used["vm"].groupby((used["time"] - first) // window).nunique()
    least = positive(vms, "virtual machines") if isinstance(vms, int) else 1
    candidates = number.index[number >= least]
    if candidates.empty:
        raise DataError(
            f"no window of {window:g} s has {least} virtual machines in use; the most are {number.max()}: ask for fewer"
        )
    return float(first + rng.choice(candidates.to_numpy()) * window)


def _find(directory: str | Path, part: str | None) -> Path:
    root = _csv.existing(directory, _LAYOUT)
    folders = sorted(Path(folder) for folder, _, _ in os.walk(root))
    if part is not None:
        folders = [folder for folder in folders if part in folder.relative_to(root).as_posix()]
    found = {folder: len(files) for folder in folders if (files := _vm_files(folder))}
    if not found:
        wanted = f" below a folder named {part!r}" if part is not None else ""
        raise DataError(f"{root} holds no trace that can be read here{wanted}; expected {_LAYOUT}")
    return max(found, key=lambda folder: found[folder])


def _vm_files(folder: Path) -> dict[int, Path]:
    paths = {path.name.split(".")[0]: path for path in _csv.table_files(folder)}
    return {int(name): paths[name] for name in sorted(paths) if name.isdecimal()}
