"""Tuning of the curve of equilibria, and up to which size `solve` follows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CurveOptions:
    """How the curve is followed (`_follow`), and when (`selection`)."""

    #: The curve begins at `near` or `1/near`; nearer to 1 an equilibrium is taken as it is found.
    near: float = 1.001
    #: Error at which the interior point ends that finds the beginning.
    begin: float = 1e-12
    #: Its steps.
    begin_steps: int = 400
    #: A crossing of which the error is above `fine` is tried to be made better without pairs that have less than the
    #: part `tied` of the user's tasks.
    fine: float = 1e-11
    tied: float = 1e-6
    #: Errors of selected answers above this have their last digits looked for.
    last_digits: float = 1e-10
    #: Lengths of the first step, the longest and the shortest. `length^2 = (d log alpha)^2 + min(1, 10/unknowns) (|d
    #: tasks / tasks of the user|^2 + |d log levels of servers|^2 + |d parts of rows in what is paid|^2)`.
    first: float = 0.05
    longest: float = 0.3
    shortest: float = 1e-9
    #: A step over a fold is repeated shorter until it is of this length.
    turned: float = 1e-3
    #: Where a run fails it is repeated with steps shorter by these factors.
    retries: tuple[float, ...] = (1.0, 0.3)
    #: Steps of a run: `steps_per_pair (pairs + 10) (1 + |log alpha|)` at most, whichever way it goes.
    steps_per_pair: int = 60
    #: Steps between two looks at the clock.
    chunk: int = 200
    #: `solve` follows the curve up to this number of pairs (user, server) unasked,
    affordable: int = 30
    #: and where what was found is unstable (index -1) up to this one.
    rescue: int = 600
    #: Asked for, it is followed up to this number of pairs; its beginning has dense matrices and looks at no clock.
    most_pairs: int = 6000
    #: Largest alpha up to which `solve` does: above, prices of one server differ by more than numbers hold.
    largest: float = 200.0
    #: Crossings that `select="welfare"` compares lie on the curve up to this factor beyond alpha.
    beyond: float = 3.0

    def control(self, shorter: float = 1.0) -> NDArray[np.float64]:
        """Lengths for the compiled loops."""
        return np.array([shorter * self.first, shorter * self.longest, self.shortest, self.turned])

    def steps(self, pairs: int, alpha: float) -> int:
        """Most steps of a run."""
        return int(self.steps_per_pair * (pairs + 10) * (1 + abs(np.log(alpha))))


#: What is used unless a caller says otherwise.
OPTIONS = CurveOptions()
