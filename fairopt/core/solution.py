"""Candidate solutions of engines, which certificates accept or reject."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..model._arrays import Array

#: Solver name of runs that refine the solution of another engine (`refinement`).
REFINEMENT = "augmented Newton"


@dataclass(frozen=True)
class Run:
    """One run of an algorithm or solver: times in seconds, and its reported status, which certificates ignore."""

    solver: str
    solve: float
    compile: float = 0.0
    status: str = ""


class ServerStart:
    """Warm start that consists of prices of servers, and is therefore valid for other users of the same servers."""


@dataclass(frozen=True)
class Solution:
    """Candidate of an engine: tasks (users, servers), prices (servers, resources) or None, and times in seconds.

    Prices are per resource unit, and given as numbers (`prices`) or as logarithms (`log`), which cannot overflow.
    """

    tasks: Array
    prices: Array | None
    engine: str
    runs: tuple[Run, ...] = ()
    build: float = 0.0
    rounds: int = 0
    status: str = ""
    notes: tuple[str, ...] = ()  # remarks on the method, for the user
    warm: object = None  # warm start for similar problems, in the format of the engine
    log: Array | None = None  # log prices per resource unit
    rough: bool = False  # not converged: refinement is worthwhile
    fine: bool = False  # accurate to rounding: refinement is not needed

    @property
    def log_prices(self) -> Array | None:
        """Log prices per resource unit, (servers, resources), -inf for zero; None if there are no prices."""
        if self.log is not None or self.prices is None:
            return self.log
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.prices))
