"""Quantities in claims, computed from a cluster, from the allocation of a mechanism, or from a schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from ...base.errors import DataError
from ...base.libraries import pd
from ...model._arrays import Array, Index
from ...model.cluster import Cluster
from ...result.allocation import Allocation
from ...scheduling import Schedule, Workload, memory, simulate
from ...workloads._draw import measured
from ...workloads.jobs.paper_setups import mqdrf_figure2

#: Tolerances of solutions, in general and at finite alpha (`_SMOOTH_TOL`). Both are smaller than the default, since all
#: engines attain them on the small instances of the papers.
TOL, _SMOOTH_TOL = 1e-8, 1e-11
#: Relative difference that is attributed to whole tasks of 10 s.
_GRAIN = 0.02
#: Durations in seconds: `_UNTIL` of a simulation, `_LASTS` of its tasks, which outlast the simulation.
_UNTIL, _LASTS = 1000.0, 1e6


def divided(_: object, capacity: float | Sequence[float], *entries: Mapping[str, Any]) -> Array | str:
    """Tasks (users,) under a tree of queues, whose users are the entries with `wants`, or the beginning of an error."""
    from ...mechanisms.tree import Tree  # deferred, as instances do not need it

    names = [str(one.get("name", k)) for k, one in enumerate(entries)]
    users = {name: one for name, one in zip(names, entries, strict=True) if "wants" in one}
    resources = [f"r{k}" for k in range(np.size(capacity))]
    queues = {
        name: {key: one[key] for key in ("parent", "weight", "priority") if key in one}
        | {key: {"r0": one[key]} for key in ("quota", "limit") if key in one}
        for name, one in zip(names, entries, strict=True)
    }
    demand, wants = ([one.get(key, [1.0]) for one in users.values()] for key in ("demand", "wants"))
    try:
        found = Tree(queues, combine="vector").solve(
            Cluster(np.atleast_2d(capacity), demand, max_tasks=wants, resources=resources, users=[*users]), tol=TOL
        )
    except DataError as error:
        return str(error).partition(":")[0]
    return found.arrays.user_tasks


def decayed_usage(_: object, usage: Sequence[float], current: Sequence[float], seconds: float, life: float) -> Array:
    """Usage by resource after `seconds` of `current` use, with a half-life of `life` seconds."""
    return memory.decayed(np.array(usage), np.array(current), seconds, life)


def weights_with_memory(_: object, weight: Sequence[float], usage: Sequence[float]) -> Array:
    """Weights of sibling queues, reduced by their past usage."""
    return memory.reduced(np.array(weight), np.array(usage))


def fair_share(_: object, *entries: Mapping[str, Any]) -> list[float]:
    r"""Fair-share factors of the leaves among the entries; each entry follows its parent.

    The effective usage of a child is :math:`u + (U - u) s / S`, with its own usage u, the effective usage U of the
    parent, its shares s, and the sum S of the shares of all children.
    """
    by_name: dict[str | None, tuple[float, float]] = {None: (1.0, 0.0)}  # share of the whole, effective usage
    for one in entries:
        above, part = by_name[one.get("parent")], one["shares"]
        of_all = sum(each["shares"] for each in entries if each.get("parent") == one.get("parent"))
        shared = (above[1] - one["usage"]) * part / of_all if "parent" in one else 0.0
        by_name[one["name"]] = above[0] * part / of_all, one["usage"] + shared
    users = [one["name"] for one in entries if all(each.get("parent") != one["name"] for each in entries)]
    share, usage = zip(*(by_name[name] for name in users), strict=True)
    return list(memory.factor(np.array(usage), np.array(share)))


def solve(cluster: Cluster, mechanism: str) -> Allocation:
    """Solve a mechanism, given as text, to 1e-11 at finite alpha > 0, and otherwise to 1e-8."""
    from ...mechanisms import one  # deferred, as CVXPY takes a second to import, and instances do not need it

    chosen = one(mechanism)
    alpha = chosen.criterion(chosen.prepare(cluster)[0]).alpha
    return chosen.solve(cluster, tol=_SMOOTH_TOL if 0 < alpha < np.inf else TOL)


def google_machines(_: object) -> tuple[int, int]:
    """Numbers of classes and of machines in the published table of Google's cluster."""
    classes = measured("google")[1]["servers"]
    return len(classes), int(sum(number for *_, number in classes))


def properties(_: object, cells: Iterable[tuple[str, str]]) -> list[bool | str]:
    """Cells (mechanism, property) of the table of properties: True if proved, False if refuted, `open` otherwise.

    A property that is proved under conditions on clusters counts as proved, since the papers presuppose the conditions.
    """
    from ...mechanisms import one  # deferred, as instances do not need it

    found = list[bool | str]()
    for name, wanted in cells:
        mechanism = one(name)
        held = [each.holds for each in mechanism.claims if each.property == wanted and each.about(mechanism)]
        found.append(any(held) if held else "open")
    return found


def cluster(cluster: Cluster, name: str) -> Array:
    """Attribute of the cluster, as an array."""
    return np.asarray(getattr(cluster, name))


def capacity_shares(cluster: Cluster) -> Array:
    """Capacities relative to those of the pool, (servers, resources)."""
    return cluster.capacity / cluster.pooled_capacity


def normalised_demand(cluster: Cluster) -> Array:
    """Shares per task relative to the dominant share, (users, resources)."""
    return cluster.share_per_task / cluster.dominant_share_per_task[:, None]


def dominant_resources(cluster: Cluster) -> Index:
    """Indices of the dominant resources, from 1, (users,)."""
    return cluster.dominant_resource + 1


def dominant_by_server(cluster: Cluster) -> Index:
    """Indices of the resources that limit each user alone on each server, from 1, (users, servers)."""
    return np.asarray((cluster.demand[:, None] / cluster.capacity).argmax(axis=2) + 1)


def fit_on_one(cluster: Cluster) -> Array:
    """Whole monopoly tasks on the first server, (users,)."""
    return np.floor(cluster.gamma[:, 0])


def monopoly_tasks(cluster: Cluster) -> Array:
    """Monopoly tasks under placement constraints, (users,)."""
    return np.asarray(cluster.gamma.sum(axis=1))


def tasks_anywhere(cluster: Cluster) -> Array:
    """Monopoly tasks without placement constraints, (users,)."""
    return np.asarray(cluster.gamma0.sum(axis=1))


def uniform_division(cluster: Cluster) -> Array:
    r"""Tasks under a partition by weight, :math:`(\phi_n / \sum_m \phi_m) \sum_i \gamma_{ni}`, (users,)."""
    return np.asarray(cluster.weight / cluster.weight.sum() * monopoly_tasks(cluster))


def tasks(cluster: Cluster, mechanism: str) -> Array:
    """Tasks under a mechanism, (users,)."""
    return solve(cluster, mechanism).arrays.user_tasks


def tasks_over(cluster: Cluster, mechanism: str, *parts: float) -> Array:
    """Tasks under a mechanism, each divided by its entry of `parts`, (users,)."""
    return np.asarray(tasks(cluster, mechanism) / np.array(parts))


def relative_tasks(cluster: Cluster, mechanism: str) -> Array:
    """Tasks relative to the tasks of the first user, (users,)."""
    found = tasks(cluster, mechanism)
    return np.asarray(found / found[0])


def task_shares(cluster: Cluster, mechanism: str) -> Array:
    """Tasks relative to monopoly tasks without placement constraints, (users,)."""
    return tasks(cluster, mechanism) / tasks_anywhere(cluster)


def unlimited(cluster: Cluster, mechanism: str) -> Array:
    """Tasks without task limits, (users,)."""
    return tasks(cluster.replace(max_tasks=None), mechanism)


def left_by_the_modest(cluster: Cluster, mechanism: str) -> float:
    """Tasks beyond users' limits in the allocation without limits, which other users can run instead."""
    return float(np.maximum(unlimited(cluster, mechanism) - cluster.max_tasks, 0).sum())


def second_round(cluster: Cluster, mechanism: str) -> Array:
    """Increase of the last two users' tasks when the tasks of `left_by_the_modest` are divided, (2,)."""
    return (tasks(cluster, mechanism) - unlimited(cluster, mechanism))[2:]


def newest_shares(cluster: Cluster, mechanism: str) -> Array:
    """Shares of the last user, (resources,)."""
    return np.asarray(bundles(cluster, mechanism)[-1] / cluster.pooled_capacity)


def placement(cluster: Cluster, mechanism: str) -> Array:
    """Tasks under a mechanism, (users, servers)."""
    return solve(cluster, mechanism).tasks


def bundles(cluster: Cluster, mechanism: str) -> Array:
    """Usage by user, (users, resources)."""
    return np.asarray(solve(cluster, mechanism).arrays.usage.sum(axis=1))


def idle(cluster: Cluster, mechanism: str) -> Array:
    """Free capacity of the pool, (resources,)."""
    return np.asarray(cluster.pooled_capacity - bundles(cluster, mechanism).sum(axis=0))


def least_demanding_first(cluster: Cluster, mechanism: str) -> bool:
    """True if, at every capacity of one resource, users that run all wanted tasks want fewer than the other users."""
    for units in range(2, int(cluster.max_tasks.sum()) + 1):
        found = tasks(cluster.replace(capacity=[[units]]), mechanism)
        done = found >= cluster.max_tasks * (1 - TOL)
        if not (cluster.max_tasks[done].max(initial=0) < cluster.max_tasks[~done]).all():
            return False
    return True


def trades_off(cluster: Cluster, alphas: tuple[float, ...]) -> bool:
    """True if alpha-fair dominant shares never have a larger sum, or a smaller minimum, at a larger alpha."""
    shares = np.array([dominant_shares(cluster, f"alpha-fair(alpha={alpha})") for alpha in alphas])
    sums, least = np.diff(shares.sum(axis=1)), np.diff(shares.min(axis=1))
    return bool((sums <= 1e-6).all() and (least >= -1e-6).all())


def dominant_shares(cluster: Cluster, mechanism: str) -> Array:
    """Dominant shares, (users,)."""
    return solve(cluster, mechanism).arrays.dominant_shares


def total_shares(cluster: Cluster, unit: float, mechanism: str | None = None) -> Array:
    """Sums over resources of each user's shares, or of the shares of one task without a mechanism, times `unit`."""
    used = cluster.demand if mechanism is None else bundles(cluster, mechanism)
    return np.asarray((used / cluster.pooled_capacity).sum(axis=1) * unit)


def share_ratio(cluster: Cluster, mechanism: str) -> float:
    """Ratio of the dominant share of the second user to the dominant share of the first user."""
    first, second = dominant_shares(cluster, mechanism)
    return float(second / first)


def everybody_has_half(cluster: Cluster, mechanism: str) -> bool:
    """True if all dominant shares are at least 1/2."""
    return bool((dominant_shares(cluster, mechanism) >= 0.5 * (1 - TOL)).all())


def resource_shares(cluster: Cluster, resource: str, mechanism: str) -> Array:
    """Shares of one resource of the pool, (users,)."""
    r = cluster.resources.index(resource)
    return np.asarray(bundles(cluster, mechanism)[:, r] / cluster.pooled_capacity[r])


def use(cluster: Cluster, server: str, resources: tuple[str, ...], mechanism: str) -> Array:
    """Utilization of the named resources, on a server or `overall`."""
    found = solve(cluster, mechanism)
    parts = found.utilization if server == "overall" else found.used_parts.loc[server]
    return np.asarray(parts[list(resources)], dtype=float)


def incentive_shortfall(cluster: Cluster, mechanism: str) -> float:
    """Largest shortfall, in tasks, from the tasks under a partition by weight; 0 if there is none."""
    return max(0.0, float((uniform_division(cluster) - tasks(cluster, mechanism)).max()))


def keeps_incentive(cluster: Cluster, mechanism: str) -> bool:
    """True if the sharing incentive holds for all users."""
    return incentive_shortfall(cluster, mechanism) <= TOL


def everyone_gains(cluster: Cluster, better: str, than: str) -> bool:
    """True if the first mechanism gives all users more tasks than the second."""
    return bool((tasks(cluster, better) > tasks(cluster, than) * (1 + TOL)).all())


def dominated(cluster: Cluster, mechanism: str) -> bool:
    """True if DRFH gives some user at least 1% more tasks than the mechanism, and no user fewer tasks."""
    mine, other = tasks(cluster, mechanism), tasks(cluster, "drfh")
    return bool((other >= mine * (1 - 1e-7)).all() and (other > mine * 1.01).any())


def gain_from_lying(cluster: Cluster, user: str, mechanism: str) -> float:
    """Largest relative gain in tasks by misreports that scale each demand by 1/4 to 4, including the true report."""
    n = cluster.users.index(user)
    truth = cluster.demand[n]

    def true_tasks(factors: tuple[float, ...]) -> float:
        lie = truth * factors
        return float((tasks(cluster.with_demand(user, lie), mechanism)[n] * lie / truth).min())

    lies = product((0.25, 0.5, 1.0, 2.0, 4.0), repeat=len(truth))
    return max(map(true_tasks, lies)) / true_tasks((1.0,) * len(truth)) - 1


def lying_pays(cluster: Cluster, user: str, mechanism: str) -> bool:
    """True if a misreport increases the tasks of the user by a fraction of more than 1e-6."""
    return gain_from_lying(cluster, user, mechanism) > 1e-6


def filled(cluster: Cluster, policy: str, come: tuple[float, ...] | None = None) -> Array:
    """Number of running tasks of each user, (users,), at the end of the simulation that `_tasks_after` describes."""
    states = _tasks_after(cluster, policy, come)
    running = states[states["state"] == "running"]
    return np.asarray(running.groupby("user", observed=False).size().reindex(cluster.users), dtype=float)


#: Seconds at which users arrive in MQDRF's experiment.
_COME = (0.0, 100.0, 300.0)


@cache
def _arrivals(policy: str, until: float) -> Schedule:
    """Schedule of three users who come to one server at 0, 100 and 300 s, with tasks of 10 s (MQDRF, figure 2)."""
    return simulate(mqdrf_figure2(np.random.default_rng(0), seconds=10.0), policy, until=until)


def running_at(cluster: Cluster, policy: str, time: float) -> Array:
    """Tasks of all users that run at a time of the experiment, (users,)."""
    tasks = _arrivals(policy, time).tasks
    here = tasks[tasks["state"] == "running"]
    return np.array([(here["user"] == f"U{k + 1}").sum() for k in range(len(cluster.users))])


def bundle_at(cluster: Cluster, policy: str, time: float) -> Array:
    """Shares of all users in CPU and memory at a time of the experiment, (users, resources)."""
    return running_at(cluster, policy, time)[:, None] * cluster.share_per_task


def dominant_at(cluster: Cluster, policy: str, time: float) -> Array:
    """Dominant shares of all users at a time of the experiment, (users,)."""
    return running_at(cluster, policy, time) * cluster.dominant_share_per_task


def dominant_seconds(_: object, policy: str, until: float) -> Array:
    """Dominant shares of the experiment's users, integrated over time, (users,), in seconds."""
    return np.asarray(_arrivals(policy, until).users["mean_dominant_share"] * until)


def seconds_in_slots(_: object, caps: tuple[float, ...], slot: float, until: float) -> Array:
    """`dominant_seconds` if levels change at the ends of slots: after k slots a user is in level k + 1."""
    times = np.arange(0.0, until, slot)
    ages = [((times[times >= come] - come) // slot).astype(int) for come in _COME]
    return np.array([slot * np.array(caps)[np.minimum(age, len(caps) - 1)].sum() for age in ages])


def later_have_as_much(_: object, policy: str, until: float) -> bool:
    """True if every user has, since its arrival, as many `dominant_seconds` as each earlier user up to 2%."""
    total = dominant_seconds(_, policy, until)
    since = [total - dominant_seconds(_, policy, come) for come in _COME[1:]]
    return all((had[k] >= had[:k] * (1 - _GRAIN)).all() for k, had in enumerate(since, start=1))


def everyone_ends(cluster: Cluster, policy: str) -> bool:
    """True if all tasks finish in the simulation that `_tasks_after` describes, with tasks of one second."""
    return bool((_tasks_after(cluster, policy, lasts=1.0)["state"] == "done").all())


def _tasks_after(
    cluster: Cluster, policy: str, come: tuple[float, ...] | None = None, lasts: float = _LASTS
) -> pd.DataFrame:
    """Tasks at the end of a simulation: users arrive at the seconds `come`, each with enough tasks to fill all servers.

    Parameters
    ----------
    cluster : Cluster
    policy : str
    come : tuple of float, optional
        Default: all at 0.
    lasts : float
        Duration of a task in seconds.
    """
    users, resources = list(cluster.users), list(cluster.resources)
    number = [max(1, int(count) + 1) for count in cluster.gamma.sum(axis=1)]
    table = pd.DataFrame(cluster.demand, columns=resources).assign(
        user=users, tasks=number, duration=lasts, arrival=0.0 if come is None else come
    )
    of_users = pd.DataFrame({"user": users, "weight": cluster.weight})
    servers = pd.DataFrame(cluster.capacity, columns=resources)
    return simulate(Workload.from_frames(table, servers, of_users), policy, until=_UNTIL).tasks


def second_runs(cluster: Cluster, policy: str) -> bool:
    """True if tasks of the second user run although the first user arrived a second earlier."""
    return bool(filled(cluster, policy, (0.0, 1.0))[1] > 0)


def shares(cluster: Cluster, policy: str) -> Array:
    """Dominant shares at the end of a simulation, (users,)."""
    return filled(cluster, policy) * cluster.dominant_share_per_task


def used(cluster: Cluster, policy: str) -> Array:
    """Utilization at the end of a simulation, (resources,)."""
    return filled(cluster, policy) @ cluster.share_per_task


def largest_alpha_at_full_use(cluster: Cluster, mechanism: str) -> float:
    """Largest alpha at which the mean utilization under a mechanism is the largest over all alphas."""
    from ...study.find_alpha import find_alpha  # deferred, as instances do not need CVXPY

    return find_alpha(cluster, mechanism, target=1 - 1e-9, tol=_SMOOTH_TOL, accuracy=1e-7).alpha


def alpha_at_the_corner() -> float:
    """Threshold of alpha in the lecture's example: up to it CPU and memory are exhausted, beyond it only CPU."""
    return math.log(2) / math.log(5 / 3)


def beyond_corner(
    alpha: float, ratio: float, corner: tuple[Fraction, ...], whole: float, each: float
) -> tuple[Fraction | float, ...]:
    r"""Tasks x, y of two users at `alpha`, who exhaust two resources up to a threshold, and beyond it only one.

    Up to :math:`\alpha = \ln 2 / \ln` `ratio` the tasks are the `corner`; beyond it, with w = `whole` and e = `each`,
    :math:`x = w / (1 + 2^{1 - 1/\alpha})` and :math:`y = (w - x) / e`.
    """
    if alpha <= math.log(2) / math.log(ratio):
        return corner
    x = whole / (1 + 2 ** (1 - 1 / alpha))
    return x, (whole - x) / each


def throughputs(cluster: Cluster, mechanism: str, report: Sequence[float] | Array = ()) -> Array:
    """Work at true rates, (users,), if the first user reports the rates `report` instead."""
    from ...mechanisms import one  # deferred, as instances do not need it

    given = cluster.with_rate(cluster.users[0], report) if len(report) else cluster
    return cluster.work(one(mechanism).solve(given).tasks)


def work(cluster: Cluster, mechanism: str, decimals: int, *reported: float) -> list[Array]:
    """Rounded `throughputs` if all users report their rates, and if the first user reports the rates `reported`."""
    return [throughputs(cluster, mechanism, report).round(decimals) for report in ((), reported)]


def nash_within_two(_: object, draws: int, of_lies: bool) -> bool:
    """True if no bundle of another user (or no misreport) more than doubles a user's work at the Nash optimum.

    The optimum is that of `draws` random clusters of accelerators; `of_lies` selects misreports.
    """
    from ...mechanisms import one  # deferred, as instances do not need these imports
    from ...properties import Case, Deviation, get
    from ...properties.strategy_proofness import misreports

    nash, prop, worst = one("ceei(scope=servers)"), get("strategy-proofness" if of_lies else "envy-freeness"), 0.0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        users, kinds = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        rates = np.sort(rng.lognormal(0, 1, (users, kinds)), axis=1)
        gpus = Cluster(np.ones((kinds, 1)), np.ones((users, 1)), max_tasks=1, rate=rates)
        tasks, (lie, liar) = nash.solve(gpus).tasks, next(misreports(gpus, ("rate",), rng))
        case = Case(gpus, tasks)
        if of_lies:
            case = Case(gpus, tasks, Deviation(lie, (gpus.users[liar],)), nash.solve(lie).tasks)
        worst = max(worst, float(prop.find(case).violation))
    return worst <= 1 / 2
