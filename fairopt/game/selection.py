"""Which equilibrium of alphaPF-VDS is the answer, where there may be several.

- `curve`: the first crossing of alpha on the curve of equilibria from alpha = 1 (`curve.curve`), on small clusters and
  where what is fast is unstable; elsewhere what is fast
- `welfare`: of the crossings of alpha that are known, the one of largest alpha-fair welfare of dominant shares
- `best-response`: best responses, chained through alphas from 1
- `fast`: what the engine finds, unlooked at
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .. import _clock
from ..engines.base import Run, Solution
from ..engines.small import kinds
from ..errors import DataError
from ..model.problem import Problem
from . import engine
from .curve.curve import Crossing, follow
from .curve.options import OPTIONS, CurveOptions
from .curve.satisfied import everybody, may_be
from .curve.unique import unique
from .responses import chained

Array = NDArray[np.float64]

#: What `AlphaPFVDS.select` may be.
SELECTIONS = ("curve", "welfare", "best-response", "fast")
#: What an answer says that was found by the curve.
METHOD_NAME = "curve from alpha = 1"
#: What an answer says that nobody has compared with the curve.
NOT_FOLLOWED = "fast: not shown to be the first equilibrium on the curve (docs/equilibria.md)"
#: What is said of another equilibrium that was taken for one of index -1.
_FIRST = "that is the first equilibrium on the curve from alpha = 1"
_CHAINED = "that is where best responses, chained in alpha from alpha = 1, end"


def selected(select: object) -> str:
    """A selection, checked."""
    if select not in SELECTIONS:
        raise DataError(f"select is {select!r}; it must be one of {', '.join(SELECTIONS)}")
    return str(select)


def solutions(
    problem: Problem, tol: float, warm: object, select: str, options: CurveOptions = OPTIONS
) -> Iterator[Solution]:
    """Answers of the engine `equilibrium`, by a selection, for a judge to take the first good one."""
    alpha = problem.criterion.alpha
    known = select == "fast" or not _between(alpha, options) or unique(problem)
    if known or not len(problem.polytope.users):
        yield from engine.solutions(problem, tol, warm)
        return
    if may_be(problem):  # an answer that gives everybody all its tasks is on the curve, which stands still there
        yield from (one for one in engine.solutions(problem, tol, warm) if everybody(problem, one.tasks))
    if select == "best-response":
        yield from chained.solutions(problem, tol)
        yield from _noted(engine.solutions(problem, tol, warm), "best responses from alpha = 1 did not settle")
    elif select == "welfare":
        yield from _of_welfare(problem, tol, warm, options)
    else:
        yield from _first(problem, tol, warm, options)


def _between(alpha: float, options: CurveOptions) -> bool:
    """Is alpha such that the curve can be followed, and need be?"""
    return 1 / options.largest <= alpha <= options.largest and abs(np.log(alpha)) > np.log(options.near)


def _pairs(problem: Problem) -> int:
    return problem.cluster.shape[0] * problem.cluster.shape[1]


def _first(problem: Problem, tol: float, warm: object, options: CurveOptions) -> Iterator[Solution]:
    """The first crossing; on clusters that are not small what the engine finds."""
    note = "the curve from alpha = 1 could not be followed: not certainly the first equilibrium on it"
    if _pairs(problem) <= min(options.affordable, kinds.LARGEST["game"]):
        found = _crossing(problem, options)
        if found is not None:
            yield found
    else:
        note = NOT_FOLLOWED
    yield from _noted(engine.solutions(problem, tol, warm), note)


def neighbours(problem: Problem, tol: float, select: str, options: CurveOptions = OPTIONS) -> Iterator[Solution]:
    """Where an answer is unstable (index -1): the first crossing, then what chained best responses end at."""
    if select == "fast":
        return
    if select == "curve" and _between(problem.criterion.alpha, options) and _pairs(problem) <= options.rescue:
        found = _crossing(problem, options)
        if found is not None:
            yield replace(found, notes=(_FIRST,))
    yield from _noted(chained.solutions(problem, tol), _CHAINED)


def _noted(offers: Iterator[Solution], note: str) -> Iterator[Solution]:
    for offer in offers:
        yield replace(offer, notes=(*offer.notes, note))


def _crossing(problem: Problem, options: CurveOptions) -> Solution | None:
    """The first crossing, or None."""
    from .curve import _point
    from .curve.stack import stacked

    alpha = problem.criterion.alpha
    begun = _clock.now()
    data = [one[0] for one in stacked([problem])]
    build, begun = _clock.now() - begun, _clock.now()
    near = options.near if alpha > 1 else 1 / options.near
    tasks, log_rows = np.empty(problem.cluster.shape[:2]), np.empty(problem.cluster.capacity.shape)
    budget = options.steps(_pairs(problem), alpha)
    for shorter in options.retries:
        control = options.control(shorter)
        error, _, steps = _point.first(alpha, near, data, options.begin, budget, control, tasks, log_rows)
        if np.isfinite(error):
            return _solution(problem, tasks, log_rows, float(error), build, _clock.now() - begun, int(steps))
    return None


def _solution(
    problem: Problem, tasks: Array, log_rows: Array, error: float, build: float, seconds: float, steps: int
) -> Solution:
    """Tasks and log prices of whole capacities (servers, resources) as an engine's answer."""
    capacity = problem.cluster.capacity
    log = np.where(np.isfinite(log_rows), log_rows - np.log(np.where(capacity > 0, capacity, 1.0)), -np.inf)
    run = Run(METHOD_NAME, "converged", 0.0, seconds, error)
    fine = bool(error <= OPTIONS.last_digits)
    return Solution(tasks, None, "equilibrium", (run,), build, steps, "converged", log=log, rough=not fine, fine=fine)


def of_crossing(problem: Problem, one: Crossing) -> Solution:
    """A crossing of the curve as an engine's answer."""
    return _solution(problem, one.tasks, one.log_rows, one.certificate, 0.0, 0.0, 0)


def _of_welfare(problem: Problem, tol: float, warm: object, options: CurveOptions) -> Iterator[Solution]:
    """Of the crossings on the curve, which is followed beyond alpha, the one of largest welfare."""
    alpha = problem.criterion.alpha
    beyond = alpha * options.beyond if alpha > 1 else alpha / options.beyond
    found = follow(problem, [alpha, float(np.clip(beyond, 1 / options.largest, options.largest))], options)
    several = [one for one in found.at(alpha) if np.isfinite(one.certificate)]
    if several:
        best = max(several, key=lambda one: welfare(problem, one))
        offer = replace(of_crossing(problem, best), rounds=found.steps)
        note = f"of {len(several)} equilibria on the curve from alpha = 1 that of largest welfare"
        yield replace(offer, notes=(note,) if len(several) > 1 else ())
    yield from _noted(engine.solutions(problem, tol, warm), "equilibria on the curve could not be compared")


def welfare(problem: Problem, one: Crossing) -> float:
    """A figure that grows with the alpha-fair welfare of weighted dominant shares: their mean of power 1 - alpha."""
    share = one.user_tasks * problem.cluster.dominant_share_per_task / problem.criterion.weight
    runs = share > 0
    power, weight, least = 1 - problem.criterion.alpha, problem.criterion.weight[runs], float(share[runs].min())
    mean = float(np.average((share[runs] / least) ** power, weights=weight))
    return float(np.log(least) + np.log(mean) / power)
