"""`check` and `report`: a property of one allocation, and all properties of a mechanism on one cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from .. import mechanisms
from ..base import clock
from ..base.errors import DataError
from ..base.libraries import pd
from ..mechanisms import Mechanism
from ..model import _validate
from ..model.cluster import Cluster, expected
from ..result.allocation import Allocation
from ._base import Case, Finding, Numbers, Property, get, names
from ._base import changes as changed
from ._tasks import Instance, cases, instances, seen


@dataclass(frozen=True)
class Check:
    """The verdict of a property on an allocation.

    Attributes
    ----------
    property : str
    holds : bool
        Is the largest loss within `tol`?
    violation : float
        The largest loss, `1 - has/due`: the part of what is due that somebody misses; below 0 everybody has more.
    user : str
        Whose loss that is.
    witness : str
        The violation in words; empty if the property holds.
    tol : float
    """

    property: str
    holds: bool
    violation: float
    user: str
    witness: str
    tol: float

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        if self.holds:
            return f"{self.property} holds: the largest loss is {self.violation:.3g}, of {self.user}"
        return f"{self.property} is violated by {self.violation:.3g}: {self.witness}"


def check(property: str | Property | Allocation, allocation: Allocation | str | Property, tol: float = 1e-5) -> Check:
    """Check a property of an allocation, on the cluster that its mechanism saw; arguments in either order.

    Parameters
    ----------
    property : a property or its name
    allocation : of any mechanism
    tol : a violation up to this is none

    Returns
    -------
    Check
        whether it holds, the violation, and who suffers it, in words

    Raises
    ------
    DataError
        There is no such property, or it says nothing about this cluster, or needs more than the allocation: see
        `report`. Or `allocation` is not one.
    """
    if isinstance(property, Allocation):
        property, allocation = allocation, property
    if isinstance(property, Allocation) or not isinstance(allocation, Allocation):
        raise DataError("check needs an allocation; solve first, or use report(mechanism, cluster)")
    prop = get(property)
    if prop.compares:
        raise DataError(f"{prop.name} compares with changed clusters; use report(mechanism, cluster, [{prop.name!r}])")
    if reason := prop.domain(allocation.cluster):
        raise DataError(f"{prop.name} says nothing about this cluster: {reason}")
    if reason := prop.unfit(None):
        raise DataError(f"{prop.name} needs the mechanism ({reason}); use report(mechanism, cluster, [{prop.name!r}])")
    found = prop.find(Case(allocation.cluster, np.maximum(allocation.tasks, 0)))
    loss = float(found.violation)
    holds = loss <= tol
    return Check(prop.name, holds, loss, found.user, "" if holds else found.text, tol)


def report(
    mechanism: Mechanism | str,
    cluster: Cluster,
    properties: Sequence[str] | None = None,
    *,
    changes: int = 200,
    rng: np.random.Generator | int | None = 0,
    tol: float = 1e-5,
    seconds: float = np.inf,
    done: Callable[[], object] = lambda: None,
) -> pd.DataFrame:
    """Every property of a mechanism on one cluster.

    Parameters
    ----------
    mechanism : a mechanism or its name
    cluster : what it shares; single-pool mechanisms share the pool of it
    properties : names, optional
        Default: all.
    changes : int
        Lies and other changed clusters to try, for every property that compares.
    rng : numpy.random.Generator or a seed, optional
        Which changes. Default: the same ones every time.
    tol : float
        A loss up to this is none.
    seconds : float
        CPU seconds, which properties share: fewer changes are tried where they do not do, and some properties may not
        be looked at. Their rows say so.
    done : function
        Called after every property.

    Returns
    -------
    DataFrame
        A row per property: `violation`, the largest loss found (0 for none, NaN where the property says nothing), and
        `witness`, that in words, or why the property says nothing.

    Raises
    ------
    DataError
        There is no such mechanism or property, or `changes` is below 1.
    """
    chosen, shared = mechanisms.one(mechanism), seen(mechanisms.one(mechanism), expected(cluster))
    changes = _validate.whole(changes, "changes")
    if isinstance(properties, str):
        raise DataError(f"properties are {properties!r}; give a list of names, such as [{properties!r}]")
    rows: dict[str, tuple[float, str]] = {}
    wanted = [get(name) for name in (names() if properties is None else properties)]
    known, end = dict[int, Numbers | None](), clock.cpu() + seconds
    for prop in sorted(wanted, key=lambda each: each.compares):  # those first that take one answer
        left = end - clock.cpu()
        if reason := prop.unfit(chosen) or prop.domain(shared):
            rows[prop.name] = np.nan, f"says nothing: {reason}"
        elif left <= 0:
            rows[prop.name] = np.nan, f"not looked at: the time was over ({seconds:.3g} seconds)"
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
    """The largest loss among these, or those for which there is time; how many that were, and whether all of them."""
    worst: tuple[Finding, Instance] | None = None
    left, tried, begun, size = iter(some), 0, clock.cpu(), 1 if np.isfinite(seconds) else None
    while part := list(islice(left, size)):
        # Losses below a hundred times what answers are certified to are rounding.
        cases_of_part = zip(cases(mechanism, part, 1e-8, known), part, strict=True)
        found = [(prop.find(case), instance) for case, instance in cases_of_part if case is not None]
        worst = max([*([] if worst is None else [worst]), *found], key=lambda each: each[0].violation, default=None)
        tried += len(part)
        spent = clock.cpu() - begun
        if size is not None:  # twice as many at once, or as many as there is time for
            size = min(2 * size, int((seconds - spent) / max(spent, 1e-9) * tried))
            if size < 1:
                return worst, tried, next(left, None) is None
    return worst, tried, True


def _words(finding: Finding, instance: Instance) -> str:
    cluster, deviation = instance
    return finding.text if deviation is None else f"{finding.text} ({changed(cluster, deviation)})"
