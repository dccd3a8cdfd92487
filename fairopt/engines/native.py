"""The native engine of the global mechanisms: from a criterion alone, without a formulation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cluster import Cluster
from ..criteria import Criterion
from . import concave
from .declarative import Solution


def handles(criterion: Criterion) -> bool:
    """Is it one of the alpha-fair family, with alpha finite, on a pool or servers?"""
    return (
        type(criterion) is Criterion and criterion.scope in ("pool", "servers") and bool(np.isfinite(criterion.alpha))
    )


def solutions(cluster: Cluster, criterion: Criterion, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    return concave.solutions(cluster, criterion, tol, warm)
