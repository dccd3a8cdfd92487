"""The native engines of the global mechanisms: from a criterion alone, without a formulation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..cluster import Cluster
from ..criteria import Criterion
from . import concave, maxmin
from .declarative import Solution


def handles(criterion: Criterion) -> bool:
    """Is it alpha-fair welfare or max-min on a pool or servers, or max-min inside each server?"""
    scopes = ("pool", "servers", "each") if np.isinf(criterion.alpha) else ("pool", "servers")
    return type(criterion) is Criterion and criterion.scope in scopes


def solutions(cluster: Cluster, criterion: Criterion, tol: float, warm: object = None) -> Iterator[Solution]:
    """Ever better answers, for a judge to take the first good one."""
    if np.isinf(criterion.alpha):
        return maxmin.solutions(cluster, criterion, tol)
    return concave.solutions(cluster, criterion, tol, warm)
