"""The curve of equilibria from alpha = 1: crossings, jumps, and that nothing depends on names, units or merging."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from families import some_zero

import fairopt as fo
from fairopt.core import identification, interior
from fairopt.core.game.curve_system import CurveOptions
from fairopt.core.game.selection import MAYBE_OTHERS, SELECTIONS
from fairopt.errors import DataError

from .clusters import FIRST, JUMPS, LAST, SEVERAL


def test_all_three_equilibria_lie_on_the_curve() -> None:
    found = fo.game.equilibrium_curve(SEVERAL, [3, 20])
    three = found.crossings(3.0)
    assert [one.index for one in three] == [1, -1, 1]
    np.testing.assert_allclose(three[0].user_tasks, FIRST, rtol=1e-6)
    np.testing.assert_allclose(three[2].user_tasks, LAST, rtol=1e-6)
    assert max(one.certificate for one in three) < 1e-9
    assert not found.missing
    assert len(found.to_frame()) == 4
    known = sorted(tuple(one.arrays.user_tasks) for one in fo.game.equilibria(SEVERAL, 3.0))
    np.testing.assert_allclose(sorted(tuple(one.user_tasks) for one in three), known, rtol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_first_crossing_depends_on_no_name_and_no_unit(seed: int) -> None:
    """Nor on whether users or servers in proportion are written as one."""
    rng = np.random.default_rng(seed)
    users, servers = rng.permutation([0, 1, 2, 2]), rng.permutation([0, 1, 0])
    units, tasks = 10 ** rng.uniform(-3, 3, 3), 10 ** rng.uniform(-2, 2, 4)
    part, of = np.where(servers == 0, 0.5, 1.0), np.where(users == 2, 0.5, 1.0)
    changed = fo.Cluster(
        SEVERAL.capacity[servers] * part[:, None] * units,
        SEVERAL.demand[users] * units * tasks[:, None],
        weight=7 * SEVERAL.weight[users] * of,  # weights do not change with the unit of a task
    )
    found = fo.AlphaPFVDS(3, "curve").solve(changed).arrays.user_tasks * tasks
    np.testing.assert_allclose(np.bincount(users, found), FIRST, rtol=1e-6)


@pytest.mark.parametrize("select", SELECTIONS)
def test_selections(select: str) -> None:
    mechanism = fo.mechanisms.one(f"alphapf-vds(alpha=3, select={select!r})")
    assert mechanism == fo.AlphaPFVDS(3, select)
    assert ("select" in str(mechanism)) == (select != SELECTIONS[0])
    found = mechanism.solve(SEVERAL)
    assert found.certificate.residual < 1e-9
    if select == "welfare":
        assert found.notes == ("of 3 equilibria on the curve from alpha = 1 that of largest welfare",)
    wanted = LAST if select == "fast" else FIRST
    np.testing.assert_allclose(found.arrays.user_tasks, wanted, rtol=1e-6)


def test_an_answer_says_that_there_may_be_others_where_it_is_not_proved_the_only_one() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 2), (8, 6)):
        cluster = fo.Cluster(rng.uniform(5, 9, (shape[1], 3)), rng.uniform(0.2, 2, (shape[0], 3)))
        assert fo.AlphaPFVDS(3).solve(cluster).notes == (MAYBE_OTHERS,)
        assert list(fo.compare(cluster, [fo.AlphaPFVDS(3)], details=True)["notes"]) == [""]  # it is said of most games
        assert not fo.AlphaPFVDS(3, "curve").solve(cluster).notes
        assert not fo.AlphaPFVDS(1).solve(cluster).notes
    two, one_server = fo.Cluster([[9.0, 18], [7, 5]], [[1, 4], [3, 1]]), rng.uniform(1, 2, (40, 2))
    for proved in (two, fo.Cluster([[9.0, 18]], one_server)):
        assert not fo.AlphaPFVDS(3).solve(proved).notes


@pytest.mark.parametrize("alphas", [[0.0], [np.inf], [1.0], [3.0, -1.0]])
def test_arguments_that_no_curve_has(alphas: list[float]) -> None:
    with pytest.raises(DataError, match="select is 'slow'; it must be one of"):
        fo.AlphaPFVDS(3, "slow")
    with pytest.raises(DataError):
        fo.game.equilibrium_curve(JUMPS, alphas)
    with pytest.raises(DataError, match="no curve of equilibria"):
        fo.alpha_path(JUMPS, [2, 3], mechanism=fo.AlphaFair, hysteresis=True)


def test_a_path_shows_its_jump() -> None:
    path = fo.alpha_path(JUMPS, [10, 17.9, 18.0, 30], jumps=True)
    jumps = path.attrs["jumps"]
    assert jumps["alpha"].unique() == pytest.approx([17.9491], abs=1e-4)
    np.testing.assert_allclose(jumps["before"], [2.643866, 2.871227], rtol=1e-6)
    np.testing.assert_allclose(jumps["after"], [1.778155, 1.931069], rtol=1e-6)
    [curve] = path.draw(measures=["tasks"]).axes[0].lines
    assert np.isnan(curve.get_ydata()).sum() == 1


def test_both_sides_of_a_fold() -> None:
    path = fo.alpha_path(SEVERAL, [2.0, 3.0, 4.0], hysteresis=True)
    np.testing.assert_allclose(path.allocations[3.0].user_tasks, FIRST, rtol=1e-6)
    np.testing.assert_allclose(path.back.allocations[3.0].user_tasks, LAST, rtol=1e-6)
    for alpha in (2.0, 4.0):
        ways = path.allocations[alpha], path.back.allocations[alpha]
        np.testing.assert_allclose(ways[0].user_tasks, ways[1].user_tasks, rtol=1e-6)


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


def lognormal(seed: int, whole: bool, zeros: bool = True) -> fo.Cluster:
    """5 users on 3 servers; whole numbers, and 30% zero demands."""
    rng = np.random.default_rng([seed, 5, 3, 3])
    capacity, demand = rng.lognormal(2, 1, (3, 3)), rng.lognormal(0, 1, (5, 3))
    if whole:
        capacity, demand = np.ceil(capacity), np.ceil(2 * demand)
    if zeros:
        demand = some_zero(rng, demand, 0.7)
    return fo.Cluster(capacity, demand)


@pytest.mark.parametrize("seed", [0, 26, 61, 75, 87])
def test_a_price_that_is_all_that_a_user_would_pay_goes_to_zero(seed: int) -> None:
    """Its logarithm has no end: the user comes to the server before."""
    assert not fo.game.equilibrium_curve(lognormal(seed, seed % 2 > 0), [64.0]).missing


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
    answer = fo.AlphaPFVDS(3.0).solve(cluster)
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
def test_the_engine_begins_where_the_core_does_not(monkeypatch: pytest.MonkeyPatch, error: float) -> None:
    """And no curve begins at what is not near enough to an equilibrium."""
    found = interior.solved
    monkeypatch.setattr(
        "fairopt.core.game.curve_start.solved", lambda *given: replace(found(*given), error=np.full(1, error))
    )
    curve = fo.game.equilibrium_curve(SEVERAL, [3.0])
    np.testing.assert_allclose(curve.crossings(3.0)[0].user_tasks, FIRST, rtol=1e-6)
    monkeypatch.setattr(identification, "VIOLATED", 1e-30)
    [missing] = fo.game.equilibrium_curve(SEVERAL, [3.0]).missing
    assert "no regular equilibrium was found near alpha = 1" in missing


@pytest.mark.parametrize("seed", [27, 111])
def test_pairs_that_only_the_change_of_the_data_gave_tasks_are_dropped(seed: int) -> None:
    """The curve's data differ by 1e-8, the answer's do not."""
    [one] = fo.game.equilibrium_curve(lognormal(seed, whole=True, zeros=False), [3.0]).crossings(3.0)
    assert one.certificate < 1e-13


@pytest.mark.parametrize("seed", [900, 929, 983, 1013, 1037])
def test_curves_of_whole_numbers_come_to_their_ends(seed: int) -> None:
    """Some of these landed behind where a step began, and ran back through alpha = 1 or beyond all numbers."""
    rng = np.random.default_rng(seed)
    demand = some_zero(rng, np.ceil(2 * rng.lognormal(0, 1, (8, 3))), 0.7)
    cluster = fo.Cluster(np.ceil(4 * rng.lognormal(2, 1, (5, 3))), demand)
    found = fo.game.equilibrium_curve(cluster, [0.3, 3, 8, 16])
    assert not found.missing
    for alpha in (0.3, 3.0, 8.0, 16.0):
        one = found.crossings(alpha)[0]
        assert one.index == 1
        assert one.certificate < 1e-9
        answer = fo.AlphaPFVDS(alpha, "curve").solve(cluster, 1e-8)
        np.testing.assert_allclose(found.user_tasks(one.user_tasks), answer.arrays.user_tasks, rtol=1e-5)
