"""What `fairopt properties FILE` says of a mechanism on one cluster, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from .. import properties as fairness
from .._libraries import pd
from ..mechanisms import Mechanism
from ..model.cluster import Cluster

#: Properties about what a user reports.
_LIES = (
    "strategy-proofness",
    "strategy-proofness-placement",
    "strategy-proofness-counts",
    "group-strategy-proofness",
    "strong-group-strategy-proofness",
)


def sentences(mechanism: Mechanism, cluster: Cluster, frame: pd.DataFrame, changes: int) -> Iterator[str]:
    """What lies would gain; what else is violated; what is not; of what nothing is said.

    `frame` is that of `fairopt.properties.report`, `cluster` what the mechanism shares.
    """
    loss, witness = frame["violation"], frame["witness"]
    said = [name for name in frame.index if not loss.isna()[name]]
    violated = [name for name in said if loss[name] > 0]
    yield f"{mechanism}"
    lies = [name for name in said if name in _LIES]
    if gained := [name for name in lies if name in violated]:
        for name in gained:
            part = loss[name] / (1 - loss[name]) if loss[name] < 1 else float("inf")
            yield f"  a lie gains {part:.1%} ({name}): {witness[name]}"
    if kept := [name for name in lies if name not in violated]:
        yield f"  no lie found that gains, of {changes} tried each: {_proved(kept, mechanism, cluster, witness)}"
    for name in violated:
        if name not in _LIES:
            yield f"  {name} is violated by {loss[name]:.1%}: {witness[name]}"
    if kept := [name for name in said if name not in violated and name not in _LIES]:
        yield f"  not violated: {_proved(kept, mechanism, cluster, witness)}"
    for why in dict.fromkeys(witness[loss.isna()]):
        yield f"  {', '.join(frame.index[witness == why])}: {why}"


def _proved(names: list[str], mechanism: Mechanism, cluster: Cluster, witness: pd.Series) -> str:
    """Names, with `(proved)` where the mechanism claims the property of such clusters, or what time was for."""
    claimed = {one.property for one in mechanism.claims if one.holds and one.about(mechanism) and one.met(cluster)}
    words = {name: "proved" if fairness.get(name).name in claimed else witness[name] for name in names}
    return ", ".join(f"{fairness.get(name).name}{f' ({more})' if more else ''}" for name, more in words.items())
