"""Many users on few servers: the homotopy begins at the prices of a sample, with servers of equal prices as one."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.choices import Choices
from fairopt.core.engines import welfare
from fairopt.core.game import crowd as by_sample
from fairopt.core.game import entropy_homotopy, groups
from fairopt.core.game.equilibrium_system import EquilibriumSystem
from fairopt.model._arrays import Index, Mask
from fairopt.model.problem import Problem


def crowd(seed: int) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.lognormal(0, 0.5, (3, 2)), rng.lognormal(0, 0.5, (1500, 2)))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand users count as a crowd."""
    monkeypatch.setattr(welfare, "CROWD", 1000)
    monkeypatch.setattr(groups, "PART", 0.5)
    monkeypatch.setattr(by_sample, "_SAMPLED", 100)


@pytest.mark.parametrize("mechanism", [fo.AlphaPFVDS(3), fo.AlphaPFVDS(64), fo.AlphaFair(1)], ids=str)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("small")
def test_a_sample_leads_to_the_same_equilibrium(mechanism: fo.Mechanism, seed: int) -> None:
    problem = Problem(crowd(seed), mechanism.criterion(crowd(seed)))
    q = EquilibriumSystem.of(problem.polytope, problem.criterion)
    with np.errstate(all="ignore"):
        *_, whole = entropy_homotopy.follow(q, 1e-8)
        *_, sampled = by_sample.solutions(problem, 1e-6, "native")
    expected = problem.polytope.allocation(whole.here.tasks / q.gamma).sum(axis=1)
    np.testing.assert_allclose(sampled.tasks.sum(axis=1), expected, rtol=1e-6)


@pytest.mark.parametrize("failing", [False, True])
def test_psdsf_begins_at_the_prices_of_a_sample_if_these_lead_to_ties(
    failing: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, begun, solved = fo.PSDSF().solve(crowd(0)), list[Choices](), Choices._solved
    request.getfixturevalue("small")

    def counted(self: Choices, going: Mask) -> Index:
        if self not in begun:
            begun.append(self)
        return np.full(1, -1) if failing and [self] == begun[1:] else np.asarray(solved(self, going))

    monkeypatch.setattr(Choices, "_solved", counted)
    found = fo.PSDSF().solve(crowd(0))
    assert [each.users for each in begun[1:]] == [1500] * (1 + failing)
    assert begun[0].users < 200
    assert expected.stats.solver == found.stats.solver == "linear programs"
    np.testing.assert_allclose(found.user_tasks, expected.user_tasks, rtol=1e-9)


@pytest.mark.parametrize("alike", [1000.0, 1e9])  # servers whose prices agree in the sample, or at first all servers
@pytest.mark.parametrize(("seed", "zones"), [(0, 1), (2, 2)])
def test_servers_of_equal_prices_are_one_zone_and_a_zone_that_lacks_something_is_split(
    seed: int, zones: int, alike: float, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([seed, 59])
    cluster = fo.Cluster(rng.lognormal(0, 0.5, (6, 3)), rng.lognormal(0, 0.5, (2000, 3)))
    expected = fo.CEEI("servers").solve(cluster)
    request.getfixturevalue("small")
    monkeypatch.setattr(by_sample, "_ALIKE", alike)
    found = fo.CEEI("servers").solve(cluster)
    assert (expected.stats.solver, found.stats.solver) == ("interior point", "sample of users")
    assert len(np.unique(found.arrays.prices.round(9), axis=0)) == zones
    np.testing.assert_allclose(found.user_tasks, expected.user_tasks, rtol=1e-6)


def test_many_pairs_with_many_prices_are_not_followed() -> None:
    rng = np.random.default_rng(0)
    cluster = fo.Cluster(rng.lognormal(0, 0.5, (80, 1)), rng.lognormal(0, 0.5, (800, 1)))
    problem = Problem(cluster, fo.AlphaFair(64).criterion(cluster))
    q = EquilibriumSystem.of(problem.polytope, problem.criterion)
    assert next(entropy_homotopy.follow(q, 0.5, warm=True), None) is None


@pytest.mark.usefixtures("small")
def test_a_crowd_without_a_sample_is_solved_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fo.AlphaPFVDS(3).solve(crowd(1))
    monkeypatch.setattr(groups, "PART", 0.0)
    found = fo.AlphaPFVDS(3).solve(crowd(1))
    assert expected.stats.solver == "groups of users"
    assert found.stats.solver == "entropy homotopy"
    np.testing.assert_allclose(found.user_tasks, expected.user_tasks, rtol=1e-6)
