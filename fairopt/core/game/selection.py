"""Equilibrium selection of alphaPF-VDS, where there may be several.

- `fast`: what the engine finds; one of index -1 is left for another
- `curve`: the first crossing of alpha on the curve of equilibria from alpha = 1 (`curve.curve`)
- `welfare`: of the crossings of alpha that are known, the one of largest alpha-fair welfare of dominant shares
- `best-response`: best responses, chained through alphas from 1

Nothing need be chosen in games whose `x_n` are unique for a proved reason (docs/uniqueness.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...base import clock
from ...base.errors import DataError
from ...model._arrays import Array, Index
from ...model.problem import Problem
from ..solution import Run, Solution
from . import chained, engine
from .curve import Crossing, follow
from .curve_system import OPTIONS, CurveOptions

#: Logarithms of gamma are sums of a user's and a server's number to this accuracy.
_EXACT = 1e-12


#: A user who lacks less than this part of its tasks has them all.
_LACKING = 1e-9


def everybody(problem: Problem, tasks: Array) -> bool:
    """True if tasks (users, servers) give every user its count, so that the curve is constant."""
    polytope = problem.polytope
    return bool((tasks[polytope.users].sum(axis=1) >= (1 - _LACKING) * polytope.limit).all())


def unique(problem: Problem) -> bool:
    """True if equilibria are unique: gamma has rank one on usable pairs (a potential), or one row binds per server.

        gamma_ni = a_n b_i    for all usable pairs (n, i),    or    D[n,i,rho_i] = 1 for some rho_i on every server

    One server, one resource, servers that are proportional; with one binding resource on every server prices do not
    know alpha. Also of two users, whose ratio is unique, but at isolated alphas (where the index is 0). False where
    that is not known. With placement constraints factors are carried from users to servers and back.
    """
    polytope, cluster = problem.polytope, problem.cluster
    users, servers, gamma = len(polytope.users), cluster.shape[1], polytope.gamma
    if servers == 1 or users <= 1:
        return True
    if np.isfinite(problem.limits).any():
        return False  # a limit makes equilibria many
    if users == 2:
        return True
    user, server = polytope.pair_user, polytope.pair_server
    demand, capacity = cluster.demand[polytope.users[user]], cluster.capacity[server]
    need = np.divide(demand * gamma[:, None], capacity, out=np.zeros_like(demand), where=demand > 0)
    least = np.full((servers, demand.shape[1]), np.inf)
    np.minimum.at(least, server, need)
    if (least >= 1 - _EXACT).any(axis=1).all():
        return True
    log = np.log(gamma)
    off = log - sum(_factors(user, server, log))
    return bool(np.abs(off).max() <= _EXACT * max(1.0, float(np.abs(log).max())))


def _factors(user: Index, server: Index, log: Array) -> tuple[Array, Array]:
    """Summands of users and servers whose sums on pairs are `log`, if any; one server of each component has 0."""
    a, b = np.full(int(user.max()) + 1, -np.inf), np.full(int(server.max()) + 1, -np.inf)
    while (unknown := b[server] == -np.inf).any():
        b[server[unknown.argmax()]], known = 0.0, -1
        while known < (known := int(np.count_nonzero(b > -np.inf))):
            np.maximum.at(a, user, log + np.where(b > -np.inf, -b, -np.inf)[server])
            np.maximum.at(b, server, log + np.where(a > -np.inf, -a, -np.inf)[user])
    return a[user], b[server]


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
    begun = clock.now()
    found = follow(problem, [problem.criterion.alpha], options)
    for one in found.at(problem.criterion.alpha)[:1]:
        yield replace(of_crossing(problem, one, clock.now() - begun), rounds=found.steps)


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
