"""Means over repetitions with their confidence intervals."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .._libraries import pd, stats
from ..errors import DataError


def check_level(level: float) -> None:
    """Raise DataError for a level of confidence that is none."""
    if not 0 < level < 1:
        raise DataError(f"level is {level}; it must be between 0 and 1, such as 0.95")


def interval(frame: pd.DataFrame, by: Iterable[str], values: str, level: float = 0.95) -> pd.DataFrame:
    """Mean of a column by group, with Student's confidence interval: `mean +- t s / sqrt(n)`.

    Parameters
    ----------
    frame : a row per observation; rows whose value is missing are left out
    by : the columns that make a group
    values : the column
    level : of confidence, in (0, 1)

    Returns
    -------
    One row per group, in order of appearance: the group, `mean`, `half` (of the interval; NaN for n = 1, where nothing
    is known of the spread), `n`.

    Raises
    ------
    KeyError
        The frame has no such column.
    DataError
        The level is not between 0 and 1.

    Source: Student, "The probable error of a mean", Biometrika 6 (1908); t has n - 1 degrees of freedom.
    """
    check_level(level)
    keys = list(by)
    grouped = frame.dropna(subset=[values]).groupby(keys, sort=False, dropna=False)[values]
    found = grouped.agg(mean="mean", s="std", n="size").reset_index()
    n = found["n"].to_numpy()
    several = n > 1
    t = stats.t.ppf(0.5 + level / 2, np.where(several, n - 1, 1))
    found["half"] = np.where(several, t * found["s"] / np.sqrt(n), np.nan)
    return found[[*keys, "mean", "half", "n"]]
