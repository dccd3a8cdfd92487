"""Max-min without rounding: its proofs, and clusters over eight decades."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from families import draw

from fairopt.certificates import certify, rational
from fairopt.certificates.leximin import proofs
from fairopt.certificates.rational import Exact
from fairopt.errors import SolverError
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.model.criterion import Criterion
from fairopt.model.merging import merge

#: Seeds of `draw("wide", seed)` at which doubles did not do for one of DRF, DRFH and TSF.
HARD = [0, 7, 13, 26, 28, 33, 50, 55, 66, 67, 70, 72, 82, 88, 110, 118, 119]


def solved(cluster: Cluster, criterion: Criterion) -> Exact:
    return rational.leximin(cluster, criterion, criterion.limits(cluster))


@pytest.mark.parametrize("style", ["nice", "plain", "wide"])
def test_proofs_are_of_the_optimum_alone(style: str) -> None:
    """Change any user's tasks, a price or a limit's price in the thirtieth digit, and nothing is proved."""
    rng, checked = np.random.default_rng(0), 0
    much, little = 1 + Fraction(1, 10**30), 1 - Fraction(1, 10**30)
    for seed in range(25):
        cluster = draw(style, seed, 6, 4, 3)
        criterion = get("drfh").criterion(cluster)
        limits, found = criterion.limits(cluster), solved(cluster, criterion)
        assert proofs(found, cluster, criterion, limits) is not None
        running = np.argwhere(found.tasks > 0)
        for factor in (much, little):
            if len(running):
                tasks = found.tasks.copy()
                tasks[tuple(rng.choice(running))] *= factor
                assert proofs(found._replace(tasks=tasks), cluster, criterion, limits) is None
        held = np.unique(proofs(found, cluster, criterion, limits))
        for k in held[held >= 0]:
            prices = np.zeros_like(found.prices) + found.prices
            prices[k] = -prices[k]
            others = [j for j in range(len(prices)) if j != k]
            assert proofs(found._replace(prices=prices), cluster, criterion, limits) is None
            rest = Exact(found.tasks, found.prices[others], found.limits[others])
            assert proofs(rest, cluster, criterion, limits) is None
            checked += 1
    assert checked > 20


def test_a_price_of_a_limit_that_is_none_proves_nothing() -> None:
    """Two users have half of what there is, at prices of tasks that would make up for the rest if they had limits."""
    cluster = Cluster([[4.0]], [[1.0], [1.0]])
    criterion = get("drf").criterion(cluster)
    one = Fraction(1)
    half = Exact(*(np.full(shape, one, dtype=object) for shape in ((2, 1), (1, 1, 1), (1, 2))))
    assert proofs(half, cluster, criterion, criterion.limits(cluster)) is None


@pytest.mark.parametrize("name", ["drfh", "tsf", "asset-fairness"])
def test_none_is_given_up_and_nothing_wrong_certified(name: str) -> None:
    """Over eight decades: native, certified, the tasks of the optimum; anybody's less or more by 1e-5 do not pass."""
    rng, mechanism = np.random.default_rng(1), get(name)
    for seed in HARD:
        found = mechanism.solve(draw("wide", seed))
        assert found.stats.engine == "native"
        best = solved(merge(found.cluster, users=False).cluster, found.criterion).tasks.sum(axis=1).astype(float)
        np.testing.assert_allclose(found.arrays.user_tasks, best, rtol=1e-6, atol=0)
        if best.any():
            wrong = np.array(found.tasks)
            wrong[rng.choice(np.flatnonzero(best > 0))] *= 1 + rng.choice([-1e-5, 1e-5])
            hint = found.arrays.prices if rng.random() < 0.5 else None
            with np.errstate(all="ignore"):
                assert certify(found.cluster, wrong, found.criterion, hint)[0].residual > 1e-6


def test_drf_of_every_server_needs_no_doubles_either() -> None:
    for seed in HARD:
        assert get("per-server-drf").solve(draw("wide", seed).replace(max_tasks=None)).stats.engine == "native"
    tiny = get("per-server-drf").solve(Cluster([[9, 5], [4, 2]], [[3, 4], [0, 3]], [1, 1e-12]))
    assert tiny.certificate.optimality < 1e-12
    for server in range(2):  # each is looked at, whether or not another is right
        wrong = np.array(tiny.tasks)
        wrong[1, server] *= 0.99
        assert not certify(tiny.cluster, wrong, tiny.criterion)[0].passes()


@pytest.mark.exact
@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (None, r"user '\w+' needs \S+ of what user '\w+' needs of '\w+' of server.*too large"),
        ("declarative", r"which rounding hides\. The native engine does without"),
    ],
)
def test_what_exact_arithmetic_may_not_do_is_said(
    engine: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rational, "WORK", 0 if engine is None else rational.WORK)
    with pytest.raises(SolverError, match=said) as error:
        get("tsf").solve(draw("wide", 67), engine=engine)
    assert "bug" not in str(error.value)


def test_work_is_bounded() -> None:
    """No attempt at what would take minutes, and an end to what turns out to."""
    rng = np.random.default_rng(0)
    large = Cluster(rng.uniform(1, 2, (40, 4)), rng.uniform(1, 2, (80, 4)))
    criterion = get("drfh").criterion(large)
    assert rational.leximin(large, criterion, criterion.limits(large)) is None
    small = large.select(users=list(large.users[:6]), servers=list(large.servers[:3]))
    criterion = get("drfh").criterion(small)
    assert rational.leximin(small, criterion, criterion.limits(small), 3e-4) is None
    assert rational.leximin(small, criterion, criterion.limits(small)) is not None


def test_work_on_huge_clusters_is_guessed_without_overflow() -> None:
    """100,000 users on ten types: integers of 64 bits would not hold the guess."""
    users = 100_000
    shared = Cluster(np.ones((10, 2)), np.ones((users, 2)))
    assert not rational.tried(shared, np.full(users, np.inf), 0.05)
