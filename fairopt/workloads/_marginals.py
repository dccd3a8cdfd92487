"""A joint distribution of demands in a small table: quantiles per column, and how the columns go together.

Each column is 0 with some probability and otherwise follows its measured quantiles, joined by straight lines on
a logarithmic scale (demands span orders of magnitude). The columns are tied by a Gaussian copula, whose normal
correlations are those for which the drawn values have the measured rank correlations (Spearman's, equal values
sharing their mean rank). Source of the method: M. Cario, B. Nelson, "Modeling and generating random vectors
with arbitrary marginal distributions and correlation matrix" (NORTA), 1997.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from .._libraries import special
from ..model._arrays import Array

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


def load(name: str) -> tuple[Marginals, dict[str, Any]]:
    """The marginals of `data/<name>.json` and the other entries of the file."""
    table = json.loads(files(__package__).joinpath("data", f"{name}.json").read_text(encoding="utf-8"))
    columns = table.pop("columns")
    rows = {key: np.array(table.pop(key), dtype=float) for key in ("zero", "quantiles", "rank_correlation")}
    return Marginals(tuple(columns), **rows, normal_correlation=np.array(table.pop("normal_correlation"))), table
