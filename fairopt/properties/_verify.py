"""Verification of a violation: in fractions or between bounds where that is known, else from certified answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, FairoptError
from ..exact.enclosure import enclosed
from ..mechanisms import Mechanism
from ..result.allocation import Allocation
from ._base import Case, Finding, Property
from ._names import get
from ._solved import Instance, exact, speaks_of

#: What answers are certified to, and what a violation must exceed where it is not a fraction: at degenerate ties an
#: error of 1e-8 leaves 2e-5 in tasks.
TOL, MARGIN = 1e-9, 1e-4
#: No certificate sees what is lost in the rounding of the sums that it compares.
ROUNDING = 1e-14
#: How a violation can be verified, the best first.
FRACTIONS, ENCLOSED, CERTIFIED = "exact fractions", "rational enclosures", f"answers certified to {TOL:g}"
ROUTES = (FRACTIONS, ENCLOSED, CERTIFIED)


@dataclass(frozen=True)
class Verified:
    """A finding, and bounds on its violation."""

    case: Case
    finding: Finding
    violation: tuple[Fraction | float, Fraction | float]
    route: str


def verified(mechanism: Mechanism, name: str, instance: Instance) -> Verified:
    """Verify that a property is violated.

    Raises
    ------
    DataError
        The property says nothing about this, or it is not violated.
    SolverError, NotConverged, CertificateError
        The mechanism has no answer to 1e-9.
    """
    prop = get(name)
    if why := prop.unfit(mechanism):
        raise DataError(f"{name} says nothing about {mechanism}: {why}")
    if prop.domain(instance[0]) or (instance[1] is None) == prop.compares or not speaks_of(prop, instance):
        why = prop.domain(instance[0]) or "this is not a change that it speaks of"
        raise DataError(f"{name} says nothing here: {why}")
    mechanism.check(instance[0])
    case = exact(mechanism, instance)
    if case is not None:
        finding = prop.find(case)
        if not finding.violation > 0:
            raise DataError(f"{name} is not violated: in fractions the largest loss is {finding.violation}")
        return Verified(case, finding, (finding.violation, finding.violation), FRACTIONS)
    cluster, deviation = instance
    answers = [mechanism.solve(cluster, TOL)]
    if deviation is not None:
        answers.append(mechanism.solve(deviation.cluster, TOL))
    case = Case(cluster, answers[0].tasks, deviation, answers[1].tasks if deviation is not None else None, mechanism)
    proved = _between(prop, case, answers) if mechanism.judged_by_criterion else None
    return proved or _to_first_order(prop, case, answers)


def _between(prop: Property, case: Case, answers: Sequence[Allocation]) -> Verified | None:
    """By bounds that are proved: a violation at least as large as those say."""
    found = prop.find(case)
    if not float(found.violation) > MARGIN:
        return None
    boxes = [enclosed(one.cluster, one.criterion, one.tasks, one.prices) for one in answers]
    ends = [
        Case(case.cluster, tasks[0], case.deviation, tasks[1] if case.deviation else None, case.mechanism)
        for tasks in ([one.low for one in boxes if one], [one.high for one in boxes if one])
        if len(tasks) == len(answers)
    ]
    if len(ends) < 2:
        return None
    least = prop.worst(*prop.bounds(*ends), ends[0])
    if not least.violation > MARGIN:
        return None
    most = max(float(found.violation), float(least.violation)) * (1 + TOL)
    has, due = (np.array(side, dtype=float) for side in prop.bounds(*ends))
    text = prop.worst(has, due, case).text
    finding = Finding(float(least.violation), least.user, float(least.has), float(least.due), text)
    low = math.nextafter(float(least.violation), 0.0)
    return Verified(case, finding, (low, min(most, 1.0)), ENCLOSED)


def _to_first_order(prop: Property, case: Case, answers: Sequence[Allocation]) -> Verified:
    """By certified answers, and by how much each user's ratio of tasks may be wrong."""
    errors = dict.fromkeys(case.cluster.users, 0.0)
    for found in answers:
        for user, own in zip(found.cluster.users, _errors(found, prop), strict=True):
            errors[user] += own
    finding = prop.find(case)
    loss, error = float(finding.violation), errors[finding.user]
    if not loss > MARGIN + error or error > 2 * MARGIN:
        raise DataError(f"{prop.name} is not violated beyond rounding: the largest loss is {loss:.3g}, +- {error:.1g}")
    return Verified(case, finding, (loss - error, min(loss + error, 1.0)), CERTIFIED)


def _errors(found: Allocation, prop: Property) -> NDArray[np.float64]:
    """Relative errors of tasks, (users,), to first order: residual times condition; at degenerate ties infinite.

    `MARGIN` where conditions are not known, and where an optimum need not be unique (alpha = 0). Infinite as well where
    a price is lost in the rounding of another of its server, as at large alpha: nobody sees what it is to decide.
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
    """As `verified`, `None` where there is nothing to report."""
    try:
        return verified(mechanism, name, instance)
    except FairoptError:
        return None
