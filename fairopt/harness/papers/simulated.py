"""Statistics of stored simulations, on which papers make statements: a value for each draw and combination of options.

Every function takes stored cells (`fairopt.report.StoredCells`, with a column for each option in `axes`), the names of
these columns, and arguments; it returns a frame with `axes`, `repetition` and `value`. A statistic that may be read in
several ways has a further column. Policies are named by their text, or by their name, such as `slots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...base.libraries import pd
from ...base.registry import parameters
from ...scheduling import policies

#: Fraction of jobs that a trimmed mean omits at each end.
_TRIMMED = 0.05
#: Sizes of jobs by number of tasks: DRF figure 14, of which the paper prints two, and five bins for DRFH figure 6.
SIZES = {"DRF": (1, 2, 11, 51, np.inf), "DRFH": (1, 2, 11, 101, 501, np.inf)}


def _of(frame: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Rows of a policy, as `_policies` selects it."""
    return frame[frame["policy"].isin(_policies(frame["policy"].unique(), policy))]


def _values(frame: pd.DataFrame, axes: Sequence[str], value: pd.Series, how: str = "mean") -> pd.DataFrame:
    """One value by draw and options."""
    by = [*axes, "repetition"]
    return frame[by].assign(value=value).groupby(by, sort=False)["value"].agg(how).reset_index()


def _wide(frame: pd.DataFrame, by: Sequence[str], column: str, how: str = "mean") -> pd.DataFrame:
    """Values of a column by `by`, with a column for each policy."""
    return frame.pivot_table(index=[*by], columns="policy", values=column, aggfunc=how, sort=False, observed=True)


def _policies(texts: Iterable[str], wanted: str) -> list[str]:
    """Policies of this text, or those of this name with the stated parameters; `|` is between several."""
    several = [*texts]
    if "|" in wanted:
        return [one for part in wanted.split("|") for one in _policies(several, part)]
    name, _, inside = wanted.partition("(")
    given = parameters(wanted, inside[:-1])
    alike = [one for one in several if one.partition("(")[0] == name and _has(one, given)]
    return [wanted] if wanted in several and not given else alike


def _has(policy: str, given: Mapping[str, Any]) -> bool:
    """True if a policy has these parameters, stated or by default."""
    made = policies.one(policy) if given else None
    return all(getattr(made, key) == value for key, value in given.items())


def _least(wide: pd.DataFrame, axes: Sequence[str], better: str, than: str, of: Callable[..., Any]) -> pd.DataFrame:
    """Smallest value of `of(better, other)` over the other policies and rows of a draw."""
    best, others = _policies(wide.columns, better), _policies(wide.columns, than)
    if not best or not set(others) - {best[0]}:  # policies without any value have no column
        return pd.DataFrame(columns=[*axes, "repetition", "value"])
    each = [of(wide[best[0]], wide[one]) for one in others if one != best[0]]
    least = pd.concat(each, axis=1).min(axis=1, skipna=False)
    found = least.rename("value").reset_index()
    return _values(found, axes, found["value"], "min")


def _of_kinds(jobs: pd.DataFrame, kinds: Sequence[str]) -> pd.DataFrame:
    """Select jobs by the kind of their user, the first word of its name; without `kinds` all jobs are of one kind."""
    if not kinds:
        return jobs.assign(kind="")
    kind = jobs["user"].str.partition(" ")[0]
    return jobs.assign(kind=kind)[kind.isin(kinds)]


def jobs_gained(found: Any, axes: Sequence[str], better: str, than: str, *kinds: str) -> pd.DataFrame:
    """Least gain in completed jobs over other policies, of any of some kinds of users, in per cent."""
    jobs = _of_kinds(found.long("each_job"), kinds)
    jobs = jobs.assign(done=jobs["response"].notna())
    wide = _wide(jobs, [*axes, "repetition", "kind"], "done", "sum")
    return _least(wide, axes, better, than, lambda a, b: 100 * (a - b) / b.clip(lower=1))


def response_gained(found: Any, axes: Sequence[str], better: str, than: str, *kinds: str) -> pd.DataFrame:
    """Least reduction of mean completion times against other policies, of any of some kinds of users, in per cent."""
    jobs = _of_kinds(found.long("each_job"), kinds)
    wide = _wide(jobs, [*axes, "repetition", "kind"], "response")
    return _least(wide, axes, better, than, lambda a, b: 100 * (1 - a / b))


def least_share_gained(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Least gain over other policies in the smallest mean dominant share of any user, in per cent."""
    wide = _wide(found.long("each_user"), [*axes, "repetition"], "mean_dominant_share", "min")
    return _least(wide, axes, better, than, lambda a, b: 100 * (a / b - 1))


def used(found: Any, axes: Sequence[str], policy: str, *resources: str) -> pd.DataFrame:
    """Mean use of a resource, or the largest of several, in per cent; demands may exceed the capacity."""
    use = _of(found.long("use"), policy)
    return _values(use[use["resource"].isin(resources)], axes, 100 * use["utilization"], "max")


def use_gained(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Gain in mean use over another policy, of the resource where it is least, in per cent of the other's use."""
    wide = _wide(found.long("use"), [*axes, "repetition", "resource"], "utilization")
    return _least(wide, axes, better, than, lambda a, b: 100 * (a / b - 1))


def best_slots(found: Any, axes: Sequence[str], number: int) -> pd.DataFrame:
    """Use of all resources by slots of this number, less the largest use by others, in points."""
    use = found.long("use")
    use = use[use["policy"].str.startswith("slots")]
    slots: Callable[[str], Any] = policies.one
    use = use.assign(number=use["policy"].map(lambda text: slots(text).n))
    wide = use.pivot_table(index=[*axes, "repetition"], columns="number", values="utilization", aggfunc="sum")
    margin = 100 * (wide[number] - wide.drop(columns=number).max(axis=1))
    return margin.rename("value").reset_index()


def instants_above(
    found: Any,
    axes: Sequence[str],
    better: str,
    than: str,
    first_resource: str,
    second_resource: str,
    busy: bool = False,
) -> pd.DataFrame:
    """Part of all instants at which a policy uses at least as much of two resources as another, in per cent.

    With `busy`, of those at which tasks wait under both.
    """
    times, both = found.long("timeline"), (first_resource, second_resource)
    by = [*axes, "repetition", "time"]
    chosen = pd.concat([_of(times, one) for one in (better, than)])
    chosen = chosen[chosen["time"] > 0]
    wide = chosen.pivot_table(index=by, columns=["what", "policy"], values="value", sort=False)
    first, second = (_policies(chosen["policy"].unique(), one)[0] for one in (better, than))
    above = np.logical_and.reduce(
        [wide[f"use_{one}", first] >= wide[f"use_{one}", second] * (1 - 1e-9) for one in both]
    )
    rows = pd.DataFrame({"above": 100.0 * above}, wide.index)
    if busy:
        rows = rows[(wide["waiting", first] > 0) & (wide["waiting", second] > 0)]
    rows = rows.reset_index()
    return _values(rows, axes, rows["above"])


def sooner(found: Any, axes: Sequence[str], better: str, than: str, sizes: str, which: int) -> pd.DataFrame:
    """Reduction of completion times against another policy of jobs in a bin of sizes, in per cent, by `statistic`."""
    gains = reductions(found, axes, better, than, sizes)
    return gains[gains["size"] == which].drop(columns="size")


def sooner_rises(found: Any, axes: Sequence[str], better: str, than: str, sizes: str) -> pd.DataFrame:
    """Rank correlation of reductions with bins of sizes: 1 if they rise from each bin to the next, -1 if they fall."""
    gains = reductions(found, axes, better, than, sizes)
    by = [*axes, "repetition", "statistic"]
    wide = gains.pivot_table(index=by, columns="size", values="value", sort=False).sort_index(axis=1)
    ranks = wide.rank(axis=1)
    tau = ranks.T.corrwith(pd.Series(range(wide.shape[1]), wide.columns)).where(ranks.std(axis=1) > 0, 0.0)
    return tau.rename("value").reset_index()


def reductions(found: Any, axes: Sequence[str], better: str, than: str, sizes: str) -> pd.DataFrame:
    """Reductions by bin of sizes and `statistic`: of the means, or medians and trimmed means of those of each job."""
    jobs = found.long("each_job")
    jobs = pd.concat([_of(jobs, one) for one in (better, than)])
    bins = SIZES[sizes]
    size = pd.cut(jobs["tasks"], bins, right=False, labels=range(len(bins) - 1)).astype(int)
    wide = _wide(jobs.assign(size=size), [*axes, "repetition", "size", "job"], "response").dropna()
    first, second = (wide[_policies(wide.columns, one)[0]] for one in (better, than))
    by = [*axes, "repetition", "size"]
    each = (100 * (1 - first / second)).groupby(level=by, observed=True)
    means = [one.groupby(level=by, observed=True).mean() for one in (first, second)]
    of = {
        "reduction of means": 100 * (1 - means[0] / means[1]),
        "median per job": each.median(),
        "trimmed mean per job": each.apply(_trimmed_mean),
    }
    parts = [value.rename("value").reset_index().assign(statistic=name) for name, value in of.items()]
    return pd.concat(parts, ignore_index=True)


def _trimmed_mean(values: pd.Series) -> float:
    ordered = np.sort(values.to_numpy(dtype=float))
    cut = int(_TRIMMED * len(ordered))
    return float(ordered[cut : len(ordered) - cut].mean())


def done_sooner(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Least lead over all times of the part of jobs that are done within it against another policy, in points."""
    jobs = found.long("each_job")
    times = np.geomspace(1.0, 86400.0, 60)

    def done(policy: str) -> pd.DataFrame:
        of = _of(jobs, policy)
        part = {
            key: (group["response"].to_numpy(dtype=float)[:, None] <= times).mean(axis=0)
            for key, group in of.groupby([*axes, "repetition"], sort=False)
        }
        return pd.DataFrame.from_dict(part, orient="index")

    lead = (100 * (done(better) - done(than))).min(axis=1)
    lead.index = pd.MultiIndex.from_tuples(lead.index, names=[*axes, "repetition"])
    return lead.rename("value").reset_index()


def _completed(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Parts of every user's tasks that are done, under `better` and under `than`."""
    users = found.long("each_user")
    users = users.assign(part=users["tasks_done"] / users["tasks"])
    each = [_of(users, one).groupby([*axes, "repetition", "user"], sort=False)["part"].mean() for one in (better, than)]
    return pd.concat(each, axis=1, keys=["better", "than"]).dropna().reset_index()


def users_with_more(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Users of whom a policy completes at least as large a part of the tasks, or a larger one, in per cent."""
    of, parts = _completed(found, axes, better, than), []
    for reading, above in (("at least as much", of["better"] >= of["than"]), ("more", of["better"] > of["than"])):
        parts.append(_values(of, axes, 100.0 * above).assign(reading=reading))
    return pd.concat(parts, ignore_index=True)


def users_complete_only(found: Any, axes: Sequence[str], better: str, than: str) -> pd.DataFrame:
    """Users all of whose tasks are done under one policy and not under the other, in per cent."""
    of = _completed(found, axes, better, than)
    return _values(of, axes, 100.0 * ((of["better"] >= 1) & (of["than"] < 1)))


def users_with_less(found: Any, axes: Sequence[str], policy: str, than: str) -> pd.DataFrame:
    """Users of whom a policy completes a smaller part of the tasks, in per cent."""
    of = _completed(found, axes, policy, than)
    return _values(of, axes, 100.0 * (of["better"] < of["than"]))


def less_by(found: Any, axes: Sequence[str], policy: str, than: str) -> pd.DataFrame:
    """Mean decrease of the completed part of tasks among users with less, in points."""
    of = _completed(found, axes, policy, than)
    of = of[of["better"] < of["than"]]
    return _values(of, axes, 100.0 * (of["than"] - of["better"]))


def share(found: Any, axes: Sequence[str], begin: float, end: float, *users: str) -> pd.DataFrame:
    """Mean dominant share of users between two times, in per cent."""
    shares = found.long("shares")
    shares = shares[shares["time"].between(begin, end) & shares["user"].isin(users)]
    return _values(shares, axes, 100 * shares["share"])


def shares_apart(found: Any, axes: Sequence[str], begin: float, end: float, *users: str) -> pd.DataFrame:
    """Largest difference between mean dominant shares of users between two times, in points."""
    shares = found.long("shares")
    shares = shares[shares["time"].between(begin, end) & shares["user"].isin(users)]
    each = shares.groupby([*axes, "repetition", "user"], sort=False)["share"].mean().unstack()
    return (100 * (each.max(axis=1) - each.min(axis=1))).rename("value").reset_index()


#: Times in DRFH figure 4 from 100 s after a user comes or leaves to the next change.
_STEADY = ((100, 199), (300, 499), (600, 1079), (1180, 1500))


def _steady(found: Any, axes: Sequence[str], policy: str) -> pd.Series:
    """Mean dominant shares of the users of DRFH figure 4 who are there, in the times of `_STEADY`."""
    shares = _of(found.long("shares"), policy)
    parts = [shares[shares["time"].between(*times)].assign(times=k) for k, times in enumerate(_STEADY)]
    of = pd.concat(parts).groupby([*axes, "repetition", "times", "user"], sort=False)["share"].mean()
    return of[of > 0]


def _beside_fluid(found: Any, axes: Sequence[str], policy: str) -> pd.DataFrame:
    """Shares of `_steady`, `mine`, beside those of fluid DRFH, `fluid`, whose players are jobs, one of each user."""
    mine = _steady(found, axes, policy).rename("mine").reset_index()
    exact = found.long("shares")
    exact = exact[exact["policy"] == "fluid:drfh"].assign(user=lambda t: t["user"].str.replace("job", "user"))
    same, parts = [one for one in axes if one != "policy"], []
    for k, (begin, _) in enumerate(_STEADY):  # fluid shares change at events only
        before = exact[exact["time"] <= begin]
        last = before[before["time"] == before.groupby([*same, "repetition"])["time"].transform("max")]
        parts.append(last[[*same, "user"]].assign(times=k, fluid=last["share"]))
    return mine.merge(pd.concat(parts), on=[*same, "times", "user"])


def share_of_fluid(found: Any, axes: Sequence[str], policy: str) -> pd.DataFrame:
    """Least dominant share of a user relative to that under fluid DRFH, in per cent."""
    both = _beside_fluid(found, axes, policy)
    return _values(both, axes, 100 * both["mine"] / both["fluid"], "min")


def shares_exact(found: Any, axes: Sequence[str], policy: str) -> pd.DataFrame:
    """Largest difference of dominant shares from those of DRFH at a time, in points: of fluid DRFH, or equal ones."""
    both = _beside_fluid(found, axes, policy)
    fluid = _values(both, axes, 100 * (both["mine"] - both["fluid"]).abs(), "max")
    each = both.groupby([*axes, "repetition", "times"], sort=False)["mine"]
    apart = (100 * (each.max() - each.min())).rename("value").reset_index()
    equal = _values(apart, axes, apart["value"], "max")
    return pd.concat([fluid.assign(reading="fluid"), equal.assign(reading="equal")], ignore_index=True)


def heavy(found: Any, axes: Sequence[str], resource: str) -> pd.DataFrame:
    """Tasks that demand a larger part of this resource (`first` or `second`) than of the other, in per cent."""
    demands = found.long("demands")
    other = "second" if resource == "first" else "first"
    part = _by_tasks(demands, axes, demands[resource] > demands[other])
    return part.rename("value").reset_index()


def beside_slots(found: Any, axes: Sequence[str], least: int, most: int) -> pd.DataFrame:
    """Tasks whose larger demand differs from a slot by more than a fifth, in per cent.

    Servers of mean size have `least` to `most` slots; of these numbers the one with the fewest such tasks counts.
    """
    demands = found.long("demands")
    larger = demands[["first", "second"]].max(axis=1)
    parts = [_by_tasks(demands, axes, (larger * slots - 1).abs() > 0.2) for slots in range(least, most + 1)]
    return pd.concat(parts, axis=1).min(axis=1).rename("value").reset_index()


def _by_tasks(demands: pd.DataFrame, axes: Sequence[str], chosen: pd.Series) -> pd.Series:
    """Tasks that are chosen, in per cent of those of a draw."""
    by = [*axes, "repetition"]
    counted = demands.assign(chosen=demands["tasks"] * chosen).groupby(by, sort=False)[["chosen", "tasks"]].sum()
    return 100 * counted["chosen"] / counted["tasks"]
