"""Many users on few servers: the homotopy begins at the prices of a sample, and leaves out pairs without tasks."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.engines import welfare
from fairopt.core.game import crowd as groups
from fairopt.core.game import entropy_homotopy
from fairopt.core.game.equilibrium_system import EquilibriumSystem
from fairopt.model.problem import Problem


def crowd(seed: int) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.lognormal(0, 0.5, (3, 2)), rng.lognormal(0, 0.5, (1500, 2)))


@pytest.mark.parametrize("mechanism", [fo.AlphaPFVDS(3), fo.AlphaFair(1)], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_a_sample_leads_to_the_same_equilibrium(mechanism: fo.Mechanism, seed: int) -> None:
    problem = Problem(crowd(seed), mechanism.criterion(crowd(seed)))
    q = EquilibriumSystem.of(problem.polytope, problem.criterion)
    with np.errstate(all="ignore"):
        *_, whole = entropy_homotopy.follow(q, 1e-8)
        first, *_, sampled = entropy_homotopy.follow(q, 1e-8, warm=True, listed=True)
    assert first.tau < 0.01
    assert len(first.here.part) == len(q.user)
    here = sampled.here
    np.testing.assert_allclose(here.q.sums(here.tasks), q.sums(whole.here.tasks), rtol=1e-9)
    if mechanism == fo.AlphaPFVDS(3):
        assert len(here.part) < 0.5 * len(q.user)


def test_many_pairs_with_many_prices_are_not_followed() -> None:
    rng = np.random.default_rng(0)
    cluster = fo.Cluster(rng.lognormal(0, 0.5, (80, 1)), rng.lognormal(0, 0.5, (800, 1)))
    problem = Problem(cluster, fo.AlphaFair(64).criterion(cluster))
    q = EquilibriumSystem.of(problem.polytope, problem.criterion)
    assert next(entropy_homotopy.follow(q, 0.5, warm=True), None) is None


def test_a_crowd_that_groups_do_not_solve_is_solved_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fo.AlphaPFVDS(3).solve(crowd(1))
    monkeypatch.setattr(welfare, "CROWD", 1000)
    monkeypatch.setattr(groups, "_ROUNDS", 2)
    found = fo.AlphaPFVDS(3).solve(crowd(1))
    assert expected.stats.solver != found.stats.solver == "entropy homotopy"
    np.testing.assert_allclose(found.user_tasks, expected.user_tasks, rtol=1e-6)
    assert fo.CEEI(scope="servers").solve(crowd(1)).stats.solver == "entropy homotopy"
