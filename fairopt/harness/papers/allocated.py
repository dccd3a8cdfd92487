"""Statistics of stored allocations, on which papers make statements: a value for each draw and combination of options.

The conventions are those of `simulated`. Utilization is that of all servers, in per cent; resources of which less than
a tenth is used, averaged over the cells of a combination of options, decide nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...base.libraries import pd

#: Mean use from which a resource counts.
_COUNTS = 0.1
#: Measures of fairness of an allocation, among the columns of cells.
_FAIRNESS = ("jain", "min_share")


def _use(found: Any, axes: Sequence[str], columns: str = "name", of: str = "all") -> pd.DataFrame:
    """Utilization in per cent by options, repetition and resource (and class), with a column for each mechanism."""
    use = found.long("use")
    whole = use[use["class"] == "all"]
    used = whole.groupby([*axes, "resource"], sort=False)["utilization"].mean()
    use = whole if of == "all" else use[use["class"] != "all"]
    use = use.merge(used[used >= _COUNTS].rename("used").reset_index(), on=[*axes, "resource"])
    by = [*axes, "repetition", "resource", *(["class"] if of != "all" else [])]
    return 100 * use.pivot_table(index=by, columns=columns, values="utilization", sort=False)


def _named(values: pd.Series) -> pd.DataFrame:
    return values.rename("value").reset_index()


def _drawn(values: pd.Series, axes: Sequence[str]) -> pd.DataFrame:
    """Mean over resources (and classes), by options and repetition."""
    return _named(values.groupby([*axes, "repetition"], sort=False).mean())


def _extreme(values: pd.DataFrame, axes: Sequence[str], size: str = "max") -> pd.DataFrame:
    """Values by repetition of the resource and column whose mean over draws is the largest, or largest in size."""
    long = values.stack().rename("value").reset_index()
    long["what"] = long["resource"] + " " + long[long.columns[-2]].astype(str)
    means = long.groupby([*axes, "what"], sort=False)["value"].mean().reset_index()
    means["size"] = means["value"].abs() if size == "abs" else means["value"]
    keys = [*axes] or (lambda _: True)
    top = means.loc[means.groupby(keys, sort=False)["size"].idxmax(), [*axes, "what"]]
    return long.merge(top, on=[*axes, "what"])[[*axes, "repetition", "value"]]


def used_more(found: Any, axes: Sequence[str], better: str, *than: str) -> pd.DataFrame:
    """Utilization less the largest under other mechanisms, averaged over resources, in points."""
    wide = _use(found, axes)
    return _drawn(wide[better] - wide[[*than]].max(axis=1), axes)


def largest_gain(found: Any, axes: Sequence[str], better: str, *than: str) -> pd.DataFrame:
    """Gain in utilization in per cent of the other's use, of the resource and mechanism where it is largest."""
    wide = _use(found, axes)
    return _extreme(pd.DataFrame({other: 100 * (wide[better] / wide[other] - 1) for other in than}), axes)


def use_apart(found: Any, axes: Sequence[str], one: str, other: str) -> pd.DataFrame:
    """Difference in utilization between two mechanisms, of the resource where it is largest, in points."""
    wide = _use(found, axes)
    return _extreme(pd.DataFrame({other: wide[one] - wide[other]}), axes, "abs")


def skewed_classes_gain(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Gain on the two most skewed of the four largest classes of servers, less that on the other two, in points.

    A class is the more skewed, the more its ratio of the two resources differs from that of all servers.
    """
    use = found.long("use")
    use = use[use["class"] != "all"]
    total = use.groupby(["class", "resource"], sort=False)["capacity"].sum().unstack()
    largest = total.sum(axis=1).nlargest(4).index
    first, second = total.columns[:2]
    skew = np.log((total[first] / total[second]) / (total[first].sum() / total[second].sum())).abs()
    last = skew[largest].nlargest(2).index
    gain = _use(found, axes, of="classes")
    gain = (gain[better] - gain[than]).rename("gain").reset_index()
    gain = gain[gain["class"].isin(largest)].assign(last=gain["class"].isin(last))
    wide = gain.pivot_table(index=[*axes, "repetition"], columns="last", values="gain", sort=False).dropna()
    return _named(wide[True] - wide[False])


def _alphas(found: Any, axes: Sequence[str]) -> tuple[pd.DataFrame, list[float]]:
    """Utilization with a column for each alpha, and the alphas in order."""
    wide = _use(found, axes, "alpha")
    return wide, sorted(wide.columns)


def use_falls(found: Any, axes: Sequence[str]) -> pd.DataFrame:
    """Decrease of utilization from each alpha to the next, the column `range`, averaged over resources, in points."""
    wide, alphas = _alphas(found, axes)
    parts = [
        _drawn(wide[low] - wide[high], axes).assign(range=f"{low:g} to {high:g}") for low, high in pairwise(alphas)
    ]
    return pd.concat(parts, ignore_index=True)


def largest_fall(found: Any, axes: Sequence[str]) -> pd.DataFrame:
    """Decrease of utilization from alpha = 1 to infinity, of the resource where it is largest, in points."""
    wide, _ = _alphas(found, axes)
    return _extreme(pd.DataFrame({"fall": wide[1.0] - wide[np.inf]}), axes)


def least_over_infinity(found: Any, axes: Sequence[str]) -> pd.DataFrame:
    """Least utilization over finite alphas from 1 on, less that of PS-DSF, averaged over resources, in points."""
    wide, alphas = _alphas(found, axes)
    finite = [alpha for alpha in alphas if 1 <= alpha < np.inf]
    return _drawn(wide[finite].min(axis=1) - wide[np.inf], axes)


def fairness_gained(found: Any, axes: Sequence[str]) -> pd.DataFrame:
    """Increase from alpha = 1 to infinity of measures of fairness, the column `fairness`, in points."""
    cells = found.cells
    parts = []
    for measure in _FAIRNESS:
        wide = cells.pivot_table(index=[*axes, "repetition"], columns="alpha", values=measure, sort=False)
        parts.append(_named(100 * (wide[np.inf] - wide[1.0])).assign(fairness=measure))
    return pd.concat(parts, ignore_index=True)


def seconds_needed(found: Any, axes: Sequence[str], cluster: str) -> pd.DataFrame:
    """Seconds until best responses reach a residual, the column `level`, the largest over alphas; infinite if never.

    By the column `servers`, they compute in turn on one machine, or at once, each on its own: then a round takes the
    mean of a server.
    """
    games = found.long("reached")
    games = games[(games["cluster"] == cluster) & games["level"].isin([1e-2, 1e-3])]
    games = games.assign(value=games["seconds"].fillna(np.inf), level=games["level"].map("{:g}".format))
    by = [*axes, "level", "repetition"]
    in_turn = games.groupby([*by, "servers"], sort=False)["value"].max().reset_index()
    at_once = in_turn.assign(value=in_turn["value"] / in_turn["servers"])
    return pd.concat([in_turn.assign(servers="in turn"), at_once.assign(servers="at once")], ignore_index=True)


def _times(found: Any, axes: Sequence[str], columns: str) -> pd.DataFrame:
    """Seconds and rounds, the column `measure`, with a column for each value of another one."""
    cells = found.cells
    by = [one for one in (*axes, "engine", "cluster", "alpha", "repetition") if one != columns and one in cells]
    long = cells.melt([*dict.fromkeys([*by, columns])], ["seconds", "rounds"], "measure").dropna(subset="value")
    return long.pivot_table(index=[*dict.fromkeys([*by, "measure"])], columns=columns, values="value", sort=False)


def time_of_infinity(found: Any, axes: Sequence[str]) -> pd.DataFrame:
    """Seconds or rounds of PS-DSF in per cent of the fewest over finite alphas."""
    wide = _times(found, axes, "alpha")
    finite = [alpha for alpha in wide.columns if alpha < np.inf]
    return _named(100 * wide[np.inf] / wide[finite].min(axis=1)).dropna(subset="value")


def time_doubled(found: Any, axes: Sequence[str], one: str, other: str) -> pd.DataFrame:
    """Ratio of seconds, or rounds, of PS-DSF on two clusters."""
    wide = _times(found, axes, "cluster").xs(np.inf, level="alpha")
    return _named(wide[other] / wide[one]).dropna(subset="value")
