"""From a violation to its witness."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np

from ..errors import DataError
from ..mechanisms import GameMechanism, Mechanism, one
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
        after=() if found.case.changed_tasks is None else _values(found.case.changed_tasks.sum(axis=1)),
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


def _selection(mechanism: Mechanism, cluster: object) -> str:
    """Equilibria of the game need not be unique, but for alpha = 1."""
    alpha = getattr(mechanism, "alpha", np.inf)
    unique = not isinstance(mechanism, GameMechanism) or alpha == 1
    return "" if unique else "of the equilibrium that Mechanism.solve returns; others were not looked for"
