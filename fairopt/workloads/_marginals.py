"""A joint distribution of demands in a small table: quantiles per column, and how the columns go together.

Each column is 0 with some probability and otherwise follows its measured quantiles, joined by straight lines on
a logarithmic scale (demands span orders of magnitude). The columns are tied by a Gaussian copula, whose normal
correlations are those for which the drawn values have the measured rank correlations (Spearman's, equal values
sharing their mean rank). Source of the method: M. Cario, B. Nelson, "Modeling and generating random vectors
with arbitrary marginal distributions and correlation matrix" (NORTA), 1997.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import special, stats

Array = NDArray[np.float64]

PROBABILITY = np.array([0, 0.01, *np.arange(0.05, 0.96, 0.05), 0.99, 1]).round(2)
DIGITS = 6


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


def measure(columns: tuple[str, ...], values: Array, rng: np.random.Generator) -> Marginals:
    """The marginals of `values` (rows, columns), each >= 0; `rng` serves the fit of the copula."""
    zero = (values == 0).mean(axis=0)
    quantiles = np.array([np.quantile(column[column > 0], PROBABILITY) for column in values.T])
    measured = Marginals(columns, zero, quantiles, rank_correlations(values), np.eye(len(columns)))
    # Of so many draws the error of a rank correlation is about 0.005.
    first, second = rng.standard_normal((2, 40_000))
    normal = np.eye(len(columns))
    for a in range(len(columns)):
        ranks = stats.rankdata(measured.value(a, special.ndtr(first)))
        for b in range(a):
            normal[a, b] = normal[b, a] = _fit(measured, b, measured.rank_correlation[a, b], ranks, first, second)
    return Marginals(columns, zero, quantiles, measured.rank_correlation, normal)


def rank_correlations(values: Array) -> Array:
    """Spearman's, (columns, columns); values that differ by rounding alone count as equal."""
    return np.asarray(np.corrcoef(stats.rankdata(values.astype(np.float32), axis=0), rowvar=False))


def _fit(table: Marginals, column: int, wanted: float, ranks: Array, first: Array, second: Array) -> float:
    """The normal correlation that yields the wanted rank correlation, by bisection: one grows with the other."""
    low, high = -1.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        other = table.value(column, special.ndtr(middle * first + np.sqrt(1 - middle**2) * second))
        if np.corrcoef(ranks, stats.rankdata(other))[0, 1] < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def load(name: str) -> tuple[Marginals, dict[str, Any]]:
    """The marginals of `data/<name>.json` and the other entries of the file."""
    table = json.loads(files(__package__).joinpath("data", f"{name}.json").read_text(encoding="utf-8"))
    columns = table.pop("columns")
    rows = {key: np.array(table.pop(key), dtype=float) for key in ("zero", "quantiles", "rank_correlation")}
    return Marginals(tuple(columns), **rows, normal_correlation=np.array(table.pop("normal_correlation"))), table


def dumps(marginals: Marginals, about: str, others: Mapping[str, Any]) -> str:
    """The text of a table, six digits per number and one entry per line."""
    entries = {
        "about": about,
        "columns": marginals.columns,
        "probability": PROBABILITY,
        "zero": marginals.zero,
        "quantiles": marginals.quantiles,
        "rank_correlation": marginals.rank_correlation,
        "normal_correlation": marginals.normal_correlation,
        **others,
    }
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {_text(value)}" for key, value in entries.items()) + "\n}\n"


def _text(value: Any) -> str:
    nested = isinstance(value, list | np.ndarray) and len(value) and isinstance(value[0], list | np.ndarray)
    if nested:
        return "[\n" + ",\n".join(f"  {_text(row)}" for row in value) + "\n ]"
    if isinstance(value, list | np.ndarray):
        value = [float(f"{x:.{DIGITS}g}") if isinstance(x, float) else x for x in value]
    return json.dumps(value)
