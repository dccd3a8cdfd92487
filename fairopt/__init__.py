"""fairopt: fair allocation of servers with several resources, every answer with a certificate.

    import fairopt as fo

    cluster = fo.Cluster(capacity=[[9, 18]], demand=[[1, 4], [3, 1]])
    allocation = fo.DRF().solve(cluster)

Names are loaded when first used, so that importing fairopt takes little time. Mechanisms are not listed here: each
mechanism of the package is available by the name of its class. Type checkers read `__init__.pyi`, which `make readme`
writes.
"""

from __future__ import annotations

import importlib
from typing import Any

from .base.version import __version__ as __version__

_HOME = {
    "Allocation": "result.allocation",
    "Certificate": "certificates",
    "Cluster": "model.cluster",
    "Columns": "mechanisms.columns",
    "Workload": "scheduling.workload",
    "Criterion": "model.criterion",
    "Queue": "model.queues",
    "Queues": "model.queues",
    "alpha_path": "study.alpha_path",
    "best_response": "game.best_responses",
    "compare": "study.compare",
    "explore": "app.explorer.explore",
    "find_alpha": "study.find_alpha",
    "find_weights": "study.find_weights",
    "fluid": "scheduling.fluid",
    "infer_alpha": "study.infer_alpha",
    "mechanism": "mechanisms._function",
    "merge": "model.merging",
    "open_source": "workloads.sources",
    "open_workload": "workloads.sources",
    "shadow": "app.explorer.shadow",
    "simulate": "workloads._simulate",
    "solve": "mechanisms",
    "solve_many": "study.solve_many",
    "sweep": "harness.sweeps",
}
_MODULES = {
    **{
        name: name
        for name in (
            "certificates",
            "game",
            "harness",
            "mechanisms",
            "properties",
            "scheduling",
            "study",
        )
    },
    "errors": "base.errors",
    "metrics": "study.metrics",
    "papers": "harness.papers",
    "plot": "result.plot",
    "report": "harness.report",
    "workloads": "workloads",
}


def _mechanism(name: str) -> Any:
    """Class of the mechanism of the package with this class name; None if there is none."""
    found = importlib.import_module(".mechanisms", __name__).REGISTRY.find(name)
    return found if found is not None and found.__name__ == name and _ours(found) else _mechanisms().get(name)


def _mechanisms() -> dict[str, Any]:
    """Classes of all mechanisms of the package, by class name."""
    registry = importlib.import_module(".mechanisms", __name__).REGISTRY
    return {kind.__name__: kind for kind in registry.values() if _ours(kind)}


def _ours(kind: type) -> bool:
    return kind.__module__.startswith(f"{__name__}.mechanisms.")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name in _MODULES:
        return importlib.import_module(f".{_MODULES[name]}", __name__)
    if name == "__all__":
        return sorted([*_HOME, *_MODULES, *_mechanisms()])
    # Python also looks up submodules here before it imports them; only names of classes begin with a capital letter.
    if name[:1].isupper() and (found := _mechanism(name)) is not None:
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_HOME, *_MODULES, *_mechanisms(), "__all__", "__doc__", "__name__", "__version__"])
