"""What went wrong numerically once, by its symptom; each test fails if that comes back."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from reference import reference

from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster

from .symptoms import ENGINES, Array, nine_eighteen


def one_resource(alpha: float, capacity: float, demand: Array, weight: Array, unit: Array) -> Array:
    """Alpha-fair on `sum d x = C`: `x_n ~ phi_n u_n^(1/alpha - 1) d_n^(-1/alpha)`, by its KKT conditions."""
    part = weight * unit ** (1 / alpha - 1) * demand ** (-1 / alpha)
    return capacity * part / (part @ demand)


# -- alpha near 1: powers that lose all digits --------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("alpha", [0.5, 0.999, 0.9999, 1.0, 1.0001, 1.7, 50.0, 500.0])
def test_one_resource_is_exact(alpha: float, engine: str) -> None:
    demand, weight = np.array([1.0, 2.0, 5.0, 0.3]), np.array([1.0, 3.0, 2.0, 0.5])
    cluster = Cluster([[60.0]], demand[:, None], weight)
    unit = np.array([1.0, 1.0, 4.0, 9.0])  # not in proportion to the demand, or alpha would not matter
    found = get("alpha-fair", alpha=alpha, share=tuple(unit)).solve(cluster, engine=engine)
    np.testing.assert_allclose(
        found.arrays.user_tasks, one_resource(alpha, 60.0, demand, weight, unit), rtol=1e-4 if alpha < 50 else 1e-5
    )


# -- large alpha: users whose welfare cannot be seen beside that of others -----------------------

#: Users on servers of their own, whose levels differ by 10 and more, and two who share.
TWO_LEVELS = Cluster(
    [[1, 4], [10, 40], [300, 7]],
    [[1, 1], [1, 3], [2, 1], [1, 1]],
    weight=[1, 2, 1, 1],
    eligible=[[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]],
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("alpha", [20.0, 50.0, 100.0, 500.0])
def test_users_of_invisible_welfare_are_served_at_large_alpha(alpha: float, engine: str) -> None:
    np.testing.assert_allclose(
        get("alpha-fair", alpha=alpha).solve(EXAMPLE, engine=engine).arrays.user_tasks, nine_eighteen(alpha), rtol=1e-5
    )
    found = get("alpha-fair", alpha=alpha).solve(TWO_LEVELS, engine=engine).arrays.user_tasks
    near = get("alpha-fair", alpha=alpha).solve(TWO_LEVELS)
    prices = near.log_prices + np.log(TWO_LEVELS.capacity)
    exact = reference(TWO_LEVELS, alpha, "global", near.tasks, prices, near.criterion.share)
    np.testing.assert_allclose(found, exact.user_tasks, rtol=1e-4)
    # Users alone on a server get all of it, at every alpha, however little their welfare shows beside the others'.
    np.testing.assert_allclose(found[[0, 3]], [1, 7], rtol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("alpha", [50.0, 500.0])
def test_no_overflow_next_to_a_user_at_its_limit(alpha: float, engine: str) -> None:
    """The satisfied user's marginal welfare is 1e300 times the other's: no overflow, and both are right."""
    cluster = Cluster([[1, 1]], [[1, 2], [2, 1]], max_tasks=[np.inf, 0.01])
    found = get("alpha-fair", alpha=alpha).solve(cluster, engine=engine)
    np.testing.assert_allclose(found.arrays.user_tasks, [0.495, 0.01], rtol=1e-5)


def test_rich_users_are_not_left_anywhere() -> None:
    """Solving once leaves rich users anywhere: why they are fixed one scale at a time. Their welfare is invisible."""
    rich = TWO_LEVELS.with_capacity("server3", [3e5, 7e3])
    share = tuple(rich.dominant_share_per_task * np.array([1.0, 1.0, 1.0, 1e3]))
    mechanism = get("alpha-fair", alpha=3.0, share=share)
    for engine in ENGINES:
        right = mechanism.solve(rich, engine=engine).arrays.user_tasks
        np.testing.assert_allclose(right[[0, 3]], [1, 7e3], rtol=1e-6)
