"""Where alphas are placed: at kinks, where slopes are known; no deeper than a jump; and what errors say."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from fairopt.errors import DataError
from fairopt.harness._refine import refined

Curve = Callable[[float], float]


def follow(log_tasks: Curve, slope: Curve | None, goal: float) -> tuple[list[float], list[float], int]:
    """The places t of alphas from t = 0.2 to 0.8, the errors, and how many were solved for; one user."""
    solved: list[float] = []

    def solve(alpha: float) -> tuple[float, Any]:
        t = alpha / (1 + alpha)
        solved.append(t)

        def sensitivity() -> Any:
            if slope is None:
                raise DataError("none")
            return SimpleNamespace(alpha=pd.DataFrame([[slope(t) / (1 + alpha) ** 2]]))

        return alpha, SimpleNamespace(user_tasks=np.exp([log_tasks(t)]), sensitivity=sensitivity)

    found, errors = refined(solve, [solve(0.2 / 0.8), solve(0.8 / 0.2)], goal)
    return [alpha / (1 + alpha) for alpha, _ in found], errors, len(solved)


def test_a_kink_is_found_at_once() -> None:
    places, errors, solved = follow(lambda t: abs(t - 0.37), lambda t: np.sign(t - 0.37), 1e-3)
    assert solved <= 4
    assert np.abs(np.array(places) - 0.37).min() < 1e-12
    assert max(errors[:-1]) <= 1e-3


def test_what_bends_both_ways_is_not_taken_for_straight() -> None:
    """Equal slopes at both ends, and no rise from one to the other."""
    wave = 2 * np.pi / 0.6
    places, errors, _ = follow(
        lambda t: 0.1 * np.sin(wave * (t - 0.2)), lambda t: 0.1 * wave * np.cos(wave * (t - 0.2)), 1e-2
    )
    line = np.interp(fine := np.linspace(0.2, 0.8, 500), places, 0.1 * np.sin(wave * (np.array(places) - 0.2)))
    assert np.abs(line - 0.1 * np.sin(wave * (fine - 0.2))).max() <= 1e-2
    assert max(errors[:-1]) <= 1e-2


def test_without_slopes_errors_are_measured() -> None:
    places, errors, solved = follow(lambda t: 4 * (t - 0.2) ** 2, None, 1e-2)
    assert (4 * np.diff(places) ** 2 / 4).max() <= 1e-2
    assert max(errors[:-1]) <= 1e-2
    assert solved < 30


def test_a_measured_error_is_that_of_two_halves() -> None:
    """Neither part of an interval misses by more than half of what the whole does, where tasks bend one way."""
    _, errors, solved = follow(lambda t: 0.3 * (t - 0.2) ** 2, None, 0.014)
    assert solved == 3  # the whole misses by .027
    np.testing.assert_allclose(errors[:-1], 0.0135)


def test_infinity_is_at_1() -> None:
    """Tasks that are straight in alpha / (1 + alpha), to its end."""

    def solve(alpha: float) -> tuple[float, Any]:
        t = 1.0 if np.isinf(alpha) else alpha / (1 + alpha)

        def none() -> Any:
            raise DataError("none")

        return alpha, SimpleNamespace(user_tasks=np.exp([2 * t]), sensitivity=none)

    found, errors = refined(solve, [solve(1.0), solve(np.inf)], 1e-9)
    assert len(found) == 3
    np.testing.assert_allclose(errors[:-1], 0, atol=1e-12)


def test_a_jump_is_not_divided_for_ever_and_its_error_is_said() -> None:
    _, errors, solved = follow(lambda t: float(t > 0.53), None, 1e-3)
    assert solved < 60
    assert max(errors[:-1]) > 1e-3
