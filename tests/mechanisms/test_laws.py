"""Laws of every registered mechanism on random clusters: a certificate or an error that helps, and invariances.

Whoever adds a mechanism adds nothing here: the registry is read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import clusters, plain_clusters

from fairopt.errors import CertificateError, DataError, NotConverged, SolverError
from fairopt.mechanisms import REGISTRY, GameMechanism, Mechanism, get
from fairopt.model.cluster import Cluster
from fairopt.model.merging import merge

from .laws import check_answer

Array = NDArray[np.float64]

#: The mechanisms that come with the package: everything that comparisons show by default, and other parameters, on
#: fewer clusters.
KINDS = [kind for _, kind in sorted(REGISTRY.items()) if kind.__module__.startswith("fairopt.")]
VARIANTS = [variant for kind in KINDS for variant in kind.variants()]
OTHERS = [trial for kind in KINDS for trial in kind.trials()]


def identify(mechanism: Mechanism) -> str:
    return str(mechanism).replace(" ", "-")


def run_law(mechanism: Mechanism, examples: int, hidden: float) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=examples)
    @given(clusters())
    def law(cluster: Cluster) -> None:
        check_answer(mechanism, cluster, seen)

    law()
    gave_up = seen["SolverError"] + seen["NotConverged"]
    print(f"{mechanism}: {dict(seen)}")  # noqa: T201 - shown by pytest -rP, and wanted in reports
    assert gave_up <= hidden * seen["clusters"], f"{mechanism} gave up too often: {dict(seen)}"


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_certificate_or_helpful_error(mechanism: Mechanism) -> None:
    run_law(mechanism, 500, 0.01)


@pytest.mark.parametrize("mechanism", OTHERS, ids=identify)
def test_other_parameters(mechanism: Mechanism) -> None:
    run_law(mechanism, 60, 0.02 if isinstance(mechanism, GameMechanism) else 0.01)


#: Clusters that broke something once, kept whatever the random ones are.
HARD = {
    # The second user's price on the shared resource is 1e-10 of the others': max-min must not lose it.
    "a user whose price is invisible": Cluster(
        [[1, 1, 1]], [[1, 56.234133, 1], [1, 0.01, 1e4], [10, 1, 1]], weight=[1, 1e-4, 1]
    ),
    "prices over ten decades": Cluster(
        [[21.112158, 24.309067, 57.123002]],
        [[1, 6404.228484, 175.123932], [2.549895, 0.010955, 6775.315412], [0.11923, 0, 641.807806]],
        weight=[57.123002, 0.00066, 0.078128],
    ),
    # HiGHS ends with status UNKNOWN and no values on the rounds of task max-min.
    "HiGHS gives up": Cluster(
        [[1, 1]] * 3,
        [
            [0.1656579769002749, 0.00039795215959421293],
            [1791.7092120960606, 1.0],
            [0.003657204233204479, 113.09351694031828],
            [176.4672213055171, 1.0000000000230258],
            [0.1656579769002749, 0.00039795215959421293],
        ],
        eligible=[[0, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 1]],
    ),
    "nobody has anything to run": Cluster([[1]], [[1]], max_tasks=0),
    "some have nothing to run": Cluster([[2, 1]], [[1, 1], [1, 2]], max_tasks=[0, np.inf]),
    "everybody satisfied": Cluster([[4]], [[1], [1]], max_tasks=[1, 1.8]),
    "all but one satisfied": Cluster([[5.3]], [[4], [1]], [1, 2], max_tasks=[0, 1.5899999999999999]),
    "limits and lacks": Cluster(
        [[3, 4, 0], [1, 0, 0], [1, 2, 1], [6, 1, 2]],
        [[4, 0, 1], [1, 2, 4], [1, 0, 0]],
        max_tasks=[np.inf, 0.075, 3.3],
    ),
    "utilitarian leaves users with nothing": Cluster([[3, 1]], [[1, 1], [1, 3], [4, 3], [1, 1]]),
    "many equal users and servers": Cluster(
        [[3, 3, 4], [1, 1, 6], [2, 1, 3], [3, 1, 1]], [[6, 1, 3], [3, 3, 4], [1, 1, 6], [2, 1, 3], [1, 1, 6]]
    ),
    "many users on one server": Cluster([[100, 70]], np.linspace(0.1, 3, 60).reshape(30, 2)),
    "one user on many servers": Cluster(np.linspace(0, 3, 60).reshape(30, 2), [[1, 2]]),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("mechanism", [*VARIANTS, *OTHERS], ids=identify)
def test_hard_clusters(mechanism: Mechanism, name: str) -> None:
    check_answer(mechanism, HARD[name], Counter())


# -- invariances ---------------------------------------------------------------------------------

UNIQUE = [mechanism for mechanism in VARIANTS if mechanism.unique]
TOL = 1e-4
invariance = settings(max_examples=12)


def applicable(mechanism: Mechanism) -> st.SearchStrategy[Cluster]:
    """Well-conditioned clusters on which the mechanism is defined."""
    most, limits = 1 if mechanism.one_resource else 3, mechanism.keeps_limits
    return clusters(styles=("plain", "nice"), max_users=4, max_servers=3, max_resources=most, limits=limits)


def certified_elsewhere(mechanism: Mechanism, after: Cluster, tasks: Array, prices: Array | None) -> None:
    """Transformed tasks of one cluster are an answer of the other: the law for mechanisms with several answers."""
    seen = mechanism.prepare(after)[0]
    certificate = mechanism.certify(seen, tasks, prices)[0]
    assert certificate.passes(10 * mechanism.default_tol), certificate


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_invariances(mechanism: Mechanism) -> None:
    """Names, order and units do not matter; nor does, to most, the scale of the weights."""

    @invariance
    @given(applicable(mechanism), st.randoms(use_true_random=False), st.sampled_from([0.2, 3.0, 100.0]))
    def law(cluster: Cluster, random: object, scale: float) -> None:
        rng = np.random.default_rng(random.getrandbits(32))  # type: ignore[attr-defined]
        n, i, r = cluster.shape
        one, everyone = np.ones(n), np.arange(n)
        found = mechanism.solve(cluster)
        pooled = found.tasks.shape[1] != i

        users, servers = rng.permutation(n), rng.permutation(i)
        shuffled = cluster.select([cluster.users[k] for k in users], [cluster.servers[k] for k in servers])
        weighed = cluster.replace(weight=cluster.weight * scale)
        unit = np.where(np.arange(r) == rng.integers(r), scale, 1.0)
        measured = cluster.replace(capacity=cluster.capacity * unit, demand=cluster.demand * unit)
        size = np.where(everyone == rng.integers(n), scale, 1.0)
        cut = cluster.replace(demand=cluster.demand * size[:, None], max_tasks=cluster.max_tasks / size)

        cases = [(shuffled, users, one), (measured, everyone, one)]
        if mechanism.relative_weights:
            cases.append((weighed, everyone, one))
        if not mechanism.counts_tasks:
            cases.append((cut, everyone, 1 / size))
        for other, order, factor in cases:
            moved = servers if other is shuffled and not pooled else slice(None)
            prices = found.log_prices
            if prices is not None:
                prices = prices[..., moved, :] - np.log(unit if other is measured else 1.0)
            certified_elsewhere(mechanism, other, (found.tasks[order] * factor[:, None])[:, moved], prices)
            if mechanism in UNIQUE:
                after = mechanism.solve(other).user_tasks
                np.testing.assert_allclose(after, found.user_tasks[order] * factor, rtol=TOL, atol=1e-9)

    law()


@pytest.mark.parametrize("mechanism", [m for m in VARIANTS if m.counts_tasks], ids=identify)
def test_task_based_mechanisms_do_depend_on_the_size_of_a_task(mechanism: Mechanism) -> None:
    """The law above would be vacuous if they were exempted for nothing."""
    small = mechanism.solve(Cluster([[9, 18]], [[1, 4], [3, 1]])).user_tasks
    large = mechanism.solve(Cluster([[9, 18]], [[2, 8], [3, 1]])).user_tasks
    assert abs(large[0] * 2 / small[0] - 1) > 0.1


@pytest.mark.parametrize("mechanism", UNIQUE, ids=identify)
def test_merging_changes_nothing(mechanism: Mechanism) -> None:
    """Proportional servers and users, merged by hand, give the tasks that `split_tasks` undoes."""

    @settings(max_examples=15)
    @given(plain_clusters(max_users=3, max_servers=2, max_resources=1 if mechanism.one_resource else 3))
    def law(cluster: Cluster) -> None:
        capacity = np.vstack([cluster.capacity, cluster.capacity[:1] * 2.5])
        demand = np.vstack([cluster.demand, cluster.demand[-1:] * 0.4])
        weight = np.append(cluster.weight, cluster.weight[-1] * 3)
        twice = Cluster(capacity, demand, weight)
        # Where task counts do not scale with the task, or weights do not matter, only servers merge.
        keep_users = mechanism.counts_tasks or not mechanism.uses_weights
        merging = merge(twice, users=not keep_users)
        assert merging.cluster.shape[1] < twice.shape[1]
        assert keep_users or merging.cluster.shape[0] < twice.shape[0]
        pool = mechanism.prepare(twice)[0].shape[1] < twice.shape[1]
        apart, joined = mechanism.solve(twice), mechanism.solve(merging.cluster)
        tasks = joined.tasks
        if pool:
            tasks = tasks.sum(axis=1, keepdims=True) * np.eye(1, merging.cluster.shape[1])
        split = merging.split_tasks(tasks)
        split_users = split.sum(axis=1)
        np.testing.assert_allclose(split_users, apart.user_tasks, rtol=TOL)

    law()


@pytest.mark.parametrize("mechanism", [m for m in VARIANTS if isinstance(m, GameMechanism)], ids=identify)
def test_merged_equilibria_are_equilibria(mechanism: Mechanism) -> None:
    @settings(max_examples=15)
    @given(plain_clusters(max_users=3, max_servers=2))
    def law(cluster: Cluster) -> None:
        twice = cluster.replace(
            capacity=np.vstack([cluster.capacity, cluster.capacity[:1] * 2.5]), servers=None, eligible=None
        )
        merging = merge(twice, users=False)
        found = mechanism.solve(merging.cluster)
        split = merging.split_tasks(found.tasks)
        certificate = mechanism.certify(twice, split, merging.split_prices(found.log_prices))[0]
        assert certificate.passes(10 * mechanism.default_tol), certificate

    law()


def test_unknown_parameters_are_named() -> None:
    for mechanism in VARIANTS:
        with pytest.raises(DataError, match="does not take nonsense"):
            get(mechanism.name, nonsense=1)


def test_certificate_errors_are_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law test is worth nothing if a CertificateError passed for one of the errors it allows."""
    assert not issubclass(CertificateError, SolverError | NotConverged | DataError)
    drf = get("drf")
    answer = drf.solve(Cluster([[9, 18]], [[1, 4], [3, 1]]))
    wrong = replace(answer, tasks=answer.tasks * 0.5)
    assert not wrong.certify().passes(drf.default_tol)
