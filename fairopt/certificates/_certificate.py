"""`Certificate`: the distance of an allocation from feasible and from optimal, computed without its solver."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..model._frozen import Frozen
from ..model.cluster import Cluster
from ..model.split import Split

Array = NDArray[np.float64]
#: The measure of a certificate of tasks of which nothing but feasibility is claimed.
UNJUDGED = "no criterion"


@dataclass(frozen=True)
class Certificate(Frozen):
    """Two numbers that vouch for an allocation, both 0 for an exact answer; and what they mean for each user's tasks.

    Attributes
    ----------
    feasibility : float
        Largest relative overuse of a capacity or task limit, lack of a floor, largest negative or ineligible share.
    optimality : float
        Relative; `measure` says of what.
    measure : str
        `backward error` (finite alpha: by how much data must change for the tasks to be exact), `lexicographic rise`,
        `distance from the optimum` (exact, of a user's tasks), `exploitability` (PS-DSF: the relative rise in tasks
        that a server owes a user), `complaint`, or, where no criterion is stated, `no criterion`: `optimality` is 0.
    worst : str
        What the larger of the two is largest for, such as "largest for user 'b' on server 's'". It says nothing about
        how large that is: also of an exact answer something is the worst, by a rounding error.
    gap : float or None
        Welfare gap of a global program with finite alpha: nobody can have more welfare by more than this part of
        `sum_n x_n dF/dx_n`. It vouches for welfare, not for tasks.
    conditions : (users,) or None
        By what factor, at most and to first order, a relative change of the data moves each user's tasks; infinite
        where nothing is proved, `None` where it is not known. Estimated when it is first read.
    """

    feasibility: float
    optimality: float
    measure: str
    worst: str
    gap: float | None = None
    conditions: Array | None = field(default_factory=lambda: None, compare=False)

    @property
    def judged(self) -> bool:
        """Does it say something of optimality?"""
        return self.measure != UNJUDGED

    @property
    def residual(self) -> float:
        """The larger of the two; infinite when either is not a number."""
        values = (self.feasibility, self.optimality)
        return float(max(values)) if all(value == value for value in values) else float("inf")

    @property
    def condition(self) -> float:
        """The largest of `conditions`: errors in tasks are about this times `optimality`, at most; NaN if unknown."""
        known = self.conditions
        return float("nan") if known is None else float(np.max(known, initial=1.0))

    def passes(self, tol: float = 1e-6) -> bool:
        """Are both within `tol`?"""
        return self.residual <= tol

    def to_dict(self) -> dict[str, float | str | None]:
        """All but the conditions of single users, for tables and files."""
        names = ("feasibility", "optimality", "measure", "worst", "gap", "condition")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        if not self.judged:
            return f"Certificate(feasibility={self.feasibility:.1e}, {self.measure}; {self.worst})"
        return f"Certificate(feasibility={self.feasibility:.1e}, {self.measure}={self.optimality:.1e}; {self.worst})"


def feasible(cluster: Cluster, tasks: Array, log_prices: Array | None = None) -> tuple[Certificate, None]:
    """The certificate of tasks of which nothing is claimed but that they are feasible."""
    violation, where = feasibility(cluster, tasks)
    return Certificate(violation, 0.0, UNJUDGED, where), None


def feasibility(
    cluster: Cluster, tasks: Array | Split, limits: Array | None = None, floor: Array | None = None
) -> tuple[float, str]:
    """Largest relative violation of the feasible set by tasks, and where.

    `max(use/c - 1, x_n/limit - 1, 1 - x_n/floor, -x/gamma)`; infinite for a task on a server that cannot run it. Of a
    split, all but the use of capacities is judged on the merged servers, where it is the same.

    Parameters
    ----------
    cluster : whose capacities and eligibility hold
    tasks : (users, servers), a table, or split over merged servers
    limits : (users,), the most tasks `limit`; by default the cluster's `max_tasks`
    floor : (users,), the least tasks, 0 for none; by default none

    Returns
    -------
    violation : relative, 0 where nothing is violated; infinite too where tasks have another shape or are not finite
    where : in words
    """
    table, on = (tasks.merged, tasks.merging.cluster) if isinstance(tasks, Split) else (tasks, cluster)
    if table.shape != on.shape[:2] or not np.isfinite(table).all():
        return np.inf, "tasks are not finite numbers of shape (users, servers)"
    limits = cluster.max_tasks if limits is None else limits
    unusable = (table != 0) & ~on.usable
    if unusable.any():
        n, i = np.argwhere(unusable)[0]
        if isinstance(tasks, Split):
            i = np.flatnonzero(tasks.merging.server_of == i)[0]
        return np.inf, f"user {cluster.users[n]!r} has tasks on {cluster.servers[i]!r}, which cannot run them"
    use = tasks.use if isinstance(tasks, Split) else table.T @ cluster.demand
    over = np.divide(use, cluster.capacity, out=np.zeros_like(use), where=use > 0) - 1
    total = tasks.user_tasks if isinstance(tasks, Split) else table.sum(axis=1)
    with np.errstate(over="ignore"):  # a limit of zero
        over_limit = np.where(total > 0, total / np.maximum(limits, np.finfo(float).tiny), 0.0) - 1
    below = np.zeros(len(total))
    for n in np.flatnonzero((table < 0).any(axis=1)):
        below[n] = np.divide(-table[n], on.gamma[n], out=np.zeros(len(on.servers)), where=table[n] < 0).max()
    short = np.zeros(len(total))
    if floor is not None:
        short = np.divide(floor - total, floor, out=short, where=floor > 0)
    worst = max(0.0, float(over.max()), float(over_limit.max()), float(below.max()), float(short.max()))
    if worst == 0.0:
        return 0.0, "feasible"
    if worst == over.max():
        i, r = np.unravel_index(over.argmax(), over.shape)
        return worst, f"largest for {cluster.resources[r]!r} of {cluster.servers[i]!r}, overused"
    if worst == over_limit.max():
        return worst, f"largest for user {cluster.users[int(over_limit.argmax())]!r}, above its task limit"
    if worst == short.max():
        return worst, f"largest for user {cluster.users[int(short.argmax())]!r}, below its floor"
    return worst, f"largest for user {cluster.users[int(below.argmax())]!r}, with negative tasks"
