"""The smoothing continuation: its tangent, and that it ends at equilibria where ties abound."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

import fairopt as fo
from benchmarks.families import FAMILIES
from fairopt.core.game import equilibria
from fairopt.core.game.equilibrium_system import EquilibriumSystem
from fairopt.core.game.rounds import Sweeps
from fairopt.mechanisms._solve import with_refinement
from fairopt.model.problem import Problem

from .clusters import equations


def tied(seed: int) -> fo.Cluster:
    """Small integers, many zero demands: users and servers that tie exactly."""
    rng = np.random.default_rng(seed)
    demand = rng.integers(0, 3, (10, 3)).astype(float)
    demand[~demand.any(axis=1), 0] = 1.0
    return fo.Cluster(rng.integers(1, 4, (5, 3)).astype(float), demand, rng.integers(1, 3, 10))


@pytest.mark.parametrize("alpha", [0.5, 3.0, 8.0, 64.0])
def test_it_ends_at_an_equilibrium(alpha: float) -> None:
    mechanism = fo.AlphaPFVDS(alpha)
    for seed in (3, 4):
        problem = equations(tied(seed), alpha)
        shared = problem.polytope.cluster
        offers = list(equilibria._smoothed_path(problem, 3e-9))
        by = [one.runs[-1].solver for one in offers]
        assert by == sorted(by, reverse=True)  # responses, from its end: once they may do, and when they are done
        assert by.count("best responses") >= (2 if alpha <= 8 else 1)
        found = offers[by.index("best responses") - 1]
        assert found.status == "converged", f"seed {seed}"
        better = with_refinement(Problem(shared, mechanism.criterion(shared)), found)
        assert mechanism.certify(shared, better.tasks, better.log)[0].residual <= 1e-6
        if alpha <= 3:  # with ties and large alpha tasks answer strongly to what is left to exploit
            solved = mechanism.solve(shared, 1e-8)
            np.testing.assert_allclose(found.tasks.sum(axis=1), solved.arrays.user_tasks, rtol=1e-4)


def test_responses_from_its_end_stop_when_changes_no_longer_shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a tolerance below rounding; they went on for 320 rounds, of seconds on larger clusters."""
    rounds, sweep = [], Sweeps.gauss_seidel
    monkeypatch.setattr(Sweeps, "gauss_seidel", lambda *given: rounds.append(1) or sweep(*given))
    shared = FAMILIES["integers"](12, 6, np.random.default_rng([1, 7]))
    criterion = fo.AlphaFair(16.0).criterion(shared)
    system = EquilibriumSystem.of(Problem(shared, criterion).polytope, criterion)
    assert list(equilibria._smoothed_path(system, 1e-30))[-1].runs[-1].solver == "best responses"
    assert 0 < len(rounds) < 150


def test_prices_that_are_many_decades_apart_are_followed() -> None:
    """Powers of 64 of prices overflow factors in single precision, with which the curve ended after six points."""
    q = equations(FAMILIES["zeros"](200, 100, np.random.default_rng(0)), 64.0)
    points = list(islice(equilibria.follow(q), 12))
    assert len(points) == 12
    assert points[-1][0].log_mu < np.log(0.05)
