"""The curve of equilibria from alpha = 1: crossings, jumps, and that nothing depends on names, units or merging."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fairopt as fo
from fairopt.errors import DataError
from fairopt.game.curve import _begin
from fairopt.game.curve.options import CurveOptions
from fairopt.game.selection import MAYBE_OTHERS, SELECTIONS

Array = NDArray[np.float64]

#: Several equilibria at alpha = 3 (docs/equilibria.md), and the two that are stable.
SEVERAL = {
    "capacity": np.array([[20.0, 11, 2], [3, 9, 4]]),
    "demand": np.array([[1.0, 9, 8], [3, 8, 1], [16, 8, 1]]),
    "weight": np.array([2.0, 1, 2]),
}
FIRST, LAST = np.array([0.4693006, 0.7415440, 1.2304929]), np.array([0.4332609, 0.6877588, 127 / 104])
#: Jumps at alpha = 17.9491.
JUMPS = fo.Cluster([[11, 9], [8, 8]], [[6, 1], [1, 5]])


def several(**changes: Any) -> fo.Cluster:
    return fo.Cluster(**(SEVERAL | changes))


def drawn(seed: int, users: int = 4, servers: int = 3, resources: int = 3) -> fo.Cluster:
    """Whole numbers, every other one with zero demands, some with task counts."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(seed % 2, 9, (users, resources)).astype(float)
    demand[~demand.any(axis=1), 0] = 1.0
    limit = np.where(rng.random(users) < (0.3 if seed % 5 == 0 else 0.0), rng.uniform(0.5, 2, users), np.inf)
    return fo.Cluster(rng.integers(1, 21, (servers, resources)).astype(float), demand, max_tasks=limit)


def test_all_three_equilibria_lie_on_the_curve() -> None:
    found = fo.game.equilibrium_curve(several(), [3, 20])
    three = found.crossings(3.0)
    assert [one.index for one in three] == [1, -1, 1]
    np.testing.assert_allclose(three[0].user_tasks, FIRST, rtol=1e-6)
    np.testing.assert_allclose(three[2].user_tasks, LAST, rtol=1e-6)
    assert max(one.certificate for one in three) < 1e-9
    assert not found.missing
    assert len(found.to_frame()) == 4


def test_enumeration_knows_the_same() -> None:
    known = sorted(tuple(one.arrays.user_tasks) for one in fo.game.equilibria(several(), 3.0))
    curve = sorted(tuple(one.user_tasks) for one in fo.game.equilibrium_curve(several(), [3, 20]).crossings(3.0))
    np.testing.assert_allclose(curve, known, rtol=1e-7)


def test_the_jump_of_two_users() -> None:
    jumps = fo.game.equilibrium_curve(JUMPS, [30]).jumps()
    assert jumps["alpha"].unique() == pytest.approx([17.9491], abs=1e-4)
    np.testing.assert_allclose(jumps["before"], [2.643866, 2.871227], rtol=1e-6)
    np.testing.assert_allclose(jumps["after"], [1.778155, 1.931069], rtol=1e-6)


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_crossings_are_certified_equilibria(seed: int) -> None:
    """Tasks of the curve, judged by the certificate that knows no curve; indices add up along it."""
    cluster = drawn(seed)
    alpha = float(np.exp(np.random.default_rng(seed).uniform(-2, 3)))
    found = fo.game.equilibrium_curve(cluster, [alpha])
    assert not found.missing
    one = found.crossings(alpha)[0]
    answer = fo.AlphaPFVDS(alpha, "curve").solve(cluster, 1e-8)
    np.testing.assert_allclose(found.user_tasks(one.user_tasks), answer.arrays.user_tasks, rtol=1e-5)
    assert one.index == 1 or np.isfinite(cluster.max_tasks).any()


@pytest.mark.parametrize("seed", range(4))
def test_the_first_crossing_depends_on_no_name_and_no_unit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    users, servers = rng.permutation(3), rng.permutation(2)
    units = 10 ** rng.uniform(-3, 3, 3)
    tasks = 10 ** rng.uniform(-2, 2, 3)
    changed = fo.Cluster(
        SEVERAL["capacity"][servers] * units,
        (SEVERAL["demand"] * units * tasks[:, None])[users],
        weight=7 * SEVERAL["weight"][users],
    )
    # weights do not change with the unit of a task
    found = fo.AlphaPFVDS(3, "curve").solve(changed).arrays.user_tasks * tasks[users]
    np.testing.assert_allclose(found, FIRST[users], rtol=1e-6)


def test_the_first_crossing_is_that_of_merged_users_and_servers() -> None:
    c, d, w = (SEVERAL[name] for name in ("capacity", "demand", "weight"))
    split = fo.Cluster([c[0] * 0.25, c[1], c[0] * 0.75], [d[0], d[1], d[2], 2 * d[2]], weight=[w[0], w[1], 0.5, 1.5])
    found = fo.AlphaPFVDS(3, "curve").solve(split).arrays.user_tasks
    np.testing.assert_allclose([found[0], found[1], found[2] + 2 * found[3]], FIRST, rtol=1e-6)


@pytest.mark.parametrize("select", SELECTIONS)
def test_selections(select: str) -> None:
    found = fo.AlphaPFVDS(3, select).solve(several())
    assert found.certificate.residual < 1e-9
    wanted = LAST if select == "fast" else FIRST
    np.testing.assert_allclose(found.arrays.user_tasks, wanted, rtol=1e-6)


def test_a_selection_is_part_of_the_text() -> None:
    [one] = fo.mechanisms.parse("alphapf-vds(alpha=3, select=curve)")
    assert one == fo.AlphaPFVDS(3, "curve")
    assert "select=curve" in str(one)
    assert "select" not in str(fo.AlphaPFVDS(3))
    with pytest.raises(DataError, match="select is 'slow'; it must be one of fast"):
        fo.AlphaPFVDS(3, "slow")


def test_an_answer_says_that_there_may_be_others_where_it_is_not_proved_the_only_one() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 2), (8, 6)):
        cluster = fo.Cluster(rng.uniform(5, 9, (shape[1], 3)), rng.uniform(0.2, 2, (shape[0], 3)))
        assert fo.AlphaPFVDS(3).solve(cluster).notes == (MAYBE_OTHERS,)
        assert list(fo.compare(cluster, [fo.AlphaPFVDS(3)])["notes"]) == [""]  # it is said of most games
        assert not fo.AlphaPFVDS(3, "curve").solve(cluster).notes
        assert not fo.AlphaPFVDS(1).solve(cluster).notes
    two, one_server = fo.Cluster([[9.0, 18], [7, 5]], [[1, 4], [3, 1]]), rng.uniform(1, 2, (40, 2))
    for proved in (two, fo.Cluster([[9.0, 18]], one_server)):
        assert not fo.AlphaPFVDS(3).solve(proved).notes


@pytest.mark.parametrize("alphas", [[0.0], [np.inf], [1.0], [3.0, -1.0]])
def test_alphas_that_no_curve_has(alphas: list[float]) -> None:
    with pytest.raises(DataError):
        fo.game.equilibrium_curve(JUMPS, alphas)


def test_a_path_shows_its_jump() -> None:
    path = fo.alpha_path(JUMPS, [10, 17.9, 18.0, 30], jumps=True)
    assert path.attrs["jumps"]["alpha"].unique() == pytest.approx([17.9491], abs=1e-4)
    [curve] = path.draw(measures=["tasks"]).axes[0].lines
    assert np.isnan(curve.get_ydata()).sum() == 1


def test_both_sides_of_a_fold() -> None:
    path = fo.alpha_path(several(), [2.0, 3.0, 4.0], hysteresis=True)
    np.testing.assert_allclose(path.allocations[3.0].user_tasks, FIRST, rtol=1e-6)
    np.testing.assert_allclose(path.back.allocations[3.0].user_tasks, LAST, rtol=1e-6)
    for alpha in (2.0, 4.0):
        ways = path.allocations[alpha], path.back.allocations[alpha]
        np.testing.assert_allclose(ways[0].user_tasks, ways[1].user_tasks, rtol=1e-6)


def test_what_has_no_curve() -> None:
    with pytest.raises(DataError, match="no curve of equilibria"):
        fo.alpha_path(JUMPS, [2, 3], mechanism=fo.AlphaFair, hysteresis=True)


def test_servers_of_very_different_size() -> None:
    """What a large merged server has of a user would be far more than a small one can hold."""
    rng = np.random.default_rng(5)
    size = 10 ** rng.uniform(-4, 0, (6, 1))
    demand = rng.uniform(0.2, 1, (4, 2))
    cluster = fo.Cluster(size * rng.uniform(0.5, 1, (6, 2)), demand)
    found = fo.game.equilibrium_curve(cluster, [0.2, 30.0])
    assert not found.missing
    np.testing.assert_allclose(
        found.crossings(30.0)[0].user_tasks, fo.AlphaPFVDS(30.0, "fast").solve(cluster).arrays.user_tasks, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("shape", "seed", "alpha"), [((4, 3, 3), 453, 64.0), ((5, 3, 3), 272, 0.1), ((5, 3, 3), 530, 0.1)]
)
def test_users_who_share_a_bottleneck_on_two_servers(shape: tuple[int, int, int], seed: int, alpha: float) -> None:
    """They tie on both at once, unless the data are changed so that differences of any two pairs differ."""
    users, servers, resources = shape
    rng = np.random.default_rng([seed, *shape])
    capacity, demand = rng.integers(1, 21, (servers, resources)), rng.integers(1, 13, (users, resources))
    cluster = fo.Cluster(capacity.astype(float), demand.astype(float), weight=rng.integers(1, 3, users).astype(float))
    assert not fo.game.equilibrium_curve(cluster, [alpha]).missing


@pytest.mark.parametrize("seed", [26, 75, 87])
def test_a_price_that_is_all_that_a_user_would_pay_goes_to_zero(seed: int) -> None:
    """Its logarithm has no end: the user comes to the server before."""
    rng = np.random.default_rng([seed, 5, 3, 3])
    capacity, demand = rng.lognormal(2, 1, (3, 3)), rng.lognormal(0, 1, (5, 3))
    if seed % 2:
        capacity, demand = np.ceil(capacity), np.ceil(2 * demand)
    demand *= rng.random(demand.shape) < 0.7
    demand[~demand.any(axis=1), 0] = 1
    assert not fo.game.equilibrium_curve(fo.Cluster(capacity, demand), [64.0]).missing


def test_where_everybody_has_all_its_tasks_the_curve_stands_still() -> None:
    rng = np.random.default_rng(3)
    capacity, demand = rng.uniform(5, 9, (6, 2)), rng.uniform(1, 2, (4, 2))
    limit = np.array([4.0, 1.0, 3.0, 2.0])
    cluster = fo.Cluster(capacity, demand, max_tasks=limit)
    found = fo.game.equilibrium_curve(cluster, [0.2, 2.0, 9.0])
    assert not found.missing
    for alpha in (0.2, 2.0, 9.0):
        [one] = found.crossings(alpha)
        np.testing.assert_allclose(one.user_tasks, limit, rtol=1e-9)
        assert (one.tasks.T @ demand <= capacity * (1 + 1e-9)).all()
    for servers in (6, 60):  # 240 pairs: the curve is not followed, and need not be
        more = fo.Cluster(
            np.vstack([capacity] + [rng.uniform(5, 9, (6, 2))] * (servers // 6 - 1)), demand, max_tasks=limit
        )
        answer = fo.AlphaPFVDS(3.0).solve(more)
        np.testing.assert_allclose(answer.arrays.user_tasks, limit, rtol=1e-7)
        assert not any("curve" in note for note in answer.notes)
    tight = fo.game.equilibrium_curve(fo.Cluster(capacity, demand, max_tasks=10 * limit), [3.0])
    assert (tight.crossings(3.0)[0].user_tasks < 9.9 * limit).any()


def test_a_cluster_that_is_too_large_for_the_curve_is_named() -> None:
    rng = np.random.default_rng(0)
    cluster = fo.Cluster(rng.uniform(5, 9, (4, 2)), rng.uniform(1, 2, (6, 2)))
    [missing] = fo.game.equilibrium_curve(cluster, [3.0], options=CurveOptions(most_pairs=20)).missing
    assert "more pairs (user, server) than CurveOptions.most_pairs" in missing


@pytest.mark.parametrize("error", [1e-6, np.inf])
def test_a_beginning_that_is_not_near_enough_is_none(monkeypatch: pytest.MonkeyPatch, error: float) -> None:
    found = _begin.solved
    monkeypatch.setattr(_begin, "solved", lambda *given: replace(found(*given), error=np.full(1, error)))
    [missing] = fo.game.equilibrium_curve(several(), [3.0]).missing
    assert "no regular equilibrium was found near alpha = 1" in missing


def test_welfare_compares_all_crossings_and_says_of_how_many() -> None:
    notes = fo.AlphaPFVDS(3, "welfare").solve(several()).notes
    assert notes == ("of 3 equilibria on the curve from alpha = 1 that of largest welfare",)


@pytest.mark.parametrize("seed", [27, 111])
def test_pairs_that_only_the_change_of_the_data_gave_tasks_are_dropped(seed: int) -> None:
    """The curve's data differ by 1e-8, the answer's do not."""
    rng = np.random.default_rng([seed, 5, 3, 3])
    capacity, demand = np.ceil(rng.lognormal(2, 1, (3, 3))), np.ceil(2 * rng.lognormal(0, 1, (5, 3)))
    [one] = fo.game.equilibrium_curve(fo.Cluster(capacity, demand), [3.0]).crossings(3.0)
    assert one.certificate < 1e-13


@pytest.mark.parametrize("seed", [900, 929, 983, 1013, 1037])
def test_curves_of_whole_numbers_come_to_their_ends(seed: int) -> None:
    """Some of these landed behind where a step began, and ran back through alpha = 1 or beyond all numbers."""
    rng = np.random.default_rng(seed)
    demand = np.ceil(2 * rng.lognormal(0, 1, (8, 3)))
    demand *= rng.random(demand.shape) < 0.7
    demand[~demand.any(axis=1), 0] = 1
    found = fo.game.equilibrium_curve(fo.Cluster(np.ceil(4 * rng.lognormal(2, 1, (5, 3))), demand), [0.3, 3, 8, 16])
    assert not found.missing
    assert all(found.crossings(alpha)[0].certificate < 1e-9 for alpha in (0.3, 3.0, 8.0, 16.0))
