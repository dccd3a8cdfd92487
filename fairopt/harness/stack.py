"""Joint solution of draws from one source by one mechanism, on the stacks of `fairopt.solve_many`.

The method is the kernel of `fairopt.core.engines.small` for the mechanism's kind of problem. Draws that it solves less
accurately than `Mechanism.solve` are left to be solved individually.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ..base import clock
from ..certificates import Certificate
from ..core.engines.small import Kind, kind_of
from ..core.game.curve_system import OPTIONS as CURVE
from ..core.game.selection import MAYBE_OTHERS, unique
from ..core.judge import infeasibility
from ..core.system import stacked
from ..mechanisms import Mechanism
from ..model.cluster import Cluster
from ..model.problem import Problem
from ..result.allocation import Allocation, Stats
from ..study.solve_many import together
from . import origin
from .cell import Cell, Row
from .solve import DEFAULT, TINY, Solve, measured

#: `TOGETHER`: largest number of draws solved together. `_PAIRS`: largest number of (user, server) pairs of a draw.
TOGETHER, _PAIRS = 500, 60
#: Largest difference between normalised rows of capacity or demand at which servers or users count as proportional.
_ALIKE = 1e-9
#: `_LARGEST`: bound on the certificates of stacks; a larger error means that refinement failed. `_TOL`: tolerance of
#: the iterations for a stack.
_LARGEST, _TOL = 1e-10, 1e-11
#: Measures that are computed from the allocation, without a further solve.
_MEASURED = {"utilization", "convergence", "classes", "tasks"}


def may_be(cell: Cell) -> bool:
    """True if a cell can be solved in a stack.

    The cell must be a random draw, solved by the default engine, without measures that require further solves, and its
    mechanism must inherit `solve` and `certify`.
    """
    job, kind = cell.job, type(cell.job.what.made)
    return (
        isinstance(job, Solve)
        and job.engine == DEFAULT
        and cell.origin.random
        and _MEASURED.issuperset(cell.measures)
        and issubclass(kind, Mechanism)
        and kind.solve is Mechanism.solve
        and kind.certify is Mechanism.certify
    )


def rows(cells: Sequence[Cell], traces: str | None) -> dict[str, Row]:
    """Rows of draws from one source by one mechanism, by key; draws without a row have to be solved individually.

    PS-DSF is excluded: its allocations are not unique, so that a stack may differ from `Mechanism.solve`. So are
    problems without a kernel, and draws of more than 60 (user, server) pairs, or of another shape than the first draw.
    """
    job, watch = cells[0].job, clock.Watch()
    assert isinstance(job, Solve)
    mechanism, drawn = job.what.made, [origin.drawn(cells[0].origin, cells[0].seed, cells[0].repetition, traces)]
    kind = kind_of(mechanism.criterion(mechanism.prepare(TINY)[0]))
    if kind in (None, "psdsf") or np.prod(drawn[0][0].shape[:2]) > _PAIRS:
        return {}
    drawn += [origin.drawn(cell.origin, cell.seed, cell.repetition, traces) for cell in cells[1:]]
    drawing, watch = watch.cpu / len(cells), clock.Watch()
    shape = drawn[0][0].shape
    chosen = [k for k, (cluster, _) in enumerate(drawn) if cluster.shape == shape and _plain(cluster)]
    answers = _answers(job, kind, [drawn[k][0] for k in chosen]) if chosen else []
    took = {"drawing": drawing, "seconds": watch.cpu / len(cells), "wall": watch.seconds / len(cells)}
    found = {}
    for k, answer in zip(chosen, answers, strict=True):
        if answer is not None:
            watch, cell, (cluster, about) = clock.Watch(), cells[k], drawn[k]
            row = measured(cell, cluster, answer) | {"about": about, "steps": None} | took
            found[cell.key] = row | {"measuring": watch.cpu}
    return found


@cache
def _tiny(job: Solve) -> Stats:
    """Statistics of the solution of a tiny cluster, for which `solve` chooses the same solver as for small draws."""
    return job.allocation(TINY, np.random.default_rng(0)).stats


def _plain(cluster: Cluster) -> bool:
    """True without placement constraints, task limits and rates, and without proportional servers or users.

    `Mechanism.solve` would merge proportional servers, among which the division of tasks is not unique.
    """
    if cluster.constrained or cluster.rated or not np.isinf(cluster.max_tasks).all():
        return False
    for amounts in (cluster.capacity, cluster.demand):
        part = amounts / amounts.sum(axis=1, keepdims=True)
        apart = np.abs(part[:, None] - part).max(axis=2) + np.eye(len(part))
        if apart.min() <= _ALIKE:
            return False
    return True


def _answers(job: Solve, kind: Kind, clusters: Sequence[Cluster]) -> list[Allocation | None]:
    """Solve clusters by the kernel of a kind of problem; None for each cluster that may need another method."""
    watch, mechanism = clock.Watch(), job.what.made
    prepared = [mechanism.prepare(cluster) for cluster in clusters]
    problems = [Problem(seen, mechanism.criterion(seen)) for seen, _ in prepared]
    given = problems if len(problems) > 1 else 2 * problems  # sums over a single problem round differently
    tasks, error, unstable = together(kind, given, _TOL)
    rule = problems[0].criterion
    q = stacked(given, np.ones(len(given)) if np.isinf(rule.alpha) else None)
    over = infeasibility(q, np.moveaxis(tasks, 0, -1) / np.where(q.usable, q.gamma, 1.0))
    others = kind == "game" and abs(np.log(rule.alpha)) > np.log(CURVE.near)
    stats = replace(_tiny(job), build=0.0, certify=0.0, solve=watch.cpu / len(problems))
    measure = "backward error" if np.isfinite(rule.alpha) else "lexicographic rise"
    certificates = [Certificate(float(o), float(e), measure, "") for o, e in zip(over, error, strict=True)]
    return [
        Allocation(
            str(mechanism), problem.cluster, tasks[k], certificates[k], rule, None, stats,
            (*notes, MAYBE_OTHERS) if others and not unique(problem) else notes, job.tol, mechanism.certify,
        ) if error[k] <= min(_LARGEST, job.tol) and not unstable[k] else None
        for k, (problem, (_, notes)) in enumerate(zip(problems, prepared, strict=True))
    ]  # fmt: skip
