"""What every mechanism owes on every cluster; used by the laws of the registered ones and of one defined in a test."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from kernels import without_kernels

from fairopt.certificates import feasibility
from fairopt.errors import DataError, FairoptError, NotConverged, SolverError
from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster
from fairopt.result.allocation import Allocation

from .registry import refuses

#: Words of a remedy: an error about data says what to change, another one what to try.
DATA_REMEDIES = ("use ", "choose", "drop", "give", "must", "select(")
REMEDIES = ("ry another solver", "Relax tol", "relax tol", "more rounds", "please report it")


class Tally:
    """How many clusters were answered, refused, and given up, by name."""

    def __init__(self) -> None:
        self.answered = 0
        self.refused = 0
        self.gave_up: list[str] = []

    def __str__(self) -> str:
        return f"{self.answered} answered, {self.refused} refused, given up: {', '.join(self.gave_up) or 'none'}"


def check_answer(mechanism: Mechanism, cluster: Cluster, tally: Tally, name: str = "") -> None:
    """An answer that its certificate vouches for, or `DataError` where, and only where, `check` refuses the cluster.

    Any other error is a failure, but for clusters with a `name`: then the error must help, and the tally has the name.
    """
    if refuses(mechanism, cluster):
        tally.refused += 1
        check_refusal(mechanism, cluster)
        return
    try:
        with without_kernels() if tally.answered % 2 else nullcontext():  # small problems go both ways
            allocation = mechanism.solve(cluster)
    except (SolverError, NotConverged) as error:
        if not name:
            raise
        check_remedy(error)
        tally.gave_up.append(name)
        return
    tally.answered += 1
    certificate = allocation.certify()
    assert certificate.passes(mechanism.default_tol), certificate
    assert certificate.residual <= mechanism.default_tol  # whatever `passes` thinks
    # With the prices that the answer carries it is as good again, or better.
    assert certificate.residual <= allocation.certificate.residual * (1 + 1e-3) + 1e-9
    check_shape(allocation, cluster)
    check_prices(allocation)


def check_prices(allocation: Allocation) -> None:
    """Prices are no number below zero, and some are above if a user would run more: who stops it is what it pays."""
    if allocation.log_prices is None:
        return
    assert not np.isnan(allocation.log_prices).any()
    limits = allocation.criterion.limits(allocation.cluster)
    if (allocation.cluster.runnable & (allocation.arrays.user_tasks < limits * (1 - 1e-3))).any():
        assert (allocation.log_prices > -np.inf).any(), "nobody pays"


def check_refusal(mechanism: Mechanism, cluster: Cluster) -> None:
    """A refused cluster has several resources or finite tasks, and the error says what to change."""
    assert cluster.shape[2] > 1 or np.isfinite(cluster.max_tasks).any(), "nobody may refuse so simple a cluster"
    with pytest.raises(DataError) as refusal:
        mechanism.solve(cluster)
    assert any(word in str(refusal.value) for word in DATA_REMEDIES), f"no remedy in {refusal.value}"


def check_remedy(error: FairoptError) -> None:
    assert any(word in str(error) for word in REMEDIES), f"no remedy in {error}"


def check_shape(allocation: Allocation, cluster: Cluster) -> None:
    """Feasible in itself (not by its own word), zero for users who can run nowhere, and those named."""
    seen = allocation.cluster
    assert allocation.tasks.shape == seen.shape[:2]
    assert (allocation.tasks >= 0).all()
    assert not allocation.tasks[~seen.usable].any()
    assert seen.shape != cluster.shape or not allocation.tasks[~cluster.usable].any()  # not even if it forgot them
    assert (allocation.tasks.T @ seen.demand <= seen.capacity * (1 + 1e-6)).all()
    assert (allocation.arrays.user_tasks <= cluster.max_tasks * (1 + 1e-6)).all()
    assert feasibility(seen, allocation.tasks)[0] <= 1e-6
    nowhere = [cluster.users[n] for n in np.flatnonzero(~seen.usable.any(axis=1))]
    noted = " ".join(allocation.notes)
    assert ("can run nowhere" in noted) == bool(nowhere)
    for name in nowhere:
        assert name in noted
        assert allocation.arrays.user_tasks[seen.users.index(name)] == 0
