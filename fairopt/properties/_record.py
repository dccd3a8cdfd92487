"""From a violation to its witness."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from ..errors import DataError
from ..mechanisms import Mechanism, one
from ..model.cluster import Cluster
from ._base import Deviation, Numbers, Property
from ._names import get
from ._selection import selection
from ._solved import Instance, seen
from ._verify import verified
from .witness import Witness


def verify(
    mechanism: Mechanism | str, property: str | Property, cluster: Cluster, deviation: Deviation | None = None
) -> Witness:
    """The witness of a violation that is known: on a cluster, and on how it changes if the property compares.

    Parameters
    ----------
    mechanism : a mechanism or its name; it is solved to 1e-9
    property : a property or its name
    cluster : where it is violated; single-pool mechanisms see the pool of it
    deviation : how the cluster changes, for properties that compare

    Returns
    -------
    Witness
        the violation and what proves it, ready for a file

    Raises
    ------
    DataError
        There is no such mechanism or property, it says nothing about this, or is not violated beyond rounding.
    SolverError, NotConverged, CertificateError
        The mechanism has no answer to 1e-9.
    """
    chosen = one(mechanism)
    return recorded(chosen, get(property).name, (seen(chosen, cluster), deviation))


def recorded(mechanism: Mechanism, name: str, instance: Instance) -> Witness:
    """The same, of an instance on the cluster that the mechanism sees."""
    text = written(mechanism)
    found = verified(mechanism, name, instance)
    cluster, deviation = instance
    changed = None if deviation is None else deviation.cluster
    return Witness(
        mechanism=text,
        property=name,
        cluster=cluster,
        changed=changed,
        users=() if deviation is None else deviation.users,
        before=_values(found.case.user_tasks),
        after=_values(found.case.changed_user_tasks),
        violation=found.violation,
        text=found.finding.text,
        route=found.route,
        selection=selection(mechanism, name, instance),
    )


def written(mechanism: Mechanism) -> str:
    """The mechanism as `fairopt.mechanisms.one` reads it: `alphapf-vds(alpha=2.0)`.

    Raises
    ------
    DataError
        A parameter is a function, or another thing that cannot be written.
    """
    changed = {
        field.name: getattr(mechanism, field.name)
        for field in dataclasses.fields(mechanism)
        if field.name == "alpha" or getattr(mechanism, field.name) != field.default
    }
    text = f"{mechanism.name}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
    text = text if changed else mechanism.name
    if one(text) != mechanism:
        raise DataError(f"{mechanism} cannot be written into a witness: a parameter is not plain data")
    return text


def _values(tasks: Numbers) -> tuple[Fraction | float, ...]:
    return tuple(value if isinstance(value, Fraction) else float(value) for value in tasks)
