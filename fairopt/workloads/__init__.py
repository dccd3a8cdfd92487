"""Clusters from public traces and from generators calibrated to them: `docs/workloads.md`."""

from . import alibaba, bitbrains, google2011
from ._pf_servers import Servers, pf_servers
from ._snapshot import Snapshot
from .generators import alibaba_like, bitbrains_like, google_like, lognormal
from .sources import known, open_source, trace_folder, traces_root

__all__ = [
    "Servers",
    "Snapshot",
    "alibaba",
    "alibaba_like",
    "bitbrains",
    "bitbrains_like",
    "google2011",
    "google_like",
    "known",
    "lognormal",
    "open_source",
    "pf_servers",
    "trace_folder",
    "traces_root",
]
