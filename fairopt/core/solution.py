"""Results of engines: candidates, to be certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model._arrays import Array

#: What is called the solver of a run that found the last digits of another's answer.
LAST_DIGITS = "augmented Newton"


@dataclass(frozen=True)
class Run:
    """One run of an algorithm or call of a solver: its cost in seconds, and what a solver said (never believed)."""

    solver: str
    solve: float
    compile: float = 0.0
    status: str = ""


class ServerStart:
    """A start that knows servers and nothing of users: it may serve others on the same servers."""


@dataclass(frozen=True)
class Solution:
    """Candidate of an engine: tasks (users, servers), prices (servers, resources) or None, and its cost.

    Prices per resource unit, as they are or as logarithms where doubles would not hold them.
    """

    tasks: Array
    prices: Array | None
    engine: str
    runs: tuple[Run, ...] = ()
    build: float = 0.0
    rounds: int = 0
    status: str = ""
    notes: tuple[str, ...] = ()  # what the reader should know of how it was found
    warm: object = None  # where to start for a similar problem; only the engine that made it knows what it is
    log: Array | None = None  # prices as logarithms
    rough: bool = False  # its engine knows that last digits are missing
    fine: bool = False  # its engine has found the last digits

    @property
    def log_prices(self) -> Array | None:
        """Logarithms of prices, -inf for none; `None` if there are no prices."""
        if self.log is not None or self.prices is None:
            return self.log
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.prices))
