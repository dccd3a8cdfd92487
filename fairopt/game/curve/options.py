"""Tuning of the curve of equilibria, and up to which size `solve` follows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
    begin_steps: int = 60
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
    #: It is followed up to this number of pairs (user, server); its beginning has dense matrices and looks at no clock.
    most_pairs: int = 6000
    #: Crossings that `select="welfare"` compares lie on the curve up to this factor beyond alpha.
    beyond: float = 3.0

    def control(self, shorter: float = 1.0) -> NDArray[np.float64]:
        """Lengths for the compiled loops."""
        return np.array([shorter * self.first, shorter * self.longest, self.shortest, self.turned])

    def steps(self, pairs: int, alpha: float) -> int:
        """Most steps of a run."""
        return int(self.steps_per_pair * (pairs + 10) * (1 + abs(np.log(alpha))))


class CurveStepOptions(NamedTuple):
    """One step, compiled (`_steps`): constants of loops are tuples, which numba takes for constants."""

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


class CurveRunOptions(NamedTuple):
    """A run along the curve, compiled (`_follow`, `_gauge`)."""

    #: A tangent whose part along log alpha is below this goes neither up nor down.
    level: float = 1e-9
    #: Values of log alpha that are the same.
    same: float = 1e-11
    #: Tasks that differ by more than this, in logarithms, are other ones.
    jump: float = 1e-6
    #: Towards a fold that a step went over the next goes this part of the way.
    back: float = 0.3
    #: After a step of at most so many corrections the next is longer by this factor, after more it is half as long.
    growth: tuple[tuple[int, float], ...] = ((4, 2.0), (6, 1.4), (8, 1.0))
    #: A row stands for its server if somebody there pays less than this part of its cost as tax.
    taxed: float = 0.5


class CurveBeginOptions(NamedTuple):
    """Where the curve begins, compiled (`_begin`)."""

    #: The equilibrium there has an error of at most `sound`; it is looked for again from another start above `good`.
    good: float = 1e-9
    sound: float = 1e-8
    #: Singular values below this part of the largest are ties, and rates below `still` are none.
    tie: float = 1e-9
    still: float = 1e-9
    #: A limit that is larger than what fits by less than this part is none.
    binds: float = 1e-9
    #: Limits with less room than this part are reached, and pairs with more than this part of a user's tasks say by
    #: how much they bind.
    reached: float = 1e-7
    #: By how much what is outside the active set is worse than in the data,
    jitter: float = 1e-8
    #: and the most, in parts of that, by which data may have to be changed.
    most: float = 1e3
    #: By how much the level of the tax on users with a limit is below theirs, log, besides `_system.LOG_TAX`.
    tax: float = 3.0
    #: Splits and prices are determined in turn, at most so often.
    rounds: int = 4


#: What is used unless a caller says otherwise.
OPTIONS = CurveOptions()
#: What compiled loops use.
STEP = CurveStepOptions()
RUN = CurveRunOptions()
BEGIN = CurveBeginOptions()
