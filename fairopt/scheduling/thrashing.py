"""How much slower tasks run on a server that is over-committed: the model is an assumption, and stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import DataError


@dataclass(frozen=True)
class Thrashing:
    """Tasks on an over-committed server run `factor` times slower, as long as it is; others at full speed.

    A server is over-committed in a resource if its tasks demand more than it has. Inside it the resource is divided
    max-min fairly: everybody is given up to a level, and who demands less only what it demands. Who is given less than
    it demands is *short*.

    The papers do not say how tasks slow down (DRF section 7.2 speaks of thrashing): docs/simulation.md has what follows
    of its experiment with two factors.
    """

    #: How many times slower, >= 1.
    factor: float = 5.0
    #: Which tasks: those that are short of something, or all on the server.
    slows: Literal["short", "all"] = "short"

    def __post_init__(self) -> None:
        if not 1 <= self.factor < np.inf:
            raise DataError(f"factor is {self.factor!r}; it must be a finite number >= 1")
        if self.slows not in ("short", "all"):
            raise DataError(f"slows is {self.slows!r}; it must be 'short' or 'all'")
