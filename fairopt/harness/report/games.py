"""Measures of games from stored cells: rounds to each residual, linear rates, paired differences, and power laws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...base.libraries import pd, stats
from ..solve import power_of_ten

_REACHED = ("rounds", "messages", "seconds", "seconds per server")


def with_games(cells: pd.DataFrame, games: pd.DataFrame) -> pd.DataFrame:
    r"""Add columns `rounds to 1e-3`, ..., `linear_factor` and `linear_fit`, from the long table `reached` of games.

    Rounds, messages and seconds, in total and per server, are counted until the residual stays at or below a level of
    at least the tolerance; they are infinite if the residual never does. The linear factor q is the factor by which a
    round reduces the residual. It is fitted, with a constant a, by least squares to the rounds k until the residual
    stays at or below :math:`\epsilon`, for at least three levels; `linear_fit` is R^2 of the fit.

    .. math:: k(\epsilon) = a + \frac{\log \epsilon}{\log q}
    """
    games = games[games["level"] >= games["tol"] * (1 - 1e-9)]
    games = games.assign(**{"seconds per server": games["seconds"] / games["servers"]})
    late = games.fillna(dict.fromkeys(_REACHED, np.inf)).astype(dict.fromkeys(_REACHED, float))
    wide = late.pivot(index="key", columns="level", values=list(_REACHED))
    wide.columns = [f"{what} to {power_of_ten(level)}" for what, level in wide.columns]
    there = games.dropna(subset=["rounds"])
    x, y, key = np.log(there["level"]), there["rounds"].astype(float), there["key"]
    sums = pd.DataFrame({"n": 1.0, "x": x, "y": y, "xx": x * x, "xy": x * y, "yy": y * y}).groupby(key).sum()
    xx, yy = (sums["n"] * sums[f"{name}{name}"] - sums[name] ** 2 for name in "xy")
    xy = sums["n"] * sums["xy"] - sums["x"] * sums["y"]
    known = (sums["n"] > 2) & (xy < 0)
    rates = pd.DataFrame({"linear_factor": np.exp(xx / xy), "linear_fit": xy**2 / (xx * yy)})[known]
    return cells.join(wide, on="key").join(rates, on="key")


def paired(cells: pd.DataFrame, values: Sequence[str], less: Mapping[str, Any], same: Sequence[str]) -> pd.DataFrame:
    """Replace `values` by differences from the reference cell, which agrees in `same` and has the values of `less`.

    Reference cells are omitted. If both values are infinite, since both games do not converge, the difference is 0.

    Raises
    ------
    DataError
        There is no reference cell, or no other cell agrees with a reference cell in the columns `same`.
    """
    base = np.logical_and.reduce([cells[name] == value for name, value in less.items()])
    same = [name for name in same if name not in less]
    if not base.any():
        raise DataError(f"no cell has {', '.join(f'{name} = {value}' for name, value in less.items())}")
    both = cells[~base].merge(cells[base][[*same, *values]], on=same, suffixes=("", " less"))
    if both.empty:
        raise DataError(f"no cells are alike but for {', '.join(less)}")
    for value in values:
        with np.errstate(invalid="ignore"):
            both[value] = np.where(both[value] == both[f"{value} less"], 0.0, both[value] - both[f"{value} less"])
    return both.drop(columns=[f"{value} less" for value in values])


def power_law(cells: pd.DataFrame, by: Sequence[str], of: str, x: Sequence[str], level: float) -> pd.DataFrame:
    r"""Exponents of a power law by group, by least squares of logarithms, with half-widths `+-` of intervals.

    .. math:: \log y = a + \sum_j b_j \log x_j

    `fit` is R^2, `n` the number of cells, and `there` the number of finite values y > 0, to which the law is fitted.
    Exponents and `fit` are missing in groups with too few values, or with linearly dependent columns `x`.
    """
    rows = []
    for group, every in cells.groupby(list(by), sort=False, dropna=False):
        some = every[np.isfinite(every[of]) & (every[of] > 0)]
        matrix = np.column_stack([np.ones(len(some)), np.log(some[list(x)].astype(float))])
        y, free = np.log(some[of].to_numpy(dtype=float)), len(some) - matrix.shape[1]
        row: dict[str, Any] = dict(zip(by, group, strict=True)) | {"n": len(every), "there": len(some)}
        if free > 0 and np.linalg.matrix_rank(matrix) == matrix.shape[1]:
            found = np.linalg.lstsq(matrix, y)[0]
            error = ((y - matrix @ found) ** 2).sum()
            half = stats.t.ppf(0.5 + level / 2, free) * np.sqrt(
                np.diag(np.linalg.inv(matrix.T @ matrix)) * error / free
            )
            for name, exponent, part in zip(x, found[1:], half[1:], strict=True):
                row |= {f"exponent of {name}": exponent, f"+- exponent of {name}": part}
            row["fit"] = 1 - error / ((y - y.mean()) ** 2).sum()
        rows.append(row)
    return pd.DataFrame(rows)
