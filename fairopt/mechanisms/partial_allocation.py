"""Partial allocation: fractions of the Nash optimum such that misreports do not benefit a user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base import clock
from ..certificates import Certificate, feasibility
from ..core.accuracy import SUM_ROUNDING
from ..core.solution import Run, Solution
from ..model._arrays import Array, numbered, ratio
from ..model.cluster import Cluster
from ..model.criterion import Criterion
from ..model.merging import Split
from ..model.problem import Problem
from ._base import Mechanism
from ._claim import claim
from .ceei import CEEI
from .reference.program import Program, Statement

#: `NASH` maximises Nash welfare over servers; `_TOL` is the tolerance of its optima.
NASH, _TOL = CEEI("servers"), 1e-8


class Optima(NamedTuple):
    """Nash optimum (users, servers), fractions f (users,), and the largest residual of the problems, with its place."""

    tasks: Array
    fraction: Array
    residual: float
    worst: str


def optima(cluster: Cluster, engine: str | None = None, solver: str | None = None) -> Optima:
    """Nash optimum of all users, and the fractions f, which the optima without each single user determine.

    The fraction is computed once for all users with the same data. The residual includes a bound on the relative error
    of each fraction, the sum of welfare gaps and rounding divided by the user's part of the total weight.
    """
    whole = NASH.solve(cluster, _TOL, throw=False, engine=engine, solver=solver)
    work, nash = whole.arrays.work, ", in the Nash optimum"
    found = [(whole.certificate.residual, f"{whole.certificate.worst}{nash}")]
    fraction, here = np.ones(len(work)), np.flatnonzero(work > 0)
    data = (cluster.demand, cluster.weight[:, None], cluster.max_tasks[:, None], cluster.eligible, cluster.rate)
    alike = numbered(np.hstack(data)[here].astype(float))
    first = np.unique(alike, return_index=True)[1]
    of_kind = np.ones(len(first))
    for k, n in enumerate(here[first] if len(here) > 1 else ()):
        others, without = here[here != n], cluster.drop_user(cluster.users[n])
        left = NASH.solve(without, _TOL, throw=False, engine=engine, solver=solver)
        found.append((left.certificate.residual, f"{left.certificate.worst}{nash} without user {cluster.users[n]!r}"))
        change = np.log(work[others] / left.arrays.work[others - (others > n)])
        lost = sum(max(one.gap or 0.0, one.feasibility) for one in (whole.certificate, left.certificate))
        error = float((lost + SUM_ROUNDING) * cluster.weight[here].sum() / cluster.weight[n])
        found.append((error, f"the fraction of user {cluster.users[n]!r}, whose weight is small"))
        of_kind[k] = np.exp(min(cluster.weight[others] @ change / cluster.weight[n], 0.0))
    fraction[here] = of_kind[alike]
    return Optima(whole.tasks, fraction, *max(found, key=lambda one: one[0]))


@dataclass(frozen=True)
class PartialAllocation(Mechanism):
    r"""Allocate to each user a fraction of its Nash optimum, the factor by which its presence reduces the others' work.

    .. math:: x_{ni} = f_n x^*_{ni}, \quad
        f_n = \prod_{m \ne n} \big( w_m(x^*) / w_m(x^{-n}) \big)^{\phi_m / \phi_n}

    Here :math:`w_n(x)` is the work of user n, :math:`x^*` maximises :math:`\sum_n \phi_n \log w_n(x)`, and
    :math:`x^{-n}` maximises this sum without user n. The remaining fraction is left idle and serves as a payment.
    `problem` formulates the problem of :math:`x^*`. The residual of the certificate is the maximum of the residuals of
    the Nash problems, of a bound on the relative error of :math:`f_n` by their welfare gaps, and of the relative
    distance of a user's work from :math:`f_n w_n(x^*)`. To certify given tasks the Nash problems are solved again.

    Properties: no user gains by reporting other rates or, without task limits, other demands. A user with a limit may
    gain by reporting larger tasks, a fraction of which attains the limit. Every user has at least 1/e of its work in
    the Nash optimum.

    Source: Cole, Gkatzelis, Goel, "Mechanism design for fair division: allocating divisible items without payments",
    EC 2013 (doi:10.1145/2492002.2482582); for GPUs Narayanan et al., "Heterogeneity-aware cluster scheduling policies
    for deep learning workloads" (Gavel), OSDI 2020 (arXiv:2008.09213).

    >>> import fairopt as fo
    >>> gpus = fo.Cluster([[1], [1], [1]], [[1], [1], [1]], max_tasks=1, rate=[[3, 1, 1], [3, 2, 1], [3, 2, 1]])
    >>> fo.PartialAllocation().solve(gpus).work.round(4).tolist()
    [1.28, 1.3333, 1.3333]
    """

    name = "partial-allocation"
    title = "partial allocation"
    source = "Cole, Gkatzelis, Goel, EC 2013"
    properties = "at least 1/e of the Nash optimum"
    claims = (
        *claim("strategy-proofness", conditions=("no task counts",), source="EC 2013, theorem 3.2"),
        *claim("strategy-proofness", conditions=("rates", "no task counts"), source="EC 2013, theorem 3.2"),
        *claim("sharing-incentive", "pareto-optimality", holds=False),
    )

    @classmethod
    def variants(cls) -> tuple[Mechanism, ...]:
        return ()  # comparisons include it only by name, since it solves a Nash problem for every user

    @classmethod
    def trials(cls) -> tuple[Mechanism, ...]:
        return (cls(),)

    def program(self, p: Program) -> Statement:
        return NASH.program(p)

    def criterion(self, cluster: Cluster) -> Criterion:
        return NASH.criterion(cluster)

    def engines(self, criterion: Criterion | None = None) -> tuple[str, ...]:
        return NASH.engines(criterion)

    def solutions(
        self, problem: Problem, engine: str, tol: float, solver: str | None, warm: object = None
    ) -> Iterator[Solution]:
        begun = clock.cpu()
        found = vars(problem)["nash"] = optima(problem.cluster, engine, solver)
        run = Run("Nash optima", clock.cpu() - begun)
        yield Solution(found.fraction[:, None] * found.tasks, None, engine, (run,), rounds=1 + len(found.fraction))

    def certify(
        self, cluster: Cluster, tasks: Array, log_prices: Array | None = None
    ) -> tuple[Certificate, Array | None]:
        return _judged(cluster, tasks, optima(cluster)), None

    def certified(self, problem: Problem, tasks: Split, log_prices: Array | None) -> tuple[Certificate, Array | None]:
        """Certificate of tasks by the Nash optima from which candidates were computed, or else by new optima."""
        known = vars(problem).get("nash")
        return _judged(problem.cluster, tasks(), known or optima(problem.cluster)), None


def _judged(cluster: Cluster, tasks: Array, found: Optima) -> Certificate:
    """Certificate of tasks by the Nash optima of their cluster."""
    feasible, where = feasibility(cluster, tasks)
    due = found.fraction * cluster.work(found.tasks)
    off = np.abs(ratio(cluster.work(tasks), due, 1.0) - 1) if np.isfinite(feasible) else np.full(len(due), np.inf)
    error, worst = found.residual, found.worst
    if off.max(initial=0.0) > error:
        error, worst = float(off.max()), f"largest for user {cluster.users[int(off.argmax())]!r}"
    return Certificate(feasible, error, "distance from partial allocation", where if feasible > error else worst)
