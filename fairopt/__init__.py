"""fairopt: fair allocation of servers with several resources, every answer with a certificate.

    import fairopt as fo

    cluster = fo.Cluster(capacity=[[9, 18]], demand=[[1, 4], [3, 1]])
    allocation = fo.DRF().solve(cluster)

Names are loaded when first used, so that importing fairopt stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import certificates, errors, game, harness, mechanisms, papers, report, workloads
    from .certificates import Certificate
    from .game.dynamics.distributed import best_response
    from .harness.alpha_path import alpha_path
    from .harness.compare import compare
    from .harness.sweep import sweep
    from .mechanisms.alpha_fair import AlphaFair
    from .mechanisms.alphapf_vds import AlphaPFVDS
    from .mechanisms.asset_fairness import AssetFairness
    from .mechanisms.bottleneck_fairness import BottleneckFairness
    from .mechanisms.ceei import CEEI
    from .mechanisms.cmmf import CMMF
    from .mechanisms.drf import DRF
    from .mechanisms.drfh import DRFH
    from .mechanisms.fds import FDS, GFJ
    from .mechanisms.maxmin import MaxMin
    from .mechanisms.mqdrf import MQDRF
    from .mechanisms.per_server_drf import PerServerDRF
    from .mechanisms.psdsf import PSDSF
    from .mechanisms.task_maxmin import TaskMaxMin
    from .mechanisms.tsf import TSF
    from .mechanisms.utilitarian import Utilitarian
    from .model.cluster import Cluster
    from .model.criterion import Criterion
    from .model.merging import merge
    from .result import metrics
    from .result.allocation import Allocation
    from .workloads.sources import open_source

_HOME = {
    "Allocation": "result.allocation",
    "AlphaFair": "mechanisms.alpha_fair",
    "AlphaPFVDS": "mechanisms.alphapf_vds",
    "AssetFairness": "mechanisms.asset_fairness",
    "BottleneckFairness": "mechanisms.bottleneck_fairness",
    "CEEI": "mechanisms.ceei",
    "CMMF": "mechanisms.cmmf",
    "Certificate": "certificates",
    "Cluster": "model.cluster",
    "Criterion": "model.criterion",
    "DRF": "mechanisms.drf",
    "DRFH": "mechanisms.drfh",
    "FDS": "mechanisms.fds",
    "GFJ": "mechanisms.fds",
    "MQDRF": "mechanisms.mqdrf",
    "MaxMin": "mechanisms.maxmin",
    "PSDSF": "mechanisms.psdsf",
    "PerServerDRF": "mechanisms.per_server_drf",
    "TSF": "mechanisms.tsf",
    "TaskMaxMin": "mechanisms.task_maxmin",
    "Utilitarian": "mechanisms.utilitarian",
    "alpha_path": "harness.alpha_path",
    "best_response": "game.dynamics.distributed",
    "compare": "harness.compare",
    "merge": "model.merging",
    "open_source": "workloads.sources",
    "sweep": "harness.sweep",
}
__all__ = [
    "CEEI",
    "CMMF",
    "DRF",
    "DRFH",
    "FDS",
    "GFJ",
    "MQDRF",
    "PSDSF",
    "TSF",
    "Allocation",
    "AlphaFair",
    "AlphaPFVDS",
    "AssetFairness",
    "BottleneckFairness",
    "Certificate",
    "Cluster",
    "Criterion",
    "MaxMin",
    "PerServerDRF",
    "TaskMaxMin",
    "Utilitarian",
    "alpha_path",
    "best_response",
    "certificates",
    "compare",
    "errors",
    "game",
    "harness",
    "mechanisms",
    "merge",
    "metrics",
    "open_source",
    "papers",
    "report",
    "sweep",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name == "metrics":
        return importlib.import_module(".result.metrics", __name__)
    if name in __all__:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
