"""Tuning of lexicographic max-min: a frozen dataclass per algorithm, with the values that are used.

A study varies them where it enters: `highest(problem, rng, options=replace(OPTIONS, steps=50))`. Gaps are relative, of
the highest level that is possible to the level of the point.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..linalg.column_screening import ScreeningOptions
from ..linalg.conjugate_residuals import RefinementOptions
from ..linalg.gondzio import CorrectorOptions
from ..linalg.structured import FactorOptions


@dataclass(frozen=True)
class LevelPointOptions:
    """The first point, and the pairs that it has (`level_point`)."""

    #: With more than `many` pairs per user only some take part at first:
    many: int = 40
    #: the cheapest of every user, and some at random.
    cheapest: int = 8
    random: int = 12
    #: Rounds in which the loads of the servers are balanced.
    balancing: int = 15


@dataclass(frozen=True)
class EnteringOptions:
    """Pairs that come in (`level_screening`)."""

    #: (n, i) comes in if it costs less than `p_n + near mu/y_n`, so that it would carry about `1/near` of n's level,
    near: float = 30.0
    #: at most `most` pairs of a user at once.
    most: int = 8
    #: While `gap > loose`, its product is at least `least mu`, even where there is no room for it.
    loose: float = 0.1
    least: float = 0.1


@dataclass(frozen=True)
class LevelNewtonOptions:
    """Newton's equations of one level (`level_newton`)."""

    #: Rough factors: in single precision, without pairs with `y/z < least_weight` times their user's sum of it.
    least_weight: float = 1e-7
    factors: FactorOptions = FactorOptions()
    refinement: RefinementOptions = RefinementOptions()


@dataclass(frozen=True)
class LevelOptions:
    """The interior point of one level (`level_interior`)."""

    #: Most steps.
    steps: int = 200
    correctors: CorrectorOptions = CorrectorOptions(
        most=8, full=0.95, stretch=1.0, longer=0.3, gain=0.0, least_gain=0.01, low=0.1, high=10.0
    )
    #: A refined step may leave residuals of `sharp gap`.
    sharp: float = 1e-2
    #: What pairs that left carried is forgotten below the part `forgotten` of the level.
    forgotten: float = 1e-18
    #: The run ends if the gap did not fall by the factor `better` for more than `patience` steps, or for more than
    #: `short_patience` and a step is shorter than `short`.
    better: float = 0.9
    patience: int = 12
    short_patience: int = 3
    short: float = 1e-4
    #: With a gap of at least `unacceptable`, and at most `simplex` pairs, a simplex method is tried.
    unacceptable: float = 1e-4
    simplex: int = 30_000
    point: LevelPointOptions = LevelPointOptions()
    screening: ScreeningOptions = ScreeningOptions()
    entering: EnteringOptions = EnteringOptions()
    newton: LevelNewtonOptions = LevelNewtonOptions()


@dataclass(frozen=True)
class LevelsOptions:
    """All levels, one after the other (`levels`)."""

    #: How small a rise must be to freeze a user, as parts of the tolerance: in turn; on large clusters the first alone.
    freeze: tuple[float, ...] = (1e-2, 1e-1)
    #: By how much more than needed earlier prices keep dropped pairs out.
    margin: float = 1.001
    #: By how much frozen users may rise where nobody is proved to stand still any better.
    weaker: float = 1e-3
    #: A level bounded no better than this is not known at all.
    worst: float = 1e-2
    #: By what part of what freezes a user its floor is lowered.
    room: float = 0.1
    #: A price is one from the part `met` of the highest that those who rise meet (`held_prices`).
    met: float = 1e-10
    #: Seconds that a simplex method may take, of all levels of a solve together.
    simplex_seconds: float = 20.0
    level: LevelOptions = LevelOptions()


@dataclass(frozen=True)
class RestorationOptions:
    """Last digits once all levels are known (`settled`)."""

    #: Pairs with less than the part `nothing` of a user's level have none.
    nothing: float = 1e-14
    #: Rows are full that are used up to within `full` and have the part `priced` of the prices of some level.
    full: float = 1e-6
    priced: float = 1e-12
    #: Added to the diagonal, relatively: equations may depend on each other. Refined this many times.
    regular: float = 1e-12
    rounds: int = 4
    #: Levels are known to rounding, and may move too: the square of the part counts `1/rise`.
    rise: float = 1e-6
    #: Nobody's part on a server may move by more than this, relatively.
    far: float = 0.5


#: What is used unless a caller says otherwise.
OPTIONS = LevelOptions()
LEVELS = LevelsOptions()
RESTORATION = RestorationOptions()
