"""What another mechanism gives on the same cluster: bottleneck fairness and its like compare with that."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..errors import SolverError
from ..exact import rational
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ._base import Case, Numbers
from ._exact import exact_tasks


def reference(mechanism: Mechanism, cluster: Cluster, case: Case) -> Numbers:
    """Tasks of every user by a max-min mechanism, (users,): exact on small clusters, else by `solve`."""
    if case.exact:
        tasks = exact_tasks(mechanism, cluster)
        if tasks is None:
            raise SolverError("the cluster is too large for rational arithmetic; take a smaller one")
        return np.asarray(tasks.sum(axis=1))
    seen = mechanism.prepare(cluster)[0]
    found = rational.leximin(seen, mechanism.criterion(seen), seen.max_tasks)
    if found is not None:
        return np.array([float(Fraction(total)) for total in found.tasks.sum(axis=1)])
    return mechanism.solve(cluster).user_tasks
