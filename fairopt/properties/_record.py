"""From a violation to its witness."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from ..errors import DataError
from ..mechanisms import GameMechanism, Mechanism, one
from ..model.cluster import Cluster
from ._base import Numbers
from ._solved import Instance
from ._verify import verified
from .witness import Witness


def witness(mechanism: Mechanism, name: str, instance: Instance) -> Witness:
    """The witness of a violation; errors as in `verified`."""
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
        selection=_selection(mechanism, cluster),
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


def _selection(mechanism: Mechanism, cluster: Cluster) -> str:
    """Equilibria of the game need not be unique, but for alpha = 1; nor do optima at alpha = 0."""
    alpha = mechanism.criterion(cluster).alpha
    if alpha == 0:
        return "of the optimum that Mechanism.solve returns; others were not looked for"
    if not isinstance(mechanism, GameMechanism) or alpha == 1:
        return ""
    return "of the equilibrium that Mechanism.solve returns; others were not looked for"
