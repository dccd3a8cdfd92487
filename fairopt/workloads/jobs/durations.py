"""Durations of tasks, from a trace that ends before they do.

A task that is seen to start and to end has its duration. Of one that still runs at the end of the trace only a lower
bound is known, and tasks that last are seen less often to end: leaving them out, or cutting them off, makes durations
too short. So a lognormal distribution is fitted to both, the likelihood of a lower bound being that of lasting longer,
and what is unknown is drawn from it, given that it is longer than what was seen. Source of the method: right-censored
maximum likelihood, as in every text on survival analysis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._libraries import special, stats
from ...model._arrays import Array, Mask


@dataclass(frozen=True)
class Lognormal:
    """`exp(median, sd)`: durations in seconds whose logarithm is normal."""

    median: float
    sd: float

    def draw(self, rng: np.random.Generator, longer_than: Array) -> Array:
        """Durations given that they are longer than these (0: no condition)."""
        with np.errstate(divide="ignore"):
            least = special.ndtr((np.log(longer_than) - np.log(self.median)) / self.sd)
        uniform = least + (1 - least) * rng.random(len(least))
        # Far in the tail the condition decides, and rounding may leave nothing above it.
        drawn = self.median * np.exp(self.sd * special.ndtri(np.minimum(uniform, 1 - 1e-12)))
        return np.asarray(np.maximum(drawn, longer_than))


def fitted(seconds: Array, ended: Mask) -> Lognormal:
    """The lognormal of greatest likelihood for durations that `ended` and lower bounds of others."""
    data = stats.CensoredData(uncensored=seconds[ended], right=seconds[~ended])
    sd, _, median = stats.lognorm.fit(data, floc=0)
    return Lognormal(float(median), float(sd))


def through(first: tuple[float, float], second: tuple[float, float]) -> Lognormal:
    """The lognormal with two quantiles: pairs of seconds and the part of all that is shorter."""
    (short, low), (long, high) = first, second
    sd = np.log(long / short) / (special.ndtri(high) - special.ndtri(low))
    return Lognormal(float(short * np.exp(-sd * special.ndtri(low))), float(sd))


#: PF, section 6, of Google's day: 38% of jobs end within five minutes, 16% are active for more than a day.
PF_JOBS = through((300.0, 0.38), (86_400.0, 0.84))
