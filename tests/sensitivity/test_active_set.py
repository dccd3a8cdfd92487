"""The active set is found from tasks and prices that are a percent off, with strays on every pair."""

from __future__ import annotations

import numpy as np
import pytest
from families import draw

import fairopt as fo
from fairopt.errors import SolverError
from fairopt.model.polytope import Polytope
from fairopt.sensitivity.active_set import ActiveSet, active_set
from fairopt.sensitivity.linear import LeastSquares


def rough(
    found: fo.Allocation, polytope: Polytope, rows: np.ndarray, rng: np.random.Generator, off: float
) -> ActiveSet:
    """From tasks and prices that are off by this part; what has none has some."""
    tasks, users = found.tasks, found.tasks.sum(axis=1, keepdims=True)
    strays = off * rng.random(tasks.shape) * users * found.cluster.usable
    near = tasks * (1 + off * rng.uniform(-1, 1, tasks.shape)) + strays
    some = np.where(np.isfinite(rows), rows, rows.max() + np.log(off))
    return active_set(polytope, found.criterion, near, some + off * rng.uniform(-1, 1, len(rows)))


@pytest.mark.parametrize(("off", "least"), [(1e-2, 60), (1e-1, 45)])
def test_from_rough_answers(off: float, least: int) -> None:
    agreed, refused = 0, 0
    for mechanism in (fo.AlphaFair(3.0), fo.AlphaPFVDS(3.0), fo.AlphaFair(0.5)):
        for family in ("plain", "limits", "weights"):
            for seed in range(8):
                found = mechanism.solve(draw(family, seed, 6, 4, 3), 1e-9)
                polytope = Polytope(found.cluster, found.criterion.limits(found.cluster))
                with np.errstate(divide="ignore"):
                    rows = polytope.log_row_prices(found.log_prices)
                if not np.isfinite(rows).any():
                    continue
                exact = active_set(polytope, found.criterion, found.tasks, rows)
                try:
                    near = rough(found, polytope, rows, np.random.default_rng(seed), off)
                except SolverError:
                    refused += 1
                    continue
                total, expected = (np.add.reduceat(one.tasks, polytope.start[:-1]) for one in (near, exact))
                np.testing.assert_allclose(total, expected, rtol=1e-7)
                agreed += 1
    assert agreed >= least, (agreed, refused)


def test_steps_of_singular_equations_are_damped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solutions that go far in directions that the equations hardly see are solved for again."""
    found = fo.AlphaFair(3.0).solve(draw("plain", 0, 6, 4, 3), 1e-9)
    polytope = Polytope(found.cluster, found.criterion.limits(found.cluster))
    rows = polytope.log_row_prices(found.log_prices)
    expected = rough(found, polytope, rows, np.random.default_rng(0), 1e-6)
    solve, noise = LeastSquares.solve, np.random.default_rng(0).standard_normal
    monkeypatch.setattr(LeastSquares, "solve", lambda self, given: solve(self, given) + noise(self.matrix.shape[1]))
    near = rough(found, polytope, rows, np.random.default_rng(0), 1e-6)
    np.testing.assert_allclose(near.tasks, expected.tasks, rtol=1e-7)
