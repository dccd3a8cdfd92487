"""Clusters and workloads from public traces, and from generators calibrated to them: `docs/workloads.md`."""

import importlib
import pkgutil

from . import alibaba, bitbrains, google2011
from ._job_files import load as load_workload
from ._job_files import save as save_workload
from ._pf_servers import Servers, pf_servers
from ._snapshot import Snapshot
from .generators import alibaba_like, bitbrains_like, google_like, lognormal
from .sources import (
    generator,
    known,
    known_workloads,
    open_source,
    open_workload,
    reader,
    trace_folder,
    traces_root,
    workload_generator,
    workload_reader,
)

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):  # the import of a module registers its sources
    if not _module.name.rpartition(".")[2].startswith("_"):
        importlib.import_module(_module.name)

__all__ = [
    "Servers",
    "Snapshot",
    "alibaba",
    "alibaba_like",
    "bitbrains",
    "bitbrains_like",
    "generator",
    "google2011",
    "google_like",
    "known",
    "known_workloads",
    "load_workload",
    "lognormal",
    "open_source",
    "open_workload",
    "pf_servers",
    "reader",
    "save_workload",
    "trace_folder",
    "traces_root",
    "workload_generator",
    "workload_reader",
]
