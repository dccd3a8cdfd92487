"""Kernels by kind of problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..certificates import certify_problem
from ..core import maxmin
from ..core.choices import greatest
from ..core.solve import finite
from ..engines.small import Kind
from ..exact import rational
from ..model._arrays import Array
from ..model._frozen import frozen
from ..model.problem import Problem

#: Kernels go on to this part of the tolerance, where a step more makes the rest of it small.
_AIM = 0.1


class Answer(NamedTuple):
    """Tasks (problems, users, servers) and certificates (problems,), infinite where there is no answer."""

    tasks: Array
    certificate: Array


def answer(kind: Kind, problems: list[Problem], tol: float) -> Answer:
    """The answers to problems of one kind and shape."""
    if kind in ("global", "game"):
        return Answer(*finite(problems, _AIM * tol, _AIM * tol)[:2])
    if kind == "psdsf":
        return Answer(*greatest(problems))
    if kind == "leximin":
        return _judged(problems, tol, maxmin.leximin(problems))
    return Answer(*(maxmin.alone if kind == "per_server" else maxmin.largest_sum)(problems)[:2])


def _judged(problems: list[Problem], tol: float, found: maxmin.Found) -> Answer:
    """Max-min: where rounding may hide a user, or prices do not prove enough, the judge of one problem decides.

    He has exact arithmetic and linear programs. Who misses the tolerance even so is solved in exact arithmetic.
    """
    tasks, certificate, prices, _ = found
    for k in np.flatnonzero(~(certificate <= tol)):
        problem = problems[k]
        whole = problem.cluster.capacity
        with np.errstate(divide="ignore", invalid="ignore"):
            unit = np.log(np.where(whole > 0, prices[k] / whole, 0.0))
        known = unit if prices[k].any() else None
        certificate[k] = certify_problem(problem, frozen(tasks[k]), known)[0].residual
        if not certificate[k] <= tol:
            exact = rational.leximin(problem.cluster, problem.criterion, problem.limits)
            if exact is not None:
                tasks[k] = exact.tasks.astype(float)
                certificate[k] = certify_problem(problem, frozen(tasks[k]))[0].residual
    return Answer(tasks, certificate)
