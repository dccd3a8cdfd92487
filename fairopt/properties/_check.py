"""`check` and `report`: one property of an allocation, and all properties of a mechanism on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from .. import mechanisms
from ..base import clock
from ..base.errors import DataError
from ..base.libraries import pd
from ..base.names import items
from ..mechanisms import Mechanism
from ..model import _validate
from ..model.cluster import Cluster, expected
from ..result.allocation import Allocation
from ._base import Case, Finding, Numbers, Property, get, names
from ._base import changes as changed
from ._tasks import Instance, cases, instances, seen


@dataclass(frozen=True)
class Check:
    """Result of a check of a property of an allocation; `bool(check)` is True if the property holds.

    Attributes
    ----------
    property : str
        Name of the property.
    holds : bool or None
        True if the largest violation is at most `tol`; None if the property is not applicable.
    violation : float
        Largest over users of `1 - has/due`, with the tasks that a user has and the tasks that the property requires
        (`due`); negative if all users have more than required, NaN if not applicable.
    user : str
        The user with the largest violation.
    witness : str
        Description of the violation, or the reason why the property is not applicable; '' if it holds.
    tol : float
        Violation up to which the property counts as satisfied.

    >>> import fairopt as fo
    >>> found = fo.properties.check("envy-freeness", fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]])))
    >>> isinstance(found, fo.properties.Check), bool(found), found
    (True, True, envy-freeness holds: every user has at least 200% of what it requires (user1))
    """

    property: str
    holds: bool | None
    violation: float
    user: str
    witness: str
    tol: float

    def __bool__(self) -> bool:
        return bool(self.holds)

    def __repr__(self) -> str:
        if self.holds is None:
            return f"{self.property} is not applicable: {self.witness}"
        if self.holds:
            part = 100 * (1 - self.violation)
            return f"{self.property} holds: every user has at least {part:.4g}% of what it requires ({self.user})"
        return f"{self.property} is violated by {self.violation:.3g}: {self.witness}"


def check(property: str | Property | Allocation, allocation: Allocation | str | Property, tol: float = 1e-5) -> Check:
    """Check a property of an allocation on its cluster; the first two arguments may be exchanged.

    Parameters
    ----------
    property : Property or str
    allocation : Allocation
    tol : float
        Violation up to which the property counts as satisfied.

    Returns
    -------
    Check
        Whether the property holds, the largest violation, its user, and a description. A property that is undefined for
        this cluster, or requires the mechanism (`report`), is not applicable, and `witness` states the reason.

    Raises
    ------
    DataError
        The property is unknown, or `allocation` is not an allocation.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])
    >>> round(fo.properties.check("sharing-incentive", fo.DRFH().solve(cluster)).violation, 3)
    0.111
    """
    if isinstance(property, Allocation):
        property, allocation = allocation, property
    if isinstance(property, Allocation) or not isinstance(allocation, Allocation):
        raise DataError("check needs an allocation; solve first, or use report(mechanism, cluster)")
    prop = get(property)
    expected(allocation.cluster)
    reason, instead = prop.undefined(allocation.cluster), f"; use report(mechanism, cluster, [{prop.name!r}])"
    if not reason and prop.compares:
        reason = f"it compares with changed clusters{instead}"
    elif not reason and (unfit := prop.unfit(None)):
        reason = f"it needs the mechanism ({unfit}){instead}"
    if reason:
        return Check(prop.name, None, np.nan, "", reason, tol)
    found = prop.find(Case(allocation.cluster, np.maximum(allocation.tasks, 0)))
    loss = float(found.violation)
    holds = loss <= tol
    return Check(prop.name, holds, loss, found.user, "" if holds else found.text, tol)


def report(
    mechanism: Mechanism | str,
    cluster: Cluster,
    properties: Sequence[str] | str | None = None,
    *,
    changes: int = 200,
    rng: np.random.Generator | int | None = 0,
    tol: float = 1e-5,
    seconds: float = np.inf,
    done: Callable[[], object] = lambda: None,
) -> pd.DataFrame:
    """Check the properties of a mechanism on one cluster, including random misreports and other changes.

    Parameters
    ----------
    mechanism : Mechanism or str
    cluster : Cluster
        For single-pool mechanisms, servers are pooled.
    properties : sequence of str, or str, optional
        Names, or a text of names such as `"envy-freeness, pareto-optimality"`. Default: all properties.
    changes : int
        Number of misreports and other changed clusters for every property that compares two clusters.
    rng : Generator or int, optional
        Generator or seed of changes. Default: the same changes in every call.
    tol : float
        Violation up to which a property counts as satisfied.
    seconds : float
        Limit of CPU seconds for all properties. `witness` states if the limit ended the check of a property.
    done : callable
        Function without arguments that is called after every property.

    Returns
    -------
    DataFrame by property
        `violation`, the largest violation found (0 if there is none, NaN where the property is undefined or unchecked),
        and `witness`, its description, or the reason why the property is undefined or unchecked.

    Raises
    ------
    DataError
        The mechanism or a property is unknown, or `changes` is below 1.

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[6, 1], [1, 2]], [[1, 2], [1, 1]])
    >>> fo.properties.report("drfh", cluster, ["envy-freeness", "sharing-incentive"])["violation"].round(3).tolist()
    [0.0, 0.111]
    """
    chosen, shared = mechanisms.one(mechanism), seen(mechanisms.one(mechanism), expected(cluster))
    changes = _validate.whole(changes, "changes")
    if isinstance(properties, str):
        properties = items(properties)
    rows: dict[str, tuple[float, str]] = {}
    wanted = [get(name) for name in (names() if properties is None else properties)]
    known, end = dict[int, Numbers | None](), clock.cpu() + seconds
    # Properties of single allocations come first, since the other properties may use all the remaining time.
    for prop in sorted(wanted, key=lambda each: each.compares):
        left = end - clock.cpu()
        if reason := prop.unfit(chosen) or prop.undefined(shared):
            rows[prop.name] = np.nan, f"not defined here: {reason}"
        elif left <= 0:
            rows[prop.name] = np.nan, f"not checked: the time was over ({seconds:.3g} seconds)"
        else:
            some = instances(prop, shared, np.random.default_rng(rng), changes)
            worst, tried, ended = _worst(chosen, prop, some, known, left / (len(wanted) - len(rows)))
            if worst is None:
                rows[prop.name] = np.nan, "no answer reached the tolerance"
            elif worst[0].violation <= tol:
                rows[prop.name] = 0.0, "" if ended else f"{tried} tried in the time"
            else:
                rows[prop.name] = float(worst[0].violation), _words(*worst)
        done()
    index = pd.Index([prop.name for prop in wanted], name="property")
    return pd.DataFrame([rows[name] for name in index], index, ["violation", "witness"])


def _worst(
    mechanism: Mechanism, prop: Property, some: Iterable[Instance], known: dict[int, Numbers | None], seconds: float
) -> tuple[tuple[Finding, Instance] | None, int, bool]:
    """Largest violation with its instance, the number of instances tried in the time, and True if all were tried.

    The first is None if no instance was solved.
    """
    worst: tuple[Finding, Instance] | None = None
    left, tried, begun, size = iter(some), 0, clock.cpu(), 1 if np.isfinite(seconds) else None
    while part := list(islice(left, size)):
        # Solutions are accurate to 1e-8, so that their errors are far below the default tolerance of violations.
        cases_of_part = zip(cases(mechanism, part, 1e-8, known), part, strict=True)
        found = [(prop.find(case), instance) for case, instance in cases_of_part if case is not None]
        worst = max([*([] if worst is None else [worst]), *found], key=lambda each: each[0].violation, default=None)
        tried += len(part)
        spent = clock.cpu() - begun
        if size is not None:  # the batch doubles, within the remaining time
            size = min(2 * size, int((seconds - spent) / max(spent, 1e-9) * tried))
            if size < 1:
                return worst, tried, next(left, None) is None
    return worst, tried, True


def _words(finding: Finding, instance: Instance) -> str:
    cluster, deviation = instance
    return finding.text if deviation is None else f"{finding.text} ({changed(cluster, deviation)})"
