"""Tuning of the curve of equilibria."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class CurveOptions:
    """How the curve is followed."""

    #: The curve begins at `near` or `1/near`; nearer to 1 an equilibrium is taken as it is found.
    near: float = 1.001
    #: Steps of the interior point that finds the beginning.
    begin_steps: int = 60
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
    #: It is followed up to this number of pairs (user, server); its beginning has dense matrices and looks at no clock.
    most_pairs: int = 6000
    #: Crossings that `select="welfare"` compares lie on the curve up to this factor beyond alpha.
    beyond: float = 3.0


class CurveStepOptions(NamedTuple):
    """One step (`_steps`)."""

    #: Residuals of a point of the curve, times `max(1, alpha / 10)`, and what a value of log alpha is missed by.
    exact: float = 1e-12
    reached: float = 1e-13
    #: A violation that counts, in parts of a user's tasks.
    violated: float = 1e-10
    #: Most corrections of an attempt, matrices for them, and attempts.
    corrections: int = 10
    matrices: int = 3
    attempts: int = 24
    #: Corrections that leave more than the part `slow` ask for another matrix; they end where what is left is above
    #: `lost`, or above `hopeless` and growing.
    slow: float = 0.3
    lost: float = 1e3
    hopeless: float = 1e-6
    #: A landing may change log alpha by this many lengths.
    far: float = 3.0
    #: An attempt that fails is followed by one shorter by this factor; where a pair's last price has gone to 0 by this.
    shorter: float = 0.4
    nearly: float = 0.9
    #: After a step of at most so many corrections the next is longer by this factor, after more it is half as long.
    growth: tuple[tuple[int, float], ...] = ((4, 2.0), (6, 1.4), (8, 1.0))


#: What is used unless a caller says otherwise.
OPTIONS = CurveOptions()
STEP = CurveStepOptions()
