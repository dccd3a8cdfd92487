"""The game's own backward error, on which its interior point ends, against the judge's."""

from __future__ import annotations

import numpy as np
import pytest
from families import FAMILIES, draw

import fairopt as fo
from fairopt.certificates.backward import error_at, log_price_per_task
from fairopt.game.equilibrium.interior import FIRST, run
from fairopt.game.equilibrium.kkt_system import KKTSystem
from fairopt.game.model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from fairopt.model.problem import Problem


def points(problem: Problem, alpha: float) -> tuple[EquilibriumSystem, list[EquilibriumPoint]]:
    """Every point of one run that prices all pairs in the power alpha."""
    system = EquilibriumSystem.of(problem.polytope, problem.criterion)
    pairs = np.arange(len(system.gamma))
    with np.errstate(all="ignore"):
        found = [one for one in run(system, FIRST, 1e-9, level=1e-9) if one.backward < np.inf]
    return system, [one.point if one.inside is None else system.whole(one.point, pairs[one.inside]) for one in found]


def judged(problem: Problem, system: EquilibriumSystem, point: EquilibriumPoint, tau: float) -> float:
    """The judge's error of the same tasks, at prices in the scale that fits every server best."""
    polytope, tasks = problem.polytope, np.zeros((len(problem.cluster.users), len(problem.cluster.servers)))
    tasks[polytope.users[polytope.pair_user], polytope.pair_server] = point.tasks * system.largest[polytope.pair_user]
    rows = (system.alpha * point.log_price)[polytope.row_server, polytope.row_resource]
    assert np.isfinite(log_price_per_task(polytope, rows)).all()
    return error_at(polytope, problem.criterion, tasks, rows, tau)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_as_the_judge_finds_it(family: str, alpha: float) -> None:
    least = []
    for seed in range(4):
        cluster = draw(family, seed)
        problem = Problem(cluster, fo.AlphaPFVDS(alpha).criterion(cluster))
        system, found = points(problem, alpha)
        for point in found:
            here = KKTSystem(system, point, alpha, alpha, False)
            for tau in (1e-3, 1e-9):
                own = here.backward(tau)
                # A user's level and the sum of its tasks differ by no more than is in `own`, and count beside it.
                assert judged(problem, system, point, tau) <= 3 * own + 1e-13, (seed, tau)
                least.append(own)
    assert min(least) <= 1e-8  # the bound is no empty one
