"""Clusters from public traces and from generators calibrated to them: `docs/workloads.md`."""

from . import alibaba, bitbrains, google2011
from ._pf_servers import Servers, pf_servers
from ._snapshot import Snapshot
from .generators import alibaba_like, bitbrains_like, google_like
from .sources import known, open_source, traces_root

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
    "open_source",
    "pf_servers",
    "traces_root",
]
