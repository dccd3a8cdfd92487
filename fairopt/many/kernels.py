"""Which kernel answers to which kind of problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .statements import Batch

Array = NDArray[np.float64]

#: Kernels go on to this part of the tolerance, where a step more makes the rest of it small.
_AIM = 0.1


class Answer(NamedTuple):
    """Tasks (problems, users, servers) and certificates (problems,), infinite where there is no answer."""

    tasks: Array
    certificate: Array


def answer(batch: Batch, tol: float) -> Answer:
    """The answers to one batch."""
    from . import _batches

    capacity, demand, eligible, share, weight, limit, alpha = batch.stacked()
    aim = _AIM * tol
    if batch.kind in ("global", "game"):
        by_pair = share if share.ndim == 3 else np.repeat(share[:, :, None], capacity.shape[1], axis=2)
        data = (capacity, demand, eligible, by_pair, weight, limit, alpha)
        return Answer(*_batches.equilibria(batch.kind == "game", *data, aim))
    users, servers, _ = batch.statements[0].cluster.shape
    count = len(batch.statements)
    return Answer(np.zeros((count, users, servers)), np.full(count, np.inf))
