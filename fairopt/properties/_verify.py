"""A violation verified: without rounding where the package can, else from certified answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..errors import DataError, FairoptError
from ..mechanisms import Mechanism
from ..result.allocation import Allocation
from ._base import Case, Finding
from ._names import get
from ._solved import Instance, exact, speaks_of

#: What answers are certified to, and what a violation must exceed where it is not a fraction: at degenerate ties an
#: error of 1e-8 leaves 2e-5 in tasks.
TOL, MARGIN = 1e-9, 1e-4


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
    if prop.domain(instance[0]) or (instance[1] is None) == prop.compares or not speaks_of(prop, instance):
        why = prop.domain(instance[0]) or "this is not a change that it speaks of"
        raise DataError(f"{name} says nothing here: {why}")
    mechanism.check(instance[0])
    case = exact(mechanism, instance)
    if case is not None:
        finding = prop.find(case)
        if not finding.violation > 0:
            raise DataError(f"{name} is not violated: in fractions the largest loss is {finding.violation}")
        return Verified(case, finding, (finding.violation, finding.violation), "exact fractions")
    case, error = _certified(mechanism, instance)
    finding = prop.find(case)
    low, high = max(float(finding.violation) - error, 0.0), min(float(finding.violation) + error, 1.0)
    if not float(finding.violation) > MARGIN:
        raise DataError(f"{name} is not violated beyond rounding: the largest loss is {float(finding.violation):.3g}")
    return Verified(case, finding, (low, high), f"answers certified to {TOL:g}, bounds to first order")


def _certified(mechanism: Mechanism, instance: Instance) -> tuple[Case, float]:
    """The case by `Mechanism.solve`, and by how much ratios of its tasks may be wrong."""
    cluster, deviation = instance
    before = mechanism.solve(cluster, TOL)
    after = None if deviation is None else mechanism.solve(deviation.cluster, TOL)
    found = Case(cluster, before.tasks, deviation, None if after is None else after.tasks)
    return found, sum(_error(one) for one in (before, after) if one is not None)


def _error(found: Allocation) -> float:
    """Relative error of tasks, to first order: residual times condition, where that is known and a rounding error."""
    condition = found.certificate.condition
    error = max(TOL, found.certificate.residual * condition)
    return float(error) if np.isfinite(condition) and error < MARGIN else MARGIN


def violated(mechanism: Mechanism, name: str, instance: Instance) -> Verified | None:
    """As `verified`, `None` where there is nothing to report."""
    try:
        return verified(mechanism, name, instance)
    except FairoptError:
        return None
