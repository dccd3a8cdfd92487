"""Random draws with an explicit generator, and validation of the numeric options of sources.

The check of an option is part of its type, `users: Annotated[int, positive]`, so that a name is validated before any
file is read; the function that takes the option calls the same check.

Demands have a joint distribution given by a small table. Each column is 0 with some probability, and otherwise has the
measured quantiles, interpolated on a logarithmic scale since demands span orders of magnitude. Columns are joined by a
Gaussian copula, whose correlations are chosen such that the values drawn have the measured rank correlations (Spearman,
with mean ranks of ties). Source: M. Cario, B. Nelson, "Modeling and generating random vectors with arbitrary marginal
distributions and correlation matrix" (NORTA), 1997.

Durations of tasks are right-censored: a task that is still running at the end of the trace has only a lower bound, and
long tasks are censored more often. Excluding or truncating them would bias durations downwards. A lognormal
distribution is therefore fitted by censored maximum likelihood, and unknown durations are drawn from it, conditional on
exceeding the observed part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from ..base import shipped
from ..base.errors import DataError
from ..base.libraries import special, stats
from ..model import _validate
from ..model._arrays import Array, Index, Mask

PROBABILITY = np.array([0, 0.01, *np.arange(0.05, 0.96, 0.05), 0.99, 1]).round(2)


@dataclass(frozen=True, eq=False)
class Marginals:
    """Marginal distributions and dependence of demands.

    Attributes
    ----------
    columns : tuple of str
    zero : Array
        Probability of 0, (columns,).
    quantiles : Array
        Quantiles of positive values at `PROBABILITY`, (columns, probabilities).
    rank_correlation, normal_correlation : Array
        `rank_correlation` has the measured rank correlations, `normal_correlation` the correlations of the copula, both
        (columns, columns).
    """

    columns: tuple[str, ...]
    zero: Array
    quantiles: Array
    rank_correlation: Array
    normal_correlation: Array

    @classmethod
    def one(cls, column: str, quantiles: Array | list[float]) -> Marginals:
        """Distribution of a single positive column with the given quantiles at `PROBABILITY`."""
        return cls((column,), np.zeros(1), np.array([quantiles], dtype=float), np.eye(1), np.eye(1))

    def draw(self, rng: np.random.Generator, count: int, demands: int) -> Array:
        """Draw rows, (count, columns), each with a positive value in at least one of the first `demands` columns."""
        rows = np.zeros((0, len(self.columns)))
        while len(rows) < count:
            more = self.values(rng.standard_normal((count, len(self.columns))))
            rows = np.vstack([rows, more[more[:, :demands].any(axis=1)]])
        return rows[:count]

    def values(self, normal: Array) -> Array:
        """Transform independent standard normals to values of the joint distribution, both (rows, columns)."""
        squares, spread = np.linalg.eigh(self.normal_correlation)
        # Correlations are fitted by pairs, so that the matrix may be slightly indefinite.
        root = spread * np.sqrt(np.maximum(squares, 0))
        root /= np.linalg.norm(root, axis=1, keepdims=True)
        uniform = special.ndtr(normal @ root.T)
        return np.column_stack([self.value(k, uniform[:, k]) for k in range(len(self.columns))])

    def value(self, k: int, uniform: Array) -> Array:
        """Inverse distribution function of column k, at probabilities `uniform` in [0, 1], (rows,)."""
        zero = self.zero[k]
        above = (uniform - zero) / (1 - zero) if zero < 1 else uniform
        drawn = np.exp(np.interp(above, PROBABILITY, np.log(self.quantiles[k])))
        return np.where(uniform < zero, 0.0, drawn)


def measured(name: str) -> tuple[Marginals, dict[str, Any]]:
    """Read `data/<name>.json`, and return the marginals and a table of the other entries of the file."""
    table = shipped.content(__package__, f"data/{name}.json")
    columns = table.pop("columns")
    rows = {key: np.array(table.pop(key), dtype=float) for key in ("zero", "quantiles", "rank_correlation")}
    return Marginals(tuple(columns), **rows, normal_correlation=np.array(table.pop("normal_correlation"))), table


def choose(count: int, wanted: int | float | None, rng: np.random.Generator | None, what: str) -> Index:
    """Sample indices without replacement, in ascending order.

    Parameters
    ----------
    count : int
        Size of the population.
    wanted : int, float or None
        Number of elements, fraction in (0, 1] of the population (rounded, at least one element), or None for all.
    rng : Generator or None
        May be None if all are wanted.
    what : str
        Name of the elements in errors.

    Raises
    ------
    DataError
        `wanted` is neither an integer >= 1 nor a fraction in (0, 1], or exceeds the population, or `rng` is missing.
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


def eligible(kinds: Sequence[object], users: int, density: float, rng: np.random.Generator | None) -> Mask | None:
    """Draw the eligible servers of each user: all of one random kind, and those of each other kind with a probability.

    Returns a mask (users, servers), or None if all servers are eligible because `density` is 1.

    Parameters
    ----------
    kinds : sequence
        Kind of every server.
    users : int
        Number of users.
    density : float
        Probability in (0, 1] of each other kind. If it is 1, nothing is drawn.
    rng : Generator or None

    Raises
    ------
    DataError
        The generator is missing, or `density` is not in (0, 1].
    """
    probability(density, "density")
    if density == 1:
        return None
    rng = needed(rng, "draw which servers users may use")
    which = list(dict.fromkeys(kinds))
    may = rng.random((users, len(which))) < density
    may[np.arange(users), rng.integers(len(which), size=users)] = True
    return np.asarray(may[:, [which.index(kind) for kind in kinds]])


def placed(density: float, by: str) -> str:
    """Description of placement constraints for the source of a snapshot; empty if `density` is 1."""
    return f"; each user on one {by} and every other with probability {density:g}" if density < 1 else ""


def needed(rng: np.random.Generator | None, purpose: str) -> np.random.Generator:
    """Return `rng`; if `rng` is None, raise a `DataError` that states the purpose of the generator."""
    if rng is None:
        raise DataError(f"a random generator is needed to {purpose}; pass rng=numpy.random.default_rng(seed)")
    return rng


#: Check for an integer >= 1.
positive = _validate.whole


def amount(wanted: int | float, what: str) -> None:
    """Check for an integer >= 1, or a fraction in (0, 1]."""
    if isinstance(wanted, float):
        probability(wanted, what)
    else:
        positive(wanted, what)


def probability(value: float, what: str) -> None:
    """Check for a number in (0, 1]."""
    _validate.number(value, what, "above 0 and at most 1", lambda part: 0 < part <= 1)


def not_negative(value: float, what: str) -> None:
    """Check for a finite number >= 0."""
    _validate.number(value, what, "a finite number >= 0", lambda number: 0 <= number < math.inf)


def above_zero(value: float, what: str) -> None:
    """Check for a finite number > 0."""
    _validate.number(value, what, "a finite number > 0", lambda number: 0 < number < math.inf)


def finite(value: float, what: str) -> None:
    """Check for a finite number."""
    _validate.number(value, what, "a finite number", math.isfinite)


#: Types of options with their checks.
Count = Annotated[int, positive]
Amount = Annotated[int | float | None, amount]
Positive = Annotated[float, above_zero]
Probability = Annotated[float, probability]


@dataclass(frozen=True)
class Lognormal:
    """Lognormal distribution of durations in seconds: `median`, and standard deviation `sd` of the logarithm."""

    median: float
    sd: float

    def draw(self, rng: np.random.Generator, longer_than: Array) -> Array:
        """Draw durations conditional on exceeding the given durations (0: unconditional)."""
        with np.errstate(divide="ignore"):
            least = special.ndtr((np.log(longer_than) - np.log(self.median)) / self.sd)
        uniform = least + (1 - least) * rng.random(len(least))
        # Far in the tail rounding may yield values below the condition.
        drawn = self.median * np.exp(self.sd * special.ndtri(np.minimum(uniform, 1 - 1e-12)))
        return np.asarray(np.maximum(drawn, longer_than))


def fitted(seconds: Array, ended: Mask) -> Lognormal:
    """Fit a lognormal distribution by maximum likelihood to durations (`ended`) and lower bounds (otherwise)."""
    return _fitted(np.asarray(seconds, dtype=float).tobytes(), np.asarray(ended, dtype=bool).tobytes())


@lru_cache(maxsize=4)
def _fitted(durations: bytes, over: bytes) -> Lognormal:
    """Fit a distribution once for all draws from a trace, since a fit takes seconds."""
    seconds, ended = np.frombuffer(durations), np.frombuffer(over, dtype=bool)
    data = stats.CensoredData(uncensored=seconds[ended], right=seconds[~ended])
    sd, _, median = stats.lognorm.fit(data, floc=0)
    return Lognormal(float(median), float(sd))


def through(first: tuple[float, float], second: tuple[float, float]) -> Lognormal:
    """Lognormal distribution with two given quantiles, each a pair of seconds and the fraction of shorter durations."""
    (short, low), (long, high) = first, second
    sd = np.log(long / short) / (special.ndtri(high) - special.ndtri(low))
    return Lognormal(float(short * np.exp(-sd * special.ndtri(low))), float(sd))


def pf_jobs() -> Lognormal:
    """Distribution of the durations of Google's jobs in PF, section 6: 38% up to five minutes, 16% above a day."""
    return through((300.0, 0.38), (86_400.0, 0.84))
