"""Users of a Kubernetes cluster: pods of one namespace and shape, and what they are called."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from ._kubernetes_objects import Amounts

_GIB = Decimal(1024**3)
_BYTES = ("memory", "ephemeral-storage")


@dataclass
class Group:
    """Pods of a namespace that ask for the same and may run on the same nodes."""

    namespace: str
    request: Amounts
    eligible: tuple[bool, ...]
    running: int = 0
    pending: int = 0


def units(what: str, amount: Decimal) -> float:
    """Bytes as GiB, anything else as it is."""
    return float(amount / _GIB) if what in _BYTES or what.startswith("hugepages-") else float(amount)


def named(groups: list[Group]) -> list[str]:
    """`namespace` where it has one shape, else with what a pod asks for, and a number where that is not enough."""
    count = Counter(group.namespace for group in groups)
    names = [
        group.namespace if count[group.namespace] == 1 else f"{group.namespace}/{_shape(group)}" for group in groups
    ]
    seen: Counter[str] = Counter()
    twice = {name for name, number in Counter(names).items() if number > 1}
    for n, name in enumerate(names):
        if name in twice:
            seen[name] += 1
            names[n] = f"{name} #{seen[name]}"
    return names


def _shape(group: Group) -> str:
    parts = [f"{units(what, amount):g}{'GiB' if what == 'memory' else ' ' + what.rpartition('/')[2]}"
             for what, amount in sorted(group.request.items()) if amount and what != "pods"]  # fmt: skip
    return ", ".join(parts) or "nothing"
