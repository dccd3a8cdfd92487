"""Active sets of answers that are known to a tolerance: tasks to the last digits."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.core.first_order import Equations
from fairopt.core.settled import settled
from fairopt.model.polytope import Polytope


@pytest.mark.parametrize("mechanism", [fo.AlphaPFVDS(3.0), fo.AlphaFair(0.5), fo.AlphaFair(8.0), fo.CEEI()], ids=str)
@pytest.mark.parametrize("family", ["plain", "nice", "limits"])
def test_rough_answers_settle_where_good_ones_do(mechanism: fo.mechanisms.Mechanism, family: str) -> None:
    """Tasks that are off by 1e-7, pairs without tasks included; equations are solved, and nothing is below zero."""
    rng = np.random.default_rng(0)
    for seed in range(4):
        found = mechanism.solve(draw(family, seed, 6, 4, 3), 1e-9)
        polytope = Polytope(found.cluster, found.criterion.limits(found.cluster))
        rows = polytope.log_row_prices(found.log_prices)
        rough = found.tasks * (1 + 1e-7 * rng.random(found.tasks.shape))
        rough = rough + 1e-8 * found.cluster.usable * rough.sum(axis=1, keepdims=True)
        ends = [settled(polytope, found.criterion, tasks, rows) for tasks in (found.tasks, rough)]
        np.testing.assert_allclose(ends[1].total, ends[0].total, rtol=1e-9)
        np.testing.assert_allclose(ends[0].total, found.arrays.user_tasks[polytope.users], rtol=1e-7)
        equations = Equations(ends[1])
        use = equations.uses(equations.pairs) @ ends[1].part[equations.pairs]
        np.testing.assert_allclose(use, 1, atol=1e-6)
        assert (ends[1].part >= 0).all()
