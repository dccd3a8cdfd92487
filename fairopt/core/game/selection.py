"""Equilibrium selection of alphaPF-VDS, where several equilibria may exist.

- `fast`: the equilibrium that the engine finds, replaced by another one if its index is -1
- `curve`: the first crossing of alpha on the curve of equilibria from alpha = 1 (`curve.follow`)
- `welfare`: of the known crossings of alpha, the crossing of largest alpha-fair welfare of dominant shares
- `best-response`: the limit of best responses, with alpha changing gradually from 1

No selection is needed in games whose user tasks are provably unique (docs/uniqueness.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...base.errors import DataError
from ...model._arrays import Array, Index
from ...model.problem import Problem
from ..accuracy import CONVERGED, REFINED
from ..solution import Run, Solution
from ..system import AT_LIMIT
from . import chained, engine
from .curve import Crossing, follow
from .curve_system import OPTIONS, CurveOptions

#: Relative error up to which log gamma counts as a sum of terms of users and of servers.
_RANK_ONE = CONVERGED


def everybody(problem: Problem, tasks: Array) -> bool:
    """True if tasks (users, servers) attain the limits of all users, so that the curve is constant."""
    polytope = problem.polytope
    return bool((tasks[polytope.users].sum(axis=1) >= (1 - AT_LIMIT) * polytope.quota).all())


def unique(problem: Problem) -> bool:
    r"""True if a sufficient condition for unique user tasks holds, False if uniqueness is unknown.

    The conditions are: one server or at most one user; without limits, two users, or

    .. math::
        \gamma_{ni} = a_n b_i \ \text{for all usable pairs } (n, i), \qquad \text{or} \qquad
        \text{on every server } i \text{ some } r \text{ has } D_{nir} = 1 \text{ for all its users } n

    Under the first formula the game has a potential; it covers one resource and proportional servers. Under the second
    formula one row binds on every server, and prices are independent of alpha. With two users the ratio of their tasks
    is unique, except at isolated alphas (where the index is 0). With placement constraints the factors a and b are
    propagated between users and servers.
    """
    polytope, cluster = problem.polytope, problem.cluster
    users, servers, gamma = len(polytope.users), cluster.shape[1], polytope.gamma
    if servers == 1 or users <= 1:
        return True
    if np.isfinite(problem.limits).any():
        return False  # with limits equilibria need not be unique
    if users == 2:
        return True
    user, server = polytope.pair_user, polytope.pair_server
    least = np.full(cluster.capacity.shape, np.inf)
    np.minimum.at(least, server, polytope.pair_use)
    if (least >= 1 - _RANK_ONE).any(axis=1).all():
        return True
    log = np.log(gamma)
    misfit = log - sum(_factors(user, server, log))
    return bool(np.abs(misfit).max() <= _RANK_ONE * max(1.0, float(np.abs(log).max())))


def _factors(user: Index, server: Index, log: Array) -> tuple[Array, Array]:
    """Terms a (users,) and b (servers,) with `a[user] + b[server] = log` (pairs,), if any exist.

    The term of the first server of each connected component is 0, and the other terms follow from equations that
    connect them with it; the caller tests the remaining equations.
    """
    a, b = np.full(int(user.max()) + 1, -np.inf), np.full(int(server.max()) + 1, -np.inf)
    while (unknown := b[server] == -np.inf).any():
        b[server[unknown.argmax()]], known = 0.0, -1
        while known < (known := int(np.count_nonzero(b > -np.inf))):
            np.maximum.at(a, user, log + np.where(b > -np.inf, -b, -np.inf)[server])
            np.maximum.at(b, server, log + np.where(a > -np.inf, -a, -np.inf)[user])
    return a[user], b[server]


#: Values of `AlphaPFVDS.select`; the first is the default.
SELECTIONS = ("fast", "curve", "welfare", "best-response")
#: Name of the method in solutions found on the curve.
METHOD_NAME = "curve from alpha = 1"
#: Remark on solutions that are not known to be unique.
MAYBE_OTHERS = 'there may be other equilibria: select="curve" takes the first from alpha = 1 (docs/equilibria.md)'
#: Backward error above which a crossing is refined.
_REFINE_ABOVE = REFINED
#: Remark on a solution of the engine that replaces a crossing.
_CURVE_FAILED = "the curve from alpha = 1 could not be followed: this need not be the first equilibrium on it"
#: Remarks on equilibria that replace an equilibrium of index -1.
_NOTE_FIRST = "that is the first equilibrium on the curve from alpha = 1"
_NOTE_CHAINED = "that is where best responses, chained in alpha from alpha = 1, end"


def selected(select: object) -> str:
    """Return the name of a selection; raise `DataError` if it is not one of `SELECTIONS`."""
    if select not in SELECTIONS:
        raise DataError(f"select is {select!r}; it must be one of {', '.join(SELECTIONS)}")
    return str(select)


def solutions(
    problem: Problem, tol: float, warm: object, select: str, options: CurveOptions = OPTIONS
) -> Iterator[Solution]:
    """Candidates of the engine `equilibrium` for a selection; the first one with a sufficient certificate is used.

    Candidates of a selection other than `fast` come first, unless user tasks are provably unique or alpha is 0,
    infinite or near 1. Candidates of the engine itself follow, with a note if they need not be unique.
    """
    alpha, found, note = problem.criterion.alpha, engine.solutions(problem, tol, warm), MAYBE_OTHERS
    between = 0 < alpha < np.inf and abs(np.log(alpha)) > np.log(options.near)
    if not between or unique(problem):
        yield from found
        return
    if select == "best-response":
        yield from chained.solutions(problem, tol)
        note = "best responses from alpha = 1 did not converge"
    elif select == "welfare":
        yield from _largest_welfare(problem, options)
        note = "equilibria on the curve could not be compared"
    elif select == "curve":
        yield from _first_crossing(problem, options)
        note = _CURVE_FAILED
    for one in found:  # an equilibrium that attains all limits is on the curve, which is constant there
        yield one if everybody(problem, one.tasks) else replace(one, notes=(*one.notes, note))


def neighbours(problem: Problem, tol: float) -> Iterator[Solution]:
    """Candidates in place of an unstable equilibrium (index -1): the first crossing, then chained best responses."""
    for offer in _first_crossing(problem, OPTIONS):
        yield replace(offer, notes=(_NOTE_FIRST,))
    for offer in chained.solutions(problem, tol):
        yield replace(offer, notes=(*offer.notes, _NOTE_CHAINED))


def _first_crossing(problem: Problem, options: CurveOptions) -> Iterator[Solution]:
    """Yield the first crossing of the problem's alpha, or nothing if the curve does not attain this alpha."""
    begun = clock.cpu()
    found = follow(problem, [problem.criterion.alpha], options)
    for one in found.at(problem.criterion.alpha)[:1]:
        yield replace(of_crossing(problem, one, clock.cpu() - begun), rounds=found.steps)


def of_crossing(problem: Problem, one: Crossing, seconds: float = 0.0) -> Solution:
    """Wrap a crossing of the curve as a candidate; `seconds` is the CPU time of its computation."""
    capacity, priced = problem.cluster.capacity, np.isfinite(one.log_rows)
    log = np.where(priced, one.log_rows - np.log(np.where(capacity > 0, capacity, 1.0)), -np.inf)
    run = Run(METHOD_NAME, seconds)
    fine = bool(one.certificate <= _REFINE_ABOVE)
    return Solution(one.tasks, None, "equilibrium", (run,), 0.0, 0, "converged", log=log, rough=not fine, fine=fine)


def _largest_welfare(problem: Problem, options: CurveOptions) -> Iterator[Solution]:
    """Yield the crossing of largest welfare on the curve, or nothing without a certified crossing.

    The curve is followed beyond alpha up to the factor `options.beyond`.
    """
    alpha = problem.criterion.alpha
    found = follow(problem, [alpha, alpha * options.beyond if alpha > 1 else alpha / options.beyond], options)
    several = [one for one in found.at(alpha) if np.isfinite(one.certificate)]
    if several:
        best = max(several, key=lambda one: welfare(problem, one))
        offer = replace(of_crossing(problem, best), rounds=found.steps)
        note = f"of {len(several)} equilibria on the curve from alpha = 1 that of largest welfare"
        yield replace(offer, notes=(note,) if len(several) > 1 else ())


def welfare(problem: Problem, one: Crossing) -> float:
    """Log of the power mean with exponent 1 - alpha of dominant shares over weights, an increasing function of welfare.

    Users without tasks are left out.
    """
    share = one.user_tasks * problem.cluster.dominant_share_per_task / problem.criterion.weight
    positive = share > 0
    exponent, weight, least = (
        1 - problem.criterion.alpha,
        problem.criterion.weight[positive],
        float(share[positive].min()),
    )
    mean = float(np.average((share[positive] / least) ** exponent, weights=weight))
    return float(np.log(least) + np.log(mean) / exponent)
