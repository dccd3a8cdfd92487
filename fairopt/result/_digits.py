"""Which digits of an allocation are certain, and how it is printed with no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..certificates import Certificate

Array = NDArray[np.float64]

#: Users with `off > _UNCERTAIN` have fewer than three digits that are certain.
_UNCERTAIN = 1e-3
#: No residual is known to be smaller than rounding.
_ROUNDING = 1e-15
#: Parts of a user's tasks below this are nothing, whatever the certificate.
_DUST = 1e-12
#: Columns before those of servers: tasks, share, weight.
_ON_SERVERS = 3
#: Digits that are shown at most.
_MOST = 6


def off(certificate: Certificate) -> Array | None:
    """By how much tasks may be off, relatively and to first order, (users,): residual times condition."""
    known = certificate.conditions
    return None if known is None else np.asarray(max(certificate.residual, _ROUNDING) * known)


def uncertain(certificate: Certificate) -> Array:
    """By how much tasks of users may be off of which fewer than three digits are certain, NaN for others, (users,)."""
    apart = off(certificate)
    return np.zeros(0) if apart is None else np.where(apart > _UNCERTAIN, apart, np.nan)


def doubts(users: Sequence[str]) -> tuple[str, ...]:
    """The note that names users whose tasks are not certain, if there are any."""
    if not users:
        return ()
    named = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
    return (f"not certain to three digits, as a small change of the data moves their tasks: {named}",)


def shown(columns: Mapping[str, Array], certificate: Certificate) -> dict[str, list[str]]:
    """The columns of an allocation (a number per user) as text, with the digits that are certain, at most six.

    What is smaller than the certificate can tell from nothing is 0: tasks on one server (the columns behind the weight)
    that are a part of the user's below the residual, or below what a user's tasks may be off.
    """
    bound, tasks = off(certificate), columns["tasks"]
    least = np.full(len(tasks), max(certificate.residual, _DUST))
    if bound is not None:
        least = np.maximum(least, np.nan_to_num(bound, nan=0.0, posinf=0.0))
    dust = np.minimum(least, _UNCERTAIN) * tasks
    with np.errstate(divide="ignore"):
        apart = np.zeros(len(tasks)) if bound is None else bound
        digits = np.clip(np.floor(-np.log10(apart)), 0, _MOST).astype(int).tolist()
    text = {}
    for place, (name, values) in enumerate(columns.items()):
        sure = [_MOST] * len(values) if name == "weight" else digits
        kept = np.where(values < dust, 0.0, values) if place >= _ON_SERVERS else values
        text[name] = ["0" if value == 0 else f"{value:.{k}g}" if k else "?"
                      for value, k in zip(kept.tolist(), sure, strict=True)]  # fmt: skip
    return text
