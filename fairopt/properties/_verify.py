"""Verification of violations: in exact arithmetic, by rigorous enclosures, or by certified solutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..base.errors import DataError, FairoptError
from ..mechanisms import GameMechanism, Mechanism
from ..mechanisms.psdsf import PSDSF
from ..model._arrays import Array
from ..result.allocation import Allocation
from ._base import Case, Finding, Property, get
from ._enclosure import enclosed
from ._tasks import Instance, clusters, exact, seen, speaks_of
from .undominated_equilibrium import alternatives, enumerable

#: `TOL`: tolerance of solutions. `MARGIN`: smallest violation that is reported without exact arithmetic, since at
#: degenerate ties a residual of 1e-8 admits errors of 2e-5 in tasks.
TOL, MARGIN = 1e-9, 1e-4
#: Relative rounding error of sums: certificates cannot detect smaller errors.
ROUNDING = 1e-14
#: Methods of verification, the most rigorous first.
FRACTIONS, ENCLOSED, CERTIFIED = "exact fractions", "rational enclosures", f"answers certified to {TOL:g}"
ROUTES = (FRACTIONS, ENCLOSED, CERTIFIED)


#: Prefix of the text of `selection` if the violation occurs at every known equilibrium.
EVERY = "of every equilibrium"
_RETURNED = "of the {} that Mechanism.solve returns"


@dataclass(frozen=True)
class Verified:
    """Finding with bounds on its violation, and the method of verification (`route`)."""

    case: Case
    finding: Finding
    violation: tuple[Fraction | float, Fraction | float]
    route: str


def verified(mechanism: Mechanism, name: str, instance: Instance) -> Verified:
    """Verify that a property is violated, and return the violation with its bounds and the method of verification.

    Raises
    ------
    DataError
        The property does not apply, or is not violated.
    SolverError, NotConverged, CertificateError
        The mechanism is not solved to 1e-9.
    """
    prop = get(name)
    if why := prop.unfit(mechanism):
        raise DataError(f"{name} is not defined for {mechanism}: {why}")
    if prop.undefined(instance[0]) or (instance[1] is None) == prop.compares or not speaks_of(prop, instance):
        why = prop.undefined(instance[0]) or "this is not a change that it is about"
        raise DataError(f"{name} does not apply here: {why}")
    for one in clusters(instance):
        if seen(mechanism, one) != one:
            raise DataError(f"{mechanism} sees all servers as one: give the pool of the cluster")
    case = exact(mechanism, instance)
    if case is not None:
        finding = prop.find(case)
        if not finding.violation > 0:
            raise DataError(f"{name} is not violated: in fractions the largest loss is {finding.violation}")
        return Verified(case, finding, (finding.violation, finding.violation), FRACTIONS)
    answers = [mechanism.solve(one, TOL) for one in clusters(instance)]
    case = Case(instance[0], answers[0].tasks, instance[1], answers[-1].tasks if instance[1] else None, mechanism)
    proved = _between(prop, case, answers) if mechanism.judged_by_criterion else None
    return proved or _to_first_order(prop, case, answers)


def _between(prop: Property, case: Case, answers: Sequence[Allocation]) -> Verified | None:
    """Verify by rigorous bounds on tasks, which give a lower bound on the violation; None if they prove none."""
    found = prop.find(case)
    if not float(found.violation) > MARGIN:
        return None
    boxes = [enclosed(one.cluster, one.criterion, one.tasks, one.log_prices) for one in answers]
    if any(box is None for box in boxes):
        return None
    low, high = (
        replace(case, tasks=ends[0], changed_tasks=ends[-1] if case.deviation else None)
        for ends in zip(*((box.low, box.high) for box in boxes if box), strict=True)
    )
    has, due = prop.bounds(low, high)
    least = prop.worst(has, due, low)
    if not least.violation > MARGIN:
        return None
    most = max(float(found.violation), float(least.violation)) * (1 + TOL)
    text = prop.worst(has.astype(float), due.astype(float), case).text
    finding = Finding(float(least.violation), least.user, float(least.has), float(least.due), text)
    return Verified(case, finding, (math.nextafter(finding.violation, 0.0), min(most, 1.0)), ENCLOSED)


def _to_first_order(prop: Property, case: Case, answers: Sequence[Allocation]) -> Verified:
    """Verify to first order, by certified solutions and error bounds on the tasks of each user.

    Raises `DataError` if the violation does not exceed its error bound by `MARGIN`, or the bound is too large.
    """
    errors = dict.fromkeys(case.cluster.users, 0.0)
    for found in answers:
        for user, own in zip(found.cluster.users, _errors(found, prop), strict=True):
            errors[user] += own
    finding = prop.find(case)
    loss, error = float(finding.violation), errors[finding.user]
    if not loss > MARGIN + error or error > 2 * MARGIN:
        raise DataError(f"{prop.name} is not violated beyond rounding: the largest loss is {loss:.3g}, +- {error:.1g}")
    return Verified(case, finding, (loss - error, min(loss + error, 1.0)), CERTIFIED)


def _errors(found: Allocation, prop: Property) -> Array:
    """First-order bounds on relative errors of tasks, (users,): residual times condition number, at least 1e-9.

    The bounds are `MARGIN` if condition numbers are unknown, or optima need not be unique (alpha = 0). They are
    infinite at degenerate ties, and if a price is smaller than the rounding error of another price of the same server,
    as at large alpha. If the violation depends on the tasks of all users, every bound is the largest bound.
    """
    residual = found.certificate.residual
    known = found.certificate.conditions
    if known is None or np.isnan(known).any() or found.criterion.starves:
        return np.full(len(found.cluster.users), MARGIN)
    prices = found.log_prices
    if prices is not None and prices.ndim == 2 and np.isfinite(found.criterion.alpha):
        least = np.where(np.isfinite(prices), prices, np.inf).min(axis=1)
        if (prices.max(axis=1) + np.log(ROUNDING) > least).any():
            return np.full(len(found.cluster.users), np.inf)
    errors = np.maximum(TOL, max(residual, ROUNDING) * np.asarray(known))
    return np.full(len(errors), errors.max()) if prop.needs_all else errors


def violated(mechanism: Mechanism, name: str, instance: Instance) -> Verified | None:
    """Verified violation; None if it cannot be verified."""
    try:
        return verified(mechanism, name, instance)
    except FairoptError:
        return None


def selection(mechanism: Mechanism, name: str, instance: Instance) -> str:
    """Text that states which of several solutions the violation concerns.

    The text is '' if tasks are unique, or if the mechanism is not judged by its criterion.

    Tasks need not be unique at equilibria of the game (for finite alpha other than 1), for PS-DSF, and at alpha = 0. At
    finite alpha the violation is evaluated for every pair of equilibria of the cluster and of the changed cluster that
    `fairopt.game.equilibria` finds. For PS-DSF it is evaluated for every pair of allocations that best responses from
    random starts find.
    """
    if not mechanism.judged_by_criterion:
        return ""
    alpha, game = mechanism.criterion(instance[0]).alpha, isinstance(mechanism, GameMechanism)
    if alpha == 0 and exact(mechanism, instance) is not None:
        return ""  # exact optima at alpha = 0 are unique
    if alpha == 1 or not (game or alpha == 0):
        return ""
    returned = _RETURNED.format("equilibrium" if alpha else "optimum")
    if not enumerable(mechanism) and not isinstance(mechanism, PSDSF):
        return f"{returned}; others were not looked for"
    return _among(returned, mechanism, name, instance)


def _among(returned: str, mechanism: Mechanism, name: str, instance: Instance) -> str:
    """Text that states if the violation occurs at every pair of known equilibria, or else at how many it is absent.

    If no equilibrium is known, the text states that other equilibria could not be searched for.
    """
    cluster, deviation = instance
    before = alternatives(mechanism, cluster)
    after = None if deviation is None else alternatives(mechanism, deviation.cluster)
    if not before or (after is not None and not after):
        return f"{returned}; others could not be looked for"
    losses = [
        get(name).find(Case(cluster, one.tasks, deviation, None if other is None else other.tasks, mechanism)).violation
        for one in before
        for other in (after or (None,))
    ]
    counts = [str(len(before))] + ([] if after is None else [f"{len(after)} after the change"])
    known = before.complete and (after is None or after.complete)
    found = f"{' and '.join(counts)}{', all that there are' if known else ' were found, there may be more'}"
    kept = sum(float(loss) <= MARGIN for loss in losses)
    if kept:
        return f"{returned}; in {kept} of {len(losses)} pairs of equilibria it is not there ({found})"
    return f"{EVERY} ({found})"
