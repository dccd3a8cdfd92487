"""Clusters from public traces and from generators calibrated to them: `docs/workloads.md`."""

import importlib
import pkgutil

from . import alibaba, bitbrains, google2011
from ._pf_servers import Servers, pf_servers
from ._registry import generator, reader
from ._snapshot import Snapshot
from ._sources import traces_root
from .generators import alibaba_like, bitbrains_like, google_like, lognormal
from .sources import known, open_source, trace_folder

for _module in pkgutil.iter_modules(__path__):  # a source is registered by being defined
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")

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
    "lognormal",
    "open_source",
    "pf_servers",
    "reader",
    "trace_folder",
    "traces_root",
]
