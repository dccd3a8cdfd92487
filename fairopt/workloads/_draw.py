"""Draw some of many, with an explicit generator; and what the numbers that sources take must be.

A check stands in the type of an option, `users: Annotated[int, positive]`, so that a name is checked before anything is
read or drawn, and the function that takes it calls the same check.

Demands have a joint distribution in a small table: quantiles per column, and how the columns go together. Each column
is 0 with some probability and otherwise follows its measured quantiles, joined by straight lines on a logarithmic scale
(demands span orders of magnitude). The columns are tied by a Gaussian copula, whose normal correlations are those for
which the drawn values have the measured rank correlations (Spearman's, equal values sharing their mean rank). Source of
the method: M. Cario, B. Nelson, "Modeling and generating random vectors with arbitrary marginal distributions and
correlation matrix" (NORTA), 1997.

Durations of tasks come from a trace that ends before they do. A task that is seen to start and to end has its duration.
Of one that still runs at the end of the trace only a lower bound is known, and tasks that last are seen less often to
end: leaving them out, or cutting them off, makes durations too short. So a lognormal distribution is fitted to both,
the likelihood of a lower bound being that of lasting longer, and what is unknown is drawn from it, given that it is
longer than what was seen. Source of the method: right-censored maximum likelihood, as in every text on survival
analysis.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any

import numpy as np

from ..base.errors import DataError
from ..base.libraries import special, stats
from ..model import _validate
from ..model._arrays import Array, Index, Mask

PROBABILITY = np.array([0, 0.01, *np.arange(0.05, 0.96, 0.05), 0.99, 1]).round(2)


@dataclass(frozen=True, eq=False)
class Marginals:
    """`zero` (columns,), `quantiles` of what is not 0 (columns, probabilities), two correlation matrices."""

    columns: tuple[str, ...]
    zero: Array
    quantiles: Array
    rank_correlation: Array
    normal_correlation: Array

    @classmethod
    def one(cls, column: str, quantiles: Array | list[float]) -> Marginals:
        """A single column that is never 0."""
        return cls((column,), np.zeros(1), np.array([quantiles], dtype=float), np.eye(1), np.eye(1))

    def draw(self, rng: np.random.Generator, count: int, demands: int) -> Array:
        """(count, columns); in every row one of the first `demands` columns, at least, is not 0."""
        rows = np.zeros((0, len(self.columns)))
        while len(rows) < count:
            more = self.values(rng.standard_normal((count, len(self.columns))))
            rows = np.vstack([rows, more[more[:, :demands].any(axis=1)]])
        return rows[:count]

    def values(self, normal: Array) -> Array:
        """(rows, columns), from independent standard normals of this shape."""
        squares, spread = np.linalg.eigh(self.normal_correlation)
        # Pairs are fitted one by one, so that the matrix may miss being a correlation matrix by a little.
        root = spread * np.sqrt(np.maximum(squares, 0))
        root /= np.linalg.norm(root, axis=1, keepdims=True)
        uniform = special.ndtr(normal @ root.T)
        return np.column_stack([self.value(k, uniform[:, k]) for k in range(len(self.columns))])

    def value(self, k: int, uniform: Array) -> Array:
        """The inverse distribution function of column k."""
        zero = self.zero[k]
        above = (uniform - zero) / (1 - zero) if zero < 1 else uniform
        drawn = np.exp(np.interp(above, PROBABILITY, np.log(self.quantiles[k])))
        return np.where(uniform < zero, 0.0, drawn)


def measured(name: str) -> tuple[Marginals, dict[str, Any]]:
    """The marginals of `data/<name>.json` and the other entries of the file."""
    table = json.loads(files(__package__).joinpath("data", f"{name}.json").read_text(encoding="utf-8"))
    columns = table.pop("columns")
    rows = {key: np.array(table.pop(key), dtype=float) for key in ("zero", "quantiles", "rank_correlation")}
    return Marginals(tuple(columns), **rows, normal_correlation=np.array(table.pop("normal_correlation"))), table


def choose(count: int, wanted: int | float | None, rng: np.random.Generator | None, what: str) -> Index:
    """Indices of `wanted` out of `count`, without replacement, ascending.

    `wanted` is a number (int), a fraction in (0, 1] (float; rounded, at least one) or None for all.
    Nothing is drawn, and no `rng` is needed, when all are wanted.
    """
    number = count
    if wanted is not None:
        amount(wanted, what)
        number = max(1, round(wanted * count)) if isinstance(wanted, float) else wanted
    if number > count:
        raise DataError(f"{wanted} {what} are wanted, but there are only {count}; ask for fewer")
    if number == count:
        return np.arange(count)
    return np.sort(needed(rng, f"draw {number} of {count} {what}").choice(count, size=number, replace=False))


def needed(rng: np.random.Generator | None, purpose: str) -> np.random.Generator:
    """`rng`, or a `DataError` that says what it is needed for."""
    if rng is None:
        raise DataError(f"a random generator is needed to {purpose}; pass rng=numpy.random.default_rng(seed)")
    return rng


#: A whole number >= 1.
positive = _validate.whole


def amount(wanted: int | float, what: str) -> None:
    """A number of them, or a fraction in (0, 1]."""
    if isinstance(wanted, float):
        probability(wanted, what)
    else:
        positive(wanted, what)


def probability(value: float, what: str) -> None:
    """In (0, 1]."""
    _validate.number(value, what, "above 0 and at most 1", lambda part: 0 < part <= 1)


def not_negative(value: float, what: str) -> None:
    """A finite number >= 0."""
    _validate.number(value, what, "a finite number >= 0", lambda number: 0 <= number < math.inf)


def above_zero(value: float, what: str) -> None:
    """A finite number > 0."""
    _validate.number(value, what, "a finite number > 0", lambda number: 0 < number < math.inf)


def finite(value: float, what: str) -> None:
    """A finite number."""
    _validate.number(value, what, "a finite number", math.isfinite)


#: Types of options, with what they must be.
Count = Annotated[int, positive]
Amount = Annotated[int | float | None, amount]
Positive = Annotated[float, above_zero]


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


def pf_jobs() -> Lognormal:
    """Durations of jobs in PF, section 6, of Google's day: 38% up to five minutes, 16% above a day; in seconds."""
    return through((300.0, 0.38), (86_400.0, 0.84))
