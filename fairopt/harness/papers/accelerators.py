"""Jobs on GPUs of several kinds, drawn by published generators, and distances of heuristics from fair levels.

`data/accelerators.csv` has the rates of Gavel's 26 types of jobs on 1 to 8 GPUs of three kinds.
`data/accelerator-pairs.csv` has the rates of two jobs that share one GPU, by the indices of their types: each unordered
pair of types once, without pairs in which neither job runs. The rates are Gavel's measurements
(stanford-futuredata/gavel, simulation_throughputs.json) to eight digits.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from io import StringIO
from itertools import product
from typing import Any

import numpy as np

from ...base import shipped
from ...base.libraries import pd
from ...mechanisms.columns import Columns
from ...model._arrays import Array, ratio
from ...model.cluster import Cluster
from ...model.merging import merge
from ._ours import TOL, placement, throughputs

GPUS = ("k80", "p100", "v100")


@cache
def _table(name: str) -> pd.DataFrame:
    return pd.read_csv(StringIO(shipped.content(__package__, f"data/{name}.csv")))


@cache
def _rates() -> dict[tuple[str, int], tuple[float, ...]]:
    """Rates on each kind of GPU, by type of job and number of GPUs."""
    table = _table("accelerators")
    numbers = table[[*GPUS]].itertuples(index=False, name=None)
    return dict(zip(zip(table["type"], table["scale"], strict=True), numbers, strict=True))


@cache
def pair_rates() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Rates of two jobs that share a GPU, by the types of the jobs, in either order, and the kind of GPU."""
    names, found = list(dict.fromkeys(kind for kind, _ in _rates())), {}
    for first, second, gpu, one, other in _table("accelerator-pairs").itertuples(index=False, name=None):
        found[names[first], names[second], gpu] = one, other
        found[names[second], names[first], gpu] = other, one
    return found


def _drawn(number: int, seed: int, several: bool) -> Iterator[tuple[str, int]]:
    """Yield type and number of GPUs of each job, by the distribution of the Philly trace (`generate_job` of Gavel).

    A type that does not run on the number of GPUs is drawn again. Durations are drawn between number and type, to keep
    the sequence of random numbers, but not used.
    """
    rng, types = random.Random(seed), list(dict.fromkeys(kind for kind, _ in _rates()))
    for _ in range(number):
        part = rng.uniform(0, 1)
        scale = 1 if not several or part < 0.7 else 2 if part <= 0.8 else 4 if part < 0.95 else 8
        rng.uniform(3, 4) if rng.random() >= 0.8 else rng.uniform(1.5, 3)
        kind = rng.choice(types)
        while (kind, scale) not in _rates():
            kind = rng.choice(types)
        yield kind, scale


def _cluster(number: int, scale: Sequence[int], rate: object, weight: object, users: Sequence[str]) -> Cluster:
    """Cluster of `number` GPUs of each kind; users are jobs, each of which runs once at a time, on `scale` GPUs."""
    demand, once = np.array(scale, dtype=float)[:, None], np.ones(len(scale))
    return Cluster(
        np.full((len(GPUS), 1), float(number)), demand, rate=np.array(rate), weight=np.array(weight), max_tasks=once,
        users=users, servers=GPUS, resources=("GPUs",),
    )  # fmt: skip


def published(number: int, priorities: Sequence[int], several: bool) -> Cluster:
    """Jobs of POP (cluster_scheduling/figure2.py) or Soroush (scripts/benchmark.py), with seed 0.

    Each kind has a quarter as many GPUs as there are jobs.
    """
    jobs = list(_drawn(number, 0, several))
    weight = np.resize(np.array(priorities, dtype=float), number)
    users = [f"{kind}, job {k}" for k, (kind, _) in enumerate(jobs)]
    return _cluster(number // 4, [scale for _, scale in jobs], [_rates()[job] for job in jobs], weight, users)


def flat_test(number: int) -> Cluster:
    """First `number` jobs drawn by tests/water_filling_tests.py of Gavel, with seed 0, and 64 GPUs of each kind."""
    rng = random.Random(0)
    jobs = [(sorted(rng.random() for _ in GPUS), 2 ** rng.randint(0, 2), rng.randint(1, 5)) for _ in range(number)]
    rate, scale, weight = zip(*jobs, strict=True)
    return _cluster(64, scale, rate, weight, [f"job {k}" for k in range(number)])


def water_filling(cluster: Cluster) -> Array:
    """Tasks (users, servers) by Soroush's `approx_waterfiller`, aware of priority and throughput.

    Time is split in proportion to 1.7^rate.

    As in Soroush's code, a job for which the power overflows, with a rate above 1337, gets no time.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        part = 1.7**cluster.rate * (cluster.rate >= 1e-7)
        part = np.nan_to_num(part / part.sum(axis=1, keepdims=True))
    return _filled(cluster, part * cluster.weight[:, None])


def adaptive_water_filling(cluster: Cluster, rounds: int = 10) -> Array:
    """Tasks (users, servers) by Soroush's `adapt_waterfiller`, aware of priority.

    Time is split in proportion to the work on each kind of GPU in the last round.
    """
    part = np.tile(1.1 ** np.arange(len(cluster.servers)), (len(cluster.users), 1))
    tasks = np.zeros_like(part)
    for _ in range(rounds):
        tasks = _filled(cluster, part / part.sum(axis=1, keepdims=True) * cluster.weight[:, None])
        part = tasks * cluster.rate
    return tasks * (cluster.rate > 0)


def _filled(cluster: Cluster, use: Array) -> Array:
    """Tasks (users, servers) after one pass of water-filling over two kinds of constraints: GPUs, and time of jobs.

    Every pair (user, server) begins at level 1, at which it uses `use` GPUs. Each constraint, once, lowers the highest
    levels of its pairs until it is satisfied. Constraints are processed in the order of the common level of their
    pairs at which they would bind.
    """
    time, level, free = use / cluster.demand, np.ones_like(use), np.ones(len(use), dtype=bool)
    own, shared = ratio(1.0, time.sum(axis=1), np.inf), ratio(cluster.capacity[:, 0], use.sum(axis=0), np.inf)
    for bound, i in [*sorted((bound, i) for i, bound in enumerate(shared)), (np.inf, None)]:
        now = free & (own < bound)
        level[now] = _lowered(level[now], time[now], 1.0)
        free &= ~now
        if i is not None:
            level[None, :, i] = _lowered(level[None, :, i], use[None, :, i], cluster.capacity[i, 0])
    return level * time


def _lowered(level: Array, use: Array, capacity: float) -> Array:
    r"""Cut the levels l (rows, pairs) of each row at the largest t with :math:`\sum_k u_k \min(l_k, t) \le c`.

    u is `use`, (rows, pairs), and c the `capacity` of every row.
    """
    order = np.argsort(level, axis=1)
    sorted_level, sorted_use = (np.take_along_axis(one, order, axis=1) for one in (level, use))
    below = np.cumsum(sorted_level * sorted_use, axis=1) - sorted_level * sorted_use
    above = sorted_use[:, ::-1].cumsum(axis=1)[:, ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Each candidate for the cut keeps the smaller levels, and replaces the others by one; the largest is the cut.
        cut = np.where(above > 0, (capacity - below) / above, 0.0)
    fits = (sorted_level * sorted_use).sum(axis=1, keepdims=True) <= capacity
    return np.where(fits, level, np.minimum(level, cut.max(axis=1, keepdims=True)))


def pop(cluster: Cluster, parts: int = 4) -> Array:
    """Tasks (users, servers) by POP: users are assigned in turn to `parts` equal fractions of the cluster.

    Each fraction is solved exactly.
    """
    from ...mechanisms.tsf import TSF  # deferred, as instances do not need it

    tasks = np.zeros((len(cluster.users), len(cluster.servers)))
    for part in range(parts):
        mine = cluster.select(users=cluster.users[part::parts])
        tasks[part::parts] = TSF().solve(mine.replace(capacity=mine.capacity / parts), tol=TOL).tasks
    return tasks


#: Heuristics by name, for claims (`off`) and for `benchmarks/accelerators.py`.
HEURISTICS = {"water-filling": water_filling, "adaptive-water-filling": adaptive_water_filling, "pop": pop}


def levels(cluster: Cluster, tasks: Array) -> Array:
    r"""Gavel's normalised throughput over priority, (users,): :math:`(w_n / \bar a_n) d_n / \phi_n`.

    w is work, :math:`\bar a_n` the rate on the average GPU, and d the number of GPUs of a job.
    """
    work = (cluster.rate * tasks).sum(axis=1)
    return np.asarray(work / _speed(cluster) * cluster.demand[:, 0] / cluster.weight)


def _speed(cluster: Cluster) -> Array:
    """Rates on the average GPU, (users,)."""
    return np.asarray(cluster.rate @ cluster.capacity[:, 0] / cluster.capacity.sum())


def exact(cluster: Cluster) -> list[float]:
    """Number of classes of identical jobs, smallest and largest max-min level, and number of different levels."""
    found = levels(cluster, placement(cluster, "tsf"))
    return [len(merge(cluster).cluster.users), found.min(), found.max(), len(np.unique(found.round(8)))]


def distance(found: Array, fair: Array) -> list[float]:
    """Levels relative to the fair levels: smallest, mean (the `quality` of POP), and fraction of jobs below .9."""
    part = found / fair
    return [part.min(), part.mean(), (part < 0.9).mean()]


def off(cluster: Cluster, heuristic: str, *arguments: int) -> list[float]:
    """`distance` of a heuristic from the exact levels."""
    found = HEURISTICS[heuristic](cluster, *arguments)
    return distance(levels(cluster, found), levels(cluster, placement(cluster, "tsf")))


def notebook(draw: int) -> tuple[Array, Array]:
    """True rates of three jobs, and rates reported by the first job, in a draw of strategy_proofness_analysis.ipynb."""
    rng = random.Random(42)
    drawn = np.reshape([rng.random() for _ in range(12 * (draw + 1))], (-1, 4, 3))[draw]
    return np.sort(drawn[:3], axis=1)[:, ::-1], drawn[3]


def one_each(draw: int) -> Cluster:
    """Jobs of a draw of the notebook, with one GPU of each kind."""
    once = np.ones((3, 1))
    return Cluster(once, once, rate=notebook(draw)[0], max_tasks=once[:, 0], servers=GPUS[::-1], resources=("GPUs",))


def lies_that_pay(_: object, mechanism: str, draws: int) -> int:
    """Number of draws of the notebook in which the misreport of the first job increases its work."""
    pairs = [(one_each(draw), notebook(draw)[1]) for draw in range(draws)]
    return sum(throughputs(one, mechanism, lie)[0] > throughputs(one, mechanism)[0] for one, lie in pairs)


def paired(cluster: Cluster) -> Columns:
    """Columns for jobs of one GPU each, by type: one job alone, or two jobs on one GPU."""
    number: dict[Any, int] = Counter(_kinds(cluster))
    can: dict[Any, dict[Hashable, Any]] = {kind: dict(zip(GPUS, _rates()[kind, 1], strict=True)) for kind in number}
    for (one, other, gpu), rates in pair_rates().items():
        if one <= other and number.keys() >= {one, other}:
            can.setdefault((one, other), {})[gpu] = rates
    return Columns.from_throughputs(can, dict(zip(GPUS, cluster.capacity[:, 0], strict=True)), count=number)


def _kinds(cluster: Cluster) -> list[str]:
    return [user.rpartition(", ")[0] for user in cluster.users]


def paired_levels(cluster: Cluster, parts: int = 1, alpha: float = np.inf) -> Array:
    """Levels (users,) of jobs that may share GPUs in pairs, at `alpha`: exact, or by POP if `parts` > 1."""
    found = np.zeros(len(cluster.users))
    for part in range(parts):
        mine = cluster.select(users=cluster.users[part::parts])
        solved = paired(mine.replace(capacity=mine.capacity / parts)).solve(alpha=alpha)
        found[part::parts] = solved.levels[_kinds(mine)]
    return found


def paired_work(cluster: Cluster, jobs: int) -> Array:
    """Throughputs, (jobs,), of the first `jobs` jobs if jobs may share GPUs in pairs."""
    return paired_levels(cluster)[:jobs] * _speed(cluster)[:jobs]


def parts_quality(cluster: Cluster, parts: int) -> list[float]:
    """Mean and deviation of POP's levels relative to exact levels (quality in figure 2), and POP's smallest level."""
    found = paired_levels(cluster, parts)
    part = found / paired_levels(cluster)
    return [part.mean(), part.std(), found.min()]


def paired_nash(cluster: Cluster) -> list[float]:
    """Smallest level and geometric mean of levels at alpha = 1."""
    found = paired_levels(cluster, alpha=1)
    return [found.min(), np.exp(np.log(found).mean())]


def gandiva(cluster: Cluster) -> list[float]:
    """Expected level by Gandiva's random pairs relative to the mean exact level, and expected fraction of idle jobs.

    With more jobs than GPUs all jobs run in pairs, which divide each kind of GPU equally, and run at most all the time.
    """
    number, each = Counter(_kinds(cluster)), cluster.capacity[:, 0] / (len(cluster.users) / 2)
    time, expected, nothing = each / max(1, each.sum()), 0.0, 0.0
    for one, other in product(number, repeat=2):
        part = number[one] * (number[other] - (one == other)) / (number.total() * (number.total() - 1))
        work = sum(time[i] * pair_rates().get((one, other, gpu), (0.0,))[0] for i, gpu in enumerate(GPUS))
        expected += part * work / (np.array(_rates()[one, 1]) @ cluster.capacity[:, 0]) * cluster.capacity.sum()
        nothing += part * (work == 0)
    return [expected / paired_levels(cluster).mean(), nothing]
