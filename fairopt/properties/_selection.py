"""Of which answer a violation speaks, where a mechanism has several."""

from __future__ import annotations

from ..mechanisms import GameMechanism, Mechanism
from ..mechanisms.psdsf import PSDSF
from ._all_equilibria import alternatives, enumerable
from ._base import Case
from ._names import get
from ._solved import Instance, exact
from ._verify import MARGIN

#: How a selection begins that no other equilibrium contradicts.
EVERY = "of every equilibrium"
_RETURNED = "of the {} that Mechanism.solve returns"


def selection(mechanism: Mechanism, name: str, instance: Instance) -> str:
    """In words; empty where tasks are unique.

    Equilibria of the game need not be unique at finite alpha, but for alpha = 1, nor PS-DSF, nor optima at alpha = 0.
    At finite alpha the violation is looked for in every pair of an equilibrium of the cluster and one of the changed
    cluster that `fairopt.game.equilibria` finds; of PS-DSF that best responses from random starts find.
    """
    cluster, deviation = instance
    alpha = mechanism.criterion(cluster).alpha
    if alpha == 0 and exact(mechanism, instance) is not None:
        return ""  # it is the only optimum
    if alpha == 0:
        return f"{_RETURNED.format('optimum')}; others were not looked for"
    if not isinstance(mechanism, GameMechanism) or alpha == 1:
        return ""
    returned = _RETURNED.format("equilibrium")
    if not enumerable(mechanism) and not isinstance(mechanism, PSDSF):
        return f"{returned}; others were not looked for"
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
