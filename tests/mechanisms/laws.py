"""What every mechanism owes on every cluster; used by the laws of the registered ones and of one defined in a test."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fairopt.certificates import feasibility
from fairopt.errors import DataError, NotConverged, SolverError
from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster
from fairopt.result.allocation import Allocation

#: Words of a remedy: an error about data says what to change.
REMEDIES = ("use ", "choose", "drop", "give", "must", "select(")


def check_answer(mechanism: Mechanism, cluster: Cluster, seen: Counter[str]) -> None:
    """One answer that its certificate vouches for, or an error of the right kind; CertificateError passes through."""
    seen["clusters"] += 1
    try:
        allocation = mechanism.solve(cluster)
    except (DataError, SolverError, NotConverged) as error:
        seen[type(error).__name__] += 1
        words = REMEDIES if isinstance(error, DataError) else ("ry another solver", "Relax tol")
        helps = any(word in str(error) for word in words)
        if not helps:
            raise AssertionError(f"no remedy in {error}") from error
        return
    certificate = allocation.certify()
    assert certificate.passes(mechanism.default_tol), certificate
    # With the prices that the answer carries it is as good again, or better.
    assert certificate.residual <= allocation.certificate.residual * (1 + 1e-3) + 1e-9
    check_shape(allocation, cluster)


def check_shape(allocation: Allocation, cluster: Cluster) -> None:
    """Feasible in itself (not by its own word), zero for users who can run nowhere, and those named."""
    seen = allocation.cluster
    assert allocation.tasks.shape == seen.shape[:2]
    assert (allocation.tasks >= 0).all()
    assert not allocation.tasks[~seen.usable].any()
    assert (allocation.tasks.T @ seen.demand <= seen.capacity * (1 + 1e-6)).all()
    assert (allocation.user_tasks <= cluster.max_tasks * (1 + 1e-6)).all()
    assert feasibility(seen, allocation.tasks)[0] <= 1e-6
    nowhere = [cluster.users[n] for n in np.flatnonzero(~seen.usable.any(axis=1))]
    noted = " ".join(allocation.notes)
    assert ("can run nowhere" in noted) == bool(nowhere)
    for name in nowhere:
        assert name in noted
        assert allocation.user_tasks[seen.users.index(name)] == 0
