"""Joint solution of draws from one source by one mechanism, on the stacks of `fairopt.solve_many`.

The method is the one that solves the mechanism on a tiny cluster. Draws for which it is less accurate than
`Mechanism.solve` are left to be solved individually.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ..base import clock
from ..certificates import Certificate
from ..core import maxmin
from ..core.game.curve_system import OPTIONS as CURVE
from ..core.game.index import stable
from ..core.game.selection import MAYBE_OTHERS, unique
from ..core.judge import infeasibility
from ..core.solve import finite
from ..core.system import stacked
from ..mechanisms import Mechanism
from ..mechanisms._order import HARD
from ..model._arrays import Mask
from ..model._validate import LEAST
from ..model.cluster import Cluster
from ..model.problem import Problem
from ..result.allocation import Allocation, Stats
from . import origin
from .cell import Cell, Row
from .solve import DEFAULT, TINY, Solve, measured

#: Largest number of draws solved together, and largest number of (user, server) pairs of a draw.
TOGETHER, _PAIRS = 500, 60
#: Solvers with a version for stacks.
_STACKED = ("dense interior point", "dense simplex", "water filling")
#: Measures that need no further solution.
_MEASURED = {"utilization", "convergence", "classes", "tasks"}


def may_be(cell: Cell) -> bool:
    """True if a cell can be solved in a stack: a draw, with the default engine, and the common solve and certify."""
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
    """Rows of draws from one source by one mechanism, by key; missing ones have to be solved individually."""
    job, watch = cells[0].job, clock.Watch()
    assert isinstance(job, Solve)
    tiny = _tiny(job)
    drawn = [origin.drawn(cells[0].origin, cells[0].seed, cells[0].repetition, traces)]
    if tiny.solver not in _STACKED or np.prod(drawn[0][0].shape[:2]) > _PAIRS:
        return {}
    drawn += [origin.drawn(cell.origin, cell.seed, cell.repetition, traces) for cell in cells[1:]]
    drawing, watch = watch.cpu / len(cells), clock.Watch()
    chosen = np.flatnonzero(_plain([cluster for cluster, _ in drawn])).tolist()
    answers = _answers(job, tiny, [drawn[k][0] for k in chosen]) if chosen else []
    took = {"drawing": drawing, "seconds": watch.cpu / len(cells), "wall": watch.seconds / len(cells)}
    found = {}
    for k, answer in zip(chosen, answers, strict=True):
        if answer is not None:
            watch, cell, (cluster, about) = clock.Watch(), cells[k], drawn[k]
            row = measured(cell, cluster, answer) | {"about": about} | took
            found[cell.key] = row | {"measuring": watch.cpu}
    return found


@cache
def _tiny(job: Solve) -> Stats:
    """Statistics of the mechanism on a tiny cluster, whose solver is that of small draws."""
    return job.allocation(TINY, np.random.default_rng(0)).stats


def _plain(clusters: Sequence[Cluster]) -> Mask:
    """Mask (clusters,) of those that `solve` neither transforms nor annotates.

    These have the shape of the first, no placement constraints, task limits or rates, data of moderate dynamic range,
    and no proportional servers or users.
    """
    shape = clusters[0].shape
    plain = np.array([one.shape == shape and not (one.constrained or one.rated) and bool(np.isinf(one.max_tasks).all())
                      for one in clusters])  # fmt: skip
    some = np.flatnonzero(plain).tolist()
    for name in ("weight", "capacity", "demand") if some else ():
        amounts = np.array([getattr(clusters[k], name) for k in some])
        # Relative to the largest amount of the same resource.
        relative = amounts / np.maximum(amounts.max(axis=1, keepdims=True), LEAST)
        plain[some] &= np.where(relative > 0, relative, 1.0).reshape(len(some), -1).min(axis=1) > 1 / HARD
        if name == "weight":
            continue
        part = amounts / amounts.sum(axis=2, keepdims=True)
        apart = np.abs(part[:, :, None] - part[:, None]).max(axis=3) + np.eye(part.shape[1])
        plain[some] &= (apart > 1e-9).all(axis=(1, 2))
    return plain


def _answers(job: Solve, tiny: Stats, clusters: Sequence[Cluster]) -> list[Allocation | None]:
    """Allocations by the method of the tiny cluster; None if another method may be needed."""
    watch, mechanism = clock.Watch(), job.what.made
    prepared = [mechanism.prepare(cluster) for cluster in clusters]
    problems = [Problem(seen, mechanism.criterion(seen)) for seen, _ in prepared]
    rule, aim = problems[0].criterion, 0.1 * job.tol
    given = problems if len(problems) > 1 else 2 * problems  # sums over a single problem round differently
    if tiny.solver == _STACKED[0]:
        tasks, error, log_rows, steps = finite(given, aim, min(aim, 1e-12))
    else:
        tasks, error, _, steps = (maxmin.alone if rule.scope == "per_server" else maxmin.leximin)(given)
        steps = steps if tiny.solver == _STACKED[1] else np.full(len(steps), tiny.rounds)
    q = stacked(given, np.ones(len(given)) if np.isinf(rule.alpha) else None)
    z = np.moveaxis(tasks, 0, -1) / np.where(q.usable, q.gamma, 1.0)
    # Larger errors indicate that refinement failed.
    good = (error <= min(1e-10, job.tol)) & q.usable.all(axis=(0, 1))
    others = np.zeros(len(given), dtype=bool)
    if rule.scope == "game" and rule.alpha not in (1, np.inf):
        good &= stable(q, z, log_rows.transpose(2, 1, 0))
        others[:] = abs(np.log(rule.alpha)) > np.log(CURVE.near)
        others &= np.array([not unique(problem) for problem in given])
    feasibility = infeasibility(q, z)
    seconds = watch.cpu / len(problems)
    by_steps = {int(s): replace(tiny, build=0.0, certify=0.0, solve=seconds, rounds=int(s)) for s in np.unique(steps)}
    measure = "backward error" if np.isfinite(rule.alpha) else "lexicographic rise"
    return [
        Allocation(
            str(mechanism), problem.cluster, tasks[k],
            Certificate(float(feasibility[k]), float(error[k]), measure, ""), problem.criterion, None,
            by_steps[int(steps[k])], (*notes, MAYBE_OTHERS) if others[k] else notes, job.tol, mechanism.certify,
        ) if good[k] else None
        for k, (problem, (_, notes)) in enumerate(zip(problems, prepared, strict=True))
    ]  # fmt: skip
