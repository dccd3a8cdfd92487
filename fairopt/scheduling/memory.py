"""Memory of use: usage that decays with a half-life, and weights that are reduced by usage.

Source: the documentation of Slurm, "Classic Fairshare Algorithm" (doc/html/classic_fair_share.shtml of SchedMD/slurm),
and of Kueue, KEP-4136, "Admission Fair Sharing" (keps/4136-admission-fair-sharing of kubernetes-sigs/kueue).
"""

from __future__ import annotations

import math
import re

import numpy as np

from ..base.errors import DataError
from ..base.names import short
from ..model import _validate
from ..model._arrays import Array, ratio

#: Smallest factor of a weight, since the weights of clusters are positive and of limited range.
_LEAST = 1e-6
#: Seconds of each unit of a half-life.
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def half_life(given: float | str) -> float:
    """Half-life in seconds, from a number of seconds, or a text such as `90`, `30m`, `12h` or `7d`.

    Raises
    ------
    DataError
        The given value is no positive duration.

    >>> from fairopt.scheduling.memory import half_life
    >>> half_life("7d")
    604800.0
    """
    found = re.fullmatch(r"([0-9.]{1,20})([smhd]?)", str(given).strip())
    try:
        seconds = float(given) if found is None else float(found[1]) * _UNITS[found[2]]
    except (TypeError, ValueError):
        raise DataError(f"a half-life is {short(given)}; write seconds, or such as 30m, 12h, 7d") from None
    return _validate.number(seconds, "a half-life", "a time > 0", lambda time: 0 < time < math.inf)


def decayed(usage: Array, current: Array, seconds: float, life: float) -> Array:
    r"""Usage U, (users,), after a time s (`seconds`) in which users had the shares u (`current`) of the cluster.

    .. math:: U_n \leftarrow 2^{-s/h} U_n + (1 - 2^{-s/h}) u_n

    with the half-life h (`life`): U is the mean of past use with weights that halve with every half-life.

    >>> from fairopt.scheduling.memory import decayed
    >>> decayed([0.8, 0.0], [0.0, 0.4], seconds=60, life=60).tolist()
    [0.4, 0.2]
    """
    kept = 0.5 ** (seconds / life)
    return np.asarray(kept * np.asarray(usage, dtype=float) + (1 - kept) * np.asarray(current, dtype=float))


def factor(usage: Array, share: Array) -> Array:
    r"""Factor of a weight, :math:`2^{-U/S}`: 1 if the usage U is 0, 1/2 if U is the share S; at least 1e-6.

    >>> from fairopt.scheduling.memory import factor
    >>> factor([0.0, 0.25, 0.5], [0.25, 0.25, 0.25]).tolist()
    [1.0, 0.5, 0.25]
    """
    return np.maximum(np.exp2(-ratio(np.asarray(usage, dtype=float), np.asarray(share, dtype=float))), _LEAST)


def reduced(weight: Array, usage: Array) -> Array:
    r"""Weights of siblings, reduced by their usage.

    .. math:: \phi_n 2^{-U_n / S_n}, \qquad S_n = \frac{\phi_n}{\sum_m \phi_m}

    where :math:`U_n` is the usage of n as a fraction of the usage of all siblings (`factor`).

    >>> from fairopt.scheduling.memory import reduced
    >>> reduced([1.0, 3.0], [0.1, 0.3]).tolist()
    [0.5, 1.5]
    """
    weight, usage = np.asarray(weight, dtype=float), np.asarray(usage, dtype=float)
    return np.asarray(weight * factor(ratio(usage, usage.sum()), ratio(weight, weight.sum())))
