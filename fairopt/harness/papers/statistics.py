"""Statistics in papers' statements, computed from stored cells: a value for each draw and combination of options.

Every public function takes stored cells (`fairopt.report.StoredCells`, with a column for each option in `axes`), the
names `axes`, and parameters that the data of a paper state; the function returns a frame with `axes`, `repetition` and
`value`. If a statement has several readings, a further column distinguishes them. Policies are given by their text with
parameters, or by their name alone, such as `slots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...base.libraries import pd
from ...base.registry import parameters
from ...scheduling import policies

#: Fraction of jobs that a trimmed mean omits at each end.
_TRIMMED = 0.05
#: Smallest mean utilization at which a resource counts in comparisons; a resource that is hardly used is no evidence.
_COUNTS = 0.1
#: Bounds of bins of jobs by number of tasks: for DRF figure 14, and for DRFH figure 6, which does not state its bins.
SIZES = {"DRF": (1, 2, 11, 51, np.inf), "DRFH": (1, 2, 11, 101, 501, np.inf)}

#: Comparisons of a value a with a value b, in per cent or in points, except `times`, which is a ratio.
CONTRASTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "gain": lambda a, b: 100 * (a / b - 1),
    "gain of numbers": lambda a, b: 100 * (a - b) / b.clip(lower=1),
    "reduction": lambda a, b: 100 * (1 - a / b),
    "more": lambda a, b: 100 * (a - b),
    "fall": lambda a, b: 100 * (b - a),
    "ratio": lambda a, b: 100 * a / b,
    "times": lambda a, b: a / b,
    "at least as much": lambda a, b: 100.0 * (a >= b),
    "above": lambda a, b: 100.0 * (a > b),
    "below": lambda a, b: 100.0 * (a < b),
    "whole alone": lambda a, b: 100.0 * ((a >= 1) & (b < 1)),
    "decrease": lambda a, b: (100 * (b - a)).where(a < b),
}


def compared(
    found: Any, axes: Sequence[str], *, of: str, value: str, where: Mapping[str, Any] | None = None,
    by: Sequence[str] = (), how: str = "mean", across: str = "", better: Any = None, than: Any = None,
    contrast: Mapping[str, str] | str = "gain", others: str = "min", over: str = "mean",
) -> pd.DataFrame:  # fmt: skip
    """Values of a table, or comparisons of values between policies, mechanisms, alphas or clusters.

    Parameters
    ----------
    of, value : str
        Name of a long table, or `cells`, and the column of that table.
    where : mapping, optional
        Columns, each with the values of the selected rows: one or several values, or the ends of a range of times.
    by, how
        Rows of a draw that are equal in the columns `by` are aggregated by `how`.
    across : str
        Column in which compared rows differ; '' makes no comparison, and values are fractions, returned in per cent.
    better, than
        `better` is the value of `across` that is compared, `than` are the values that it is compared with, by default
        all others. Without `better` each value is compared with the next smaller value, and the column `range` names
        both.
    contrast : str or mapping
        A key of `CONTRASTS`, or several keys by the name of the reading, which is in the column `reading`.
    others : str
        Aggregate over the values that `better` is compared with: `min` or `max`.
    over : str
        Aggregate over `by`. `apart` is the difference between the largest and the smallest value; `largest` selects the
        row and column whose mean over draws is largest, `largest size` that whose mean is largest in absolute value; ''
        keeps all rows.
    """
    rows, draw = _rows(found, axes, of, where or {}), [*axes, "repetition"]
    if across == "number":  # number of slots of a policy
        rows = rows.assign(number=rows["policy"].map(lambda text: getattr(policies.one(text), "n", np.nan)))
    if not across:
        return _reduced(100 * rows.groupby([*draw, *by], sort=False)[value].agg(how), draw, over)
    wide = rows.pivot_table(value, [*draw, *by], across, aggfunc=how, sort=False, observed=True)
    pairs, parts = _pairs(wide, better, than), list[pd.DataFrame]()
    if not pairs:  # policies without any value have no column
        return pd.DataFrame(columns=[*draw, "value"])
    for reading, text in (contrast if isinstance(contrast, Mapping) else {"": contrast}).items():
        each = pd.DataFrame({label: CONTRASTS[text](wide[a], wide[b]).where(wide[a].notna() & wide[b].notna())
                             for label, (a, b) in pairs.items()}).rename_axis(columns="range")  # fmt: skip
        if over.startswith("largest"):
            made = _largest(each.stack(), axes, over)
        elif better is None:
            made = _reduced(pd.concat({one: each[one] for one in each}, names=["range"]), [*draw, "range"], over)
        else:
            made = _reduced(getattr(each, others)(axis=1, skipna=False), draw, over)
        parts.append(made.assign(reading=reading))
    return pd.concat(parts, ignore_index=True)


def several(
    found: Any, axes: Sequence[str], *, value: Sequence[str], named: str = "measure", **how: Any
) -> pd.DataFrame:
    """`compared` for several columns, with the name of each in the column `named`."""
    parts = [compared(found, axes, value=one, **how).assign(**{named: one}) for one in value]
    return pd.concat(parts, ignore_index=True)


def _rows(found: Any, axes: Sequence[str], of: str, where: Mapping[str, Any]) -> pd.DataFrame:
    """Rows of a table that `where` selects, with `done` and `kind` of jobs and the completed `part` of users' tasks.

    Of a table of utilizations only rows of all servers remain, for resources with a mean utilization of at least 10%.
    """
    rows = found.cells if of == "cells" else found.long(of)
    if of == "each_job":  # the first word of a user's name is the kind of its jobs
        rows = rows.assign(done=rows["response"].notna(), kind=rows["user"].str.partition(" ")[0])
    elif of == "each_user" and "tasks" in rows:
        rows = rows.assign(part=rows["tasks_done"] / rows["tasks"])
    elif "class" in rows:
        rows = rows[rows["class"] == "all"]
        rows = rows[rows.groupby([*axes, "resource"], sort=False)["utilization"].transform("mean") >= _COUNTS]
    for column, wanted in where.items():
        of_column = rows[column]
        rows = rows[of_column.between(*wanted) if column == "time" else of_column.isin(_like(of_column, wanted))]
    return rows


def _like(values: Iterable[Any], wanted: Any) -> list[Any]:
    """Values that are wanted; a text with parameters, or equal to no value, selects policies by name and parameters."""
    every = [*dict.fromkeys(values)]
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return [one for part in wanted for one in _like(every, part)]
    if (wanted in every and "(" not in str(wanted)) or not isinstance(wanted, str):
        return [one for one in every if one == wanted]
    name, _, inside = wanted.partition("(")
    given = parameters(wanted, inside[:-1])
    return [one for one in every if one.partition("(")[0] == name and
            all(getattr(policies.one(one), key) == value for key, value in given.items())]  # fmt: skip


def _pairs(wide: pd.DataFrame, better: Any, than: Any) -> dict[str, tuple[Any, Any]]:
    """Pairs of compared columns, by label."""
    if better is None:
        return {f"{low:g} to {high:g}": (high, low) for low, high in pairwise(sorted(wide))}
    first, rest = _like(wide, better)[:1], [*wide] if than is None else _like(wide, than)
    return {str(other): (one, other) for one in first for other in rest if other != one}


def _reduced(values: pd.Series, by: Sequence[str], over: str) -> pd.DataFrame:
    """Aggregate the values of each draw (`apart`: largest minus smallest value), or keep all values if `over` is ''."""
    groups = values.groupby(level=[*by], sort=False)
    if over == "apart":
        return _named(groups.max() - groups.min())
    return _named(groups.agg(over) if over else values)


def _named(values: pd.Series) -> pd.DataFrame:
    return values.rename("value").reset_index().dropna(subset="value")


def _largest(each: pd.Series, axes: Sequence[str], over: str) -> pd.DataFrame:
    """Values of the row and column whose mean over draws, or the absolute value of the mean, is largest."""
    kind = [name for name in each.index.names if name != "repetition"]
    means = each.groupby(level=kind, sort=False).mean()
    sizes = means.abs() if over == "largest size" else means
    top = sizes.groupby(level=[*axes], sort=False).idxmax() if axes else [sizes.idxmax()]
    return _named(each[each.index.droplevel("repetition").isin([*top])])


def _two(table: pd.DataFrame, better: str, than: str) -> list[pd.Series]:
    """Columns of a table for two policies; of several policies that match a text, the first is taken."""
    return [table[_like(table, one)[0]] for one in (better, than)]


def instants_above(
    found: Any, axes: Sequence[str], better: str, than: str, resources: Sequence[str], busy: bool = False
) -> pd.DataFrame:
    """Fraction of instants at which a policy uses at least as much of each resource as another policy, in per cent.

    With `busy`, the fraction is relative to the instants at which tasks wait under both policies.
    """
    times = found.long("timeline")
    by = [*axes, "repetition", "time", "what"]
    first, second = _two(times[times["time"] > 0].pivot_table("value", by, "policy", sort=False), better, than)
    above = (first >= second * (1 - 1e-9)).unstack()[[f"use_{one}" for one in resources]].all(axis=1)
    if busy:
        both_positive = ((first > 0) & (second > 0)).unstack()
        above = above[both_positive["waiting"]]
    return _reduced(100.0 * above, by[:-2], "mean")


def sooner(
    found: Any, axes: Sequence[str], better: str, than: str, sizes: str, which: int | None = None
) -> pd.DataFrame:
    """Reduction of completion times relative to another policy, in per cent, by `statistic`, for the bin `which`.

    Without `which`, the rank correlation of reductions with bins of sizes: 1 if reductions increase from each bin to
    the next, -1 if they decrease.
    """
    gains = reductions(found, axes, better, than, sizes)
    if which is not None:
        return gains[gains["size"] == which].drop(columns="size")
    by_bin = gains.pivot_table("value", [*axes, "repetition", "statistic"], "size", sort=False).sort_index(axis=1)
    ranks, bins = by_bin.rank(axis=1), pd.Series(range(by_bin.shape[1]), by_bin.columns)
    return _named(ranks.T.corrwith(bins).where(ranks.std(axis=1) > 0, 0.0))


def reductions(found: Any, axes: Sequence[str], better: str, than: str, sizes: str) -> pd.DataFrame:
    """Reductions of completion times by bin of sizes and `statistic`, in per cent: of means, or of single jobs."""
    jobs, bins = found.long("each_job"), SIZES[sizes]
    size = pd.cut(jobs["tasks"], bins, right=False, labels=range(len(bins) - 1)).astype(int)
    by = [*axes, "repetition", "size"]
    both = jobs.assign(size=size).pivot_table("response", [*by, "job"], "policy", sort=False, observed=True)
    times = pd.concat(_two(both, better, than), axis=1, keys=["first", "second"]).dropna()
    each = (100 * (1 - times["first"] / times["second"])).groupby(level=by, observed=True)
    means = times.groupby(level=by, observed=True).mean()
    of = {
        "reduction of means": 100 * (1 - means["first"] / means["second"]),
        "median per job": each.median(),
        "trimmed mean per job": each.apply(_trimmed_mean),
    }
    return pd.concat([_named(value).assign(statistic=name) for name, value in of.items()], ignore_index=True)


def _trimmed_mean(values: pd.Series) -> float:
    ordered = np.sort(values.to_numpy(dtype=float))
    cut = int(_TRIMMED * len(ordered))
    return float(ordered[cut : len(ordered) - cut].mean())


def done_sooner(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Minimum over t, from 1 s to a day, of the fraction of jobs done within t under `better` minus that under `than`.

    The value is in points.
    """
    times = np.geomspace(1.0, 86400.0, 60)
    jobs = found.long("each_job").groupby([*axes, "repetition", "policy"], sort=False)["response"]
    done = jobs.apply(lambda of: (of.to_numpy(dtype=float)[:, None] <= times).mean(axis=0)).unstack()
    first, second = _two(done, better, than)
    return _named((100 * (first - second)).map(np.min))


#: Intervals of time in seconds in DRFH figure 4, each from 100 s after a user arrives or leaves to the next change.
_STEADY = ((100, 199), (300, 499), (600, 1079), (1180, 1500))


def beside_fluid(found: Any, axes: Sequence[str], policy: str, least: bool = False) -> pd.DataFrame:
    """Largest difference of dominant shares, in points, from shares under fluid DRFH, and between users at one time.

    Shares are means over the intervals `_STEADY`; the column `reading` is `fluid` or `equal`. With `least`, the
    smallest ratio of a user's share to its share under fluid DRFH is returned instead, in per cent, without this
    column. Fluid DRFH divides among jobs, of which each user has one.
    """
    shares, draw = found.long("shares"), [*axes, "repetition"]
    same, parts = [one for one in axes if one != "policy"], []  # fluid allocations are not random, hence not repeated
    exact = shares[shares["policy"] == "fluid:drfh"].assign(user=lambda t: t["user"].str.replace("job", "user"))
    mine = shares[shares["policy"].isin(_like(shares["policy"], policy))]
    for begin, end in _STEADY:
        steady = mine[mine["time"].between(begin, end)].groupby([*draw, "user"], sort=False)["share"].mean()
        before = exact[exact["time"] <= begin]  # fluid shares change at events only
        last = before[before["time"] == before.groupby("source")["time"].transform("max")]
        present = steady[steady > 0].rename("mine").reset_index()
        parts.append(present.merge(last[[*same, "user", "share"]], on=[*same, "user"]).assign(begin=begin))
    both = pd.concat(parts)
    of_draw = [both[one] for one in draw]
    if least:
        return _named((100 * both["mine"] / both["share"]).groupby(of_draw, sort=False).min())
    fluid = (100 * (both["mine"] - both["share"]).abs()).groupby(of_draw, sort=False).max()
    by_user = 100 * both.groupby([*draw, "begin", "user"], sort=False)["mine"].mean()
    equal = _reduced(by_user, [*draw, "begin"], "apart").groupby(draw, sort=False)["value"].max()
    return pd.concat([_named(fluid).assign(reading="fluid"), _named(equal).assign(reading="equal")], ignore_index=True)


def tasks_with(found: Any, axes: Sequence[str], heavy: str | None = None, slots: Sequence[int] = ()) -> pd.DataFrame:
    """Fraction of tasks that demand more of the resource `heavy`, `first` or `second`, than of the other, in per cent.

    Without `heavy` it is the fraction of tasks whose larger demand differs from a slot by more than a fifth, minimised
    over `slots[0]` to `slots[1]` slots on a server of mean size.
    """
    demands, draw = found.long("demands"), [*axes, "repetition"]
    both = demands[["first", "second"]]
    if heavy:
        chosen = [demands[heavy] > both.drop(columns=heavy).squeeze(axis=1)]
    else:
        chosen = [(both.max(axis=1) * number - 1).abs() > 0.2 for number in range(slots[0], slots[1] + 1)]
    tasks = pd.DataFrame({k: demands["tasks"] * one for k, one in enumerate(chosen)})
    by = [demands[one] for one in draw]
    chosen_tasks = tasks.groupby(by, sort=False).sum().min(axis=1)
    return _named(100 * chosen_tasks / demands["tasks"].groupby(by, sort=False).sum())


def skewed_classes_gain(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Gain on the two most skewed of the four largest classes of servers, less the gain on the other two, in points.

    A class is the more skewed, the more its ratio of the two resources differs from the ratio of all servers.
    """
    use, draw = found.long("use"), [*axes, "repetition"]
    use = use[use["class"] != "all"]
    capacity = use.groupby(["class", "resource"], sort=False)["capacity"].sum().unstack()
    largest = capacity.sum(axis=1).nlargest(4).index
    first, second = (capacity[resource] for resource in capacity.columns[:2])
    skew = np.log((first / second) / (first.sum() / second.sum())).abs()
    most_skewed = skew[largest].nlargest(2).index
    use = use[use["class"].isin(largest)].assign(skewed=use["class"].isin(most_skewed))
    utilization = use.pivot_table("utilization", [*draw, "resource", "class", "skewed"], "name", sort=False)
    gain = 100 * utilization[better] - 100 * utilization[than]
    by_skew = gain.groupby(level=[*draw, "skewed"], sort=False).mean().unstack()
    return _named(by_skew[True] - by_skew[False])


def seconds_needed(found: Any, axes: Sequence[str], cluster: str) -> pd.DataFrame:
    """Seconds until the residual of best responses falls to `level`, the largest over alphas; infinite if never.

    The column `servers` states whether servers compute in turn on one machine, or simultaneously, each on a machine of
    its own; a round then takes the mean time of a server.
    """
    games = found.long("reached")
    games = games[(games["cluster"] == cluster) & games["level"].isin([1e-2, 1e-3])]
    games = games.assign(value=games["seconds"].fillna(np.inf), level=games["level"].map("{:g}".format))
    in_turn = games.groupby([*axes, "level", "repetition", "servers"], sort=False)["value"].max().reset_index()
    at_once = in_turn.assign(value=in_turn["value"] / in_turn["servers"])
    return pd.concat([in_turn.assign(servers="in turn"), at_once.assign(servers="at once")], ignore_index=True)
