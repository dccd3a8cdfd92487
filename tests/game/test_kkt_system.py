"""Steps of the game's interior point: the linear equations they solve, and what correctors are for."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.game.equilibrium import interior, kkt_system
from fairopt.game.equilibrium.kkt_system import KKTSystem
from fairopt.game.model.equilibrium_system import EquilibriumSystem
from fairopt.model.polytope import Polytope


def game(alpha: float, seed: int = 0) -> EquilibriumSystem:
    rng = np.random.default_rng(seed)
    shared = fo.Cluster(100 * np.exp(0.5 * rng.standard_normal((15, 3))), np.exp(0.5 * rng.standard_normal((40, 3))))
    polytope = Polytope(shared, shared.max_tasks)
    return EquilibriumSystem(polytope, shared.weight[polytope.users], alpha)


def on_the_way(q: EquilibriumSystem, steps: int) -> KKTSystem:
    """After so many steps."""
    with np.errstate(all="ignore"):
        for found in interior.run(q, interior.FIRST, 1e-12):
            if found.steps == steps:
                return KKTSystem(q, found.point, q.alpha, q.power, False)
    raise AssertionError("over before that")


@pytest.mark.parametrize("alpha", [0.5, 2.0, 4.0])
def test_steps_solve_the_linear_equations(alpha: float) -> None:
    here = on_the_way(game(alpha), 4)
    q, at, target = here.equations, here.point, 1e-3
    tasks, slack, price, level, idle = here.newton(target)
    each = np.diff(q.start)
    products = (
        at.slack * tasks + at.tasks * slack + at.tasks * at.slack - q.power * target * np.repeat(here.total, each)
    )
    slope = np.einsum("pr,pr->p", here.right, price[q.server]) - np.repeat(level, each)
    capacity = np.where(q.row, here.excess + q.used(tasks) + idle, 0.0)
    rows = np.where(q.row, here.measure * (at.idle + idle + at.idle * price) - target, 0.0)
    users = here.gap + np.add.reduceat(tasks, q.start[:-1]) + here.slope * level
    for wrong in (products, at.slack + slack - here.true - slope, capacity, rows, users):
        assert np.abs(wrong).max() < 1e-8


def test_correctors_lengthen_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kkt_system, "ROWS_PER_CORRECTOR", 1)
    longer = 0
    for seed in range(4):
        here = on_the_way(game(3.0, seed), 5)
        aim = here.newton(0.0)
        plain = here.longest(here.newton(0.01 * here.average, aim[0] * aim[1], here.measure * aim[2] * aim[4]))
        corrected = here.longest(here.corrected(0.01 * here.average, aim))
        assert corrected >= plain
        longer += corrected > 1.05 * plain
    assert longer >= 2


def test_small_games_do_without_correctors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their matrices cost no more than a corrector."""
    here = on_the_way(game(3.0), 5)
    aim = here.newton(0.0)
    solved: list[float] = []
    original = KKTSystem.newton

    def counted(self: KKTSystem, target: float, *others: object) -> kkt_system.Steps:
        solved.append(target)
        return original(self, target, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(KKTSystem, "newton", counted)
    here.corrected(0.01 * here.average, aim)
    assert len(solved) == 1
