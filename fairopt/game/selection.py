"""Equilibrium selection of alphaPF-VDS, where there may be several.

- `fast`: what the engine finds; one of index -1 is left for another
- `curve`: the first crossing of alpha on the curve of equilibria from alpha = 1 (`curve.curve`)
- `welfare`: of the crossings of alpha that are known, the one of largest alpha-fair welfare of dominant shares
- `best-response`: best responses, chained through alphas from 1
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .. import _clock
from ..engines.base import Run, Solution
from ..errors import DataError
from ..model.problem import Problem
from . import engine
from .curve.curve import Crossing, follow
from .curve.options import OPTIONS, CurveOptions
from .curve.unique import everybody, unique
from .responses import chained

#: What `AlphaPFVDS.select` may be, the default first.
SELECTIONS = ("fast", "curve", "welfare", "best-response")
#: What an answer says that was found by the curve.
METHOD_NAME = "curve from alpha = 1"
#: What an answer says that is not known to be the only one.
MAYBE_OTHERS = 'there may be other equilibria: select="curve" takes the first from alpha = 1 (docs/equilibria.md)'
#: Errors above this have their last digits looked for.
_FINE = 1e-10
_LOST = "the curve from alpha = 1 could not be followed: not certainly the first equilibrium on it"
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
    alpha, found, note = problem.criterion.alpha, engine.solutions(problem, tol, warm), MAYBE_OTHERS
    between = 0 < alpha < np.inf and abs(np.log(alpha)) > np.log(options.near)
    if not between or unique(problem):
        yield from found
        return
    if select == "best-response":
        yield from chained.solutions(problem, tol)
        note = "best responses from alpha = 1 did not settle"
    elif select == "welfare":
        yield from _of_welfare(problem, options)
        note = "equilibria on the curve could not be compared"
    elif select == "curve":
        yield from _first(problem, options)
        note = _LOST
    for one in found:  # one that gives everybody all its tasks is on the curve, which stands still there
        yield one if everybody(problem, one.tasks) else replace(one, notes=(*one.notes, note))


def neighbours(problem: Problem, tol: float) -> Iterator[Solution]:
    """Candidates in place of an unstable answer (index -1): the first crossing, then the end of chained responses."""
    for offer in _first(problem, OPTIONS):
        yield replace(offer, notes=(_FIRST,))
    for offer in chained.solutions(problem, tol):
        yield replace(offer, notes=(*offer.notes, _CHAINED))


def _first(problem: Problem, options: CurveOptions) -> Iterator[Solution]:
    """The first crossing, if the curve comes to it."""
    begun = _clock.now()
    found = follow(problem, [problem.criterion.alpha], options)
    for one in found.at(problem.criterion.alpha)[:1]:
        yield replace(of_crossing(problem, one, _clock.now() - begun), rounds=found.steps)


def of_crossing(problem: Problem, one: Crossing, seconds: float = 0.0) -> Solution:
    """A crossing of the curve as an engine's answer."""
    capacity, known = problem.cluster.capacity, np.isfinite(one.log_rows)
    log = np.where(known, one.log_rows - np.log(np.where(capacity > 0, capacity, 1.0)), -np.inf)
    run = Run(METHOD_NAME, seconds)
    fine = bool(one.certificate <= _FINE)
    return Solution(one.tasks, None, "equilibrium", (run,), 0.0, 0, "converged", log=log, rough=not fine, fine=fine)


def _of_welfare(problem: Problem, options: CurveOptions) -> Iterator[Solution]:
    """Crossing of largest welfare on the curve, which is followed beyond alpha."""
    alpha = problem.criterion.alpha
    found = follow(problem, [alpha, alpha * options.beyond if alpha > 1 else alpha / options.beyond], options)
    several = [one for one in found.at(alpha) if np.isfinite(one.certificate)]
    if several:
        best = max(several, key=lambda one: welfare(problem, one))
        offer = replace(of_crossing(problem, best), rounds=found.steps)
        note = f"of {len(several)} equilibria on the curve from alpha = 1 that of largest welfare"
        yield replace(offer, notes=(note,) if len(several) > 1 else ())


def welfare(problem: Problem, one: Crossing) -> float:
    """A figure that grows with the alpha-fair welfare of weighted dominant shares: their mean of power 1 - alpha."""
    share = one.user_tasks * problem.cluster.dominant_share_per_task / problem.criterion.weight
    runs = share > 0
    power, weight, least = 1 - problem.criterion.alpha, problem.criterion.weight[runs], float(share[runs].min())
    mean = float(np.average((share[runs] / least) ** power, weights=weight))
    return float(np.log(least) + np.log(mean) / power)
