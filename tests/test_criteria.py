"""Criteria: levels and marginals from their formulas, the loss against a direct maximisation, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from families import EXAMPLE
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from fairopt.errors import DataError
from fairopt.model.criterion import criterion

PAIR = EXAMPLE.replace(weight=[2, 0.5], max_tasks=[5, np.inf])
ALPHAS = st.sampled_from([0.0, 0.3, 0.9999, 1.0, 1.0001, 2.0, 7.0])


def utility(alpha: float, weight: float, share: float, tasks: np.ndarray) -> np.ndarray:
    """`phi f_alpha(u x / phi)`."""
    t = share * tasks / weight
    return np.asarray(weight * (np.log(t) if alpha == 1 else (t ** (1 - alpha) - 1) / (1 - alpha)))


@given(ALPHAS, st.floats(0.1, 10), st.floats(0.1, 10))
def test_marginal_is_the_derivative(alpha: float, x: float, share: float) -> None:
    own = criterion(PAIR, np.array([share, 1.0]), alpha, "pool")
    apart = np.array([-1e-5, 1e-5]) * x
    slope = np.diff(utility(alpha, 2.0, share, x + apart))[0] / np.ptp(apart)
    assert np.exp(own.log_marginal(np.array([x, 1.0])))[0] == pytest.approx(slope, rel=1e-4)


@given(ALPHAS, st.floats(0.2, 5), st.floats(0.05, 20))
def test_loss_is_what_the_best_purchase_would_gain(alpha: float, x: float, cheap: float) -> None:
    """`max over low <= x' <= high of U(x') - p x'` less its value at x, by looking at many x', and where U' = p."""
    own = criterion(PAIR, np.array([0.7, 1.0]), alpha, "pool")
    log_marginal = own.log_marginal(np.array([x, 1.0]))
    price = np.exp(log_marginal) * cheap
    tasks = np.append(np.linspace(0.1, 8, 20001), [np.clip(x * cheap ** (-1 / max(alpha, 0.1)), 0.1, 8), x])
    value = utility(alpha, 2.0, 0.7, tasks) - price[0] * tasks
    loss = own.bregman(np.array([x, 1.0]), log_marginal, price, np.full(2, 0.1), np.full(2, 8.0))
    assert loss[0] == pytest.approx(value.max() - value[-1], rel=1e-4, abs=1e-5)
    assert (loss >= 0).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 100.0])
def test_no_tasks_are_an_infinite_loss(alpha: float) -> None:
    """An infinite slope, unless nothing could be had anyway; at its own prices nobody loses."""
    own, x = criterion(PAIR, np.array([0.7, 1.0]), alpha, "pool"), np.array([1.0, 3.0])
    log_marginal = own.log_marginal(x)
    assert_allclose(own.bregman(x, log_marginal, np.exp(log_marginal), 0 * x, 9 * x), 0, atol=1e-12)
    assert own.bregman(0 * x, log_marginal, np.ones(2), 0 * x, np.array([1.0, 0.0])).tolist() == [np.inf, 0]


def test_levels_and_limits() -> None:
    own = criterion(PAIR, np.array([2 / 9, 1 / 3]), np.inf, "pool", cap=np.array([7, 1.5]))
    assert_allclose(own.levels(np.array([3.0, 2.0])), [1 / 3, 4 / 3])
    assert_array_equal(own.limits(PAIR), [5, 1.5])
    game = criterion(PAIR, np.array([[0.25], [0.5]]), 2.0, "game")
    assert_allclose(game.levels(np.array([4.0, 1.0])), [[0.5], [1]])
    only = own.restrict(np.array([1]))
    assert (only.share, only.cap, only.weight) == (1 / 3, 1.5, 0.5)


def test_bad_criteria() -> None:
    for alpha in (-0.1, np.nan):
        with pytest.raises(DataError, match=r"alpha is .*; it must be a number from 0"):
            criterion(PAIR, np.ones(2), alpha, "pool")
    with pytest.raises(DataError, match=r"the share must have shape \(2,\) here"):
        criterion(PAIR, np.ones(3), 1.0, "pool")
    for bad in (0.0, np.nan):
        with pytest.raises(DataError, match="the share per task of user 'user2' must be > 0") as caught:
            criterion(PAIR, np.array([1.0, bad]), 1.0, "servers")
        assert caught.value.where == ("users", 1)
