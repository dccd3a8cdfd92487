"""Which kernel answers to which kind of problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .statements import Batch

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """Tasks (problems, users, servers) and certificates (problems,), infinite where there is no answer."""

    tasks: Array
    certificate: Array


def answer(batch: Batch, tol: float) -> Answer:
    """The answers to one batch."""
    users, servers, _ = batch.statements[0].cluster.shape
    count = len(batch.statements)
    return Answer(np.zeros((count, users, servers)), np.full(count, np.inf))
