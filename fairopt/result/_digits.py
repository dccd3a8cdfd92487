"""Which digits of an allocation are certain, and how it is printed with no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..certificates import Certificate

Array = NDArray[np.float64]

#: Users with `off > _UNCERTAIN` have fewer than three digits that are certain.
_UNCERTAIN = 1e-3
#: No residual is known to be smaller than rounding.
_ROUNDING = 1e-15
#: Parts of a user's tasks below this are nothing, whatever the certificate.
_DUST = 1e-12
#: Digits that are shown at most.
_MOST = 6


def off(certificate: Certificate) -> Array | None:
    """By how much tasks may be off, relatively and to first order, (users,): residual times condition."""
    known = certificate.conditions
    return None if known is None else np.asarray(max(certificate.residual, _ROUNDING) * known)


def uncertain(users: Sequence[str], apart: Array | None) -> pd.Series:
    """Users with fewer than three certain digits, and by how much their tasks may be off."""
    far = np.flatnonzero(apart > _UNCERTAIN) if apart is not None else np.zeros(0, dtype=int)
    index = pd.Index([users[int(n)] for n in far], name="user")
    return pd.Series([] if apart is None else apart[far], index=index, name="may be off by", dtype=float)


def doubts(doubtful: pd.Series) -> tuple[str, ...]:
    """The note that names users whose tasks are not certain, if there are any."""
    if doubtful.empty:
        return ()
    named = ", ".join(doubtful.index[:5]) + (f" and {len(doubtful) - 5} more" if len(doubtful) > 5 else "")
    return (f"not certain to three digits, as a small change of the data moves their tasks: {named}",)


def _without_dust(frame: pd.DataFrame, certificate: Certificate) -> pd.DataFrame:
    """Tasks per server (the columns behind the weight) with 0 in place of what is less than the certificate knows."""
    servers = list(frame.columns[3:])
    if not servers:
        return frame
    least = np.full(len(frame), max(certificate.residual, _DUST))
    if (bound := off(certificate)) is not None:
        least = np.maximum(least, np.nan_to_num(bound, nan=0.0, posinf=0.0))
    dust = frame[servers].to_numpy() < np.minimum(least, _UNCERTAIN)[:, None] * frame["tasks"].to_numpy()[:, None]
    return frame.assign(**{name: frame[name].where(~dust[:, k], 0.0) for k, name in enumerate(servers)})


def shown(frame: pd.DataFrame, certificate: Certificate) -> pd.DataFrame:
    """The frame of an allocation (one row per user) as text, with the digits that are certain, at most six.

    What is smaller than the certificate can tell from nothing is 0: tasks on one server that are a part of the user's
    below the residual, or below what a user's tasks may be off.
    """
    frame = _without_dust(frame, certificate)
    apart = off(certificate)
    apart = np.zeros(len(frame)) if apart is None else apart
    with np.errstate(divide="ignore"):
        digits = np.clip(np.floor(-np.log10(apart)), 0, _MOST).astype(int)
    text = frame.map("{:.6g}".format)
    for name in frame.columns.difference(["weight"]):
        column = zip(frame[name], digits, strict=True)
        text[name] = ["0" if value == 0 else f"{value:.{k}g}" if k else "?" for value, k in column]
    return text
