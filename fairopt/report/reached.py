"""How long games take to each residual: medians over draws, of which a game that never gets there is one that is late.

A mean would have to leave those games out; the median and its interval count them.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd, stats
from ..study.intervals import check_level
from .stored import StoredCells

#: What tells games apart.
_BY = ("cluster", "mechanism", "alpha", "order", "damping", "tol")


def reached(found: StoredCells) -> pd.DataFrame:
    """A row for every way of playing and every residual: how many draws `n`, how many games got `there`, and medians.

    `rounds`, `messages` and `seconds` are medians over all draws of when the residual is at or below `level` for good,
    infinite where half of the games never are; `rounds low` and `rounds high` are the ends of the median's 95%
    interval, and so are those of seconds. Games that were stopped at a tolerance above a level say nothing of it.
    """
    games = found.long("reached")
    games = games[games["level"] >= games["tol"] * (1 - 1e-9)]
    by = [*_BY, "level"]
    if games.empty:
        return games[by]
    games = games.assign(there=games["rounds"].notna())
    counted = games.groupby(by, sort=False, dropna=False).agg(n=("key", "size"), there=("there", "sum")).reset_index()
    for column in ("rounds", "messages", "seconds"):
        late = games.assign(**{column: games[column].astype(float).fillna(np.inf)})
        of = median_interval(late, by, column)
        names = {"median": column, "low": f"{column} low", "high": f"{column} high"}
        kept = [*by, *(names if column != "messages" else ["median"])]  # messages are rounds times the same number
        counted = counted.merge(of[kept].rename(columns=names), on=by, how="left")
    return counted.drop(columns=[name for name in ("damping", "tol") if counted[name].nunique(dropna=False) < 2])


def median_interval(frame: pd.DataFrame, by: Iterable[str], values: str, level: float = 0.95) -> pd.DataFrame:
    """Median of a column by group, with the interval between order statistics that covers it whatever the distribution.

    Of n sorted values the k-th and the (n + 1 - k)-th, with the largest k for which `2 P(B < k) <= 1 - level`, B
    binomial (n, 1/2): of 20 the 6th and the 15th. Values may be infinite; none may be missing.

    Parameters
    ----------
    frame : a row per observation
    by : the columns that make a group
    values : the column
    level : least probability that the interval covers the median, in (0, 1)

    Returns
    -------
    One row per group, in order of appearance: the group, `median`, `low`, `high` (NaN below 6 values, at 95%), `n`.

    Raises
    ------
    KeyError
        The frame has no such column.
    DataError
        The level is not between 0 and 1.

    Source: W. R. Thompson, "On confidence ranges for the median", Annals of Mathematical Statistics 7 (1936).
    """
    check_level(level)
    keys = list(by)
    rows = []
    for group, of in frame.groupby(keys, sort=False, dropna=False)[values]:
        x = np.sort(of.to_numpy(dtype=float))
        k = int(stats.binom.ppf((1 - level) / 2, len(x), 0.5))  # the least with P(B <= k) >= (1 - level) / 2
        low, high = (x[k - 1], x[len(x) - k]) if k else (np.nan, np.nan)
        rows.append((*group, _middle(x), low, high, len(x)))
    return pd.DataFrame(rows, columns=[*keys, "median", "low", "high", "n"])


def _middle(x: NDArray[np.float64]) -> float:
    """The median of sorted values, of which some are infinite."""
    a, b = x[(len(x) - 1) // 2], x[len(x) // 2]
    return float(a if a == b else (a + b) / 2)
