"""Which clusters a search or a claim is about."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import DataError
from ..mechanisms import Mechanism
from ..mechanisms._claim import CONDITIONS
from ._base import Property
from ._solved import Instance, accepted, speaks_of


class Scope:
    """Instances that a property, a mechanism and some conditions (`CONDITIONS`) speak of."""

    def __init__(self, mechanism: Mechanism, prop: Property, conditions: Sequence[str]) -> None:
        if isinstance(conditions, str) or (unknown := [name for name in conditions if name not in CONDITIONS]):
            bad = conditions if isinstance(conditions, str) else unknown[0]
            raise DataError(f"conditions are {bad!r}; give a list of some of: {', '.join(CONDITIONS)}")
        self.mechanism, self.prop, self.conditions = mechanism, prop, tuple(conditions)

    def __contains__(self, instance: Instance) -> bool:
        cluster, deviation = instance
        clusters = (cluster,) if deviation is None else (cluster, deviation.cluster)
        return (
            (deviation is not None) == self.prop.compares
            and speaks_of(self.prop, instance)
            and all(CONDITIONS[name](one) for one in clusters for name in self.conditions)
            and all(accepted(self.mechanism, one) for one in clusters)
        )
