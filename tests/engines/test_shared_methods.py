"""What several algorithms share: damped Newton, control of steps, Gondzio's correctors, column screening, pointers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.engines.linalg import column_screening, gondzio
from fairopt.engines.linalg.damped_newton import DampingOptions, backtracked, damped_newton
from fairopt.engines.linalg.gondzio import CorrectorOptions
from fairopt.engines.linalg.step_control import FactorControl, StepControl, signed_length
from fairopt.model._pointers import by_group, row_pointers

numbers = st.floats(-10, 10)


def root_of_arctan(start: float, most: int, shortest: float = 1e-3) -> tuple[float | None, int, int]:
    """arctan x = 0, from where Newton's method without damping runs away (|x| > 1.39)."""
    return damped_newton(
        start,
        lambda x: abs(np.arctan(x)) < 1e-12,
        lambda x: -np.arctan(x) * (1 + x**2),
        lambda x, step, t: x + t * step,
        lambda x: abs(np.arctan(x)),
        most,
        DampingOptions(shortest=shortest),
    )


@pytest.mark.parametrize("start", [1.0, 3.0, -20.0])
def test_damping_keeps_newton_from_running_away(start: float) -> None:
    here, steps, systems = root_of_arctan(start, 50)
    assert here is not None
    assert abs(here) < 1e-11
    assert 0 < steps == systems <= 50


def test_newton_gives_up_after_its_steps_and_where_no_step_helps() -> None:
    assert root_of_arctan(3.0, 2) == (None, 2, 2)
    assert root_of_arctan(3.0, 50, shortest=0.9) == (None, 0, 1)
    assert root_of_arctan(0.0, 0) == (0.0, 0, 0)
    singular = damped_newton(1.0, lambda x: False, lambda x: None, lambda x, s, t: x, lambda x: x, 5, DampingOptions())
    assert singular == (None, 0, 0)


@given(st.floats(0.1, 0.9), st.floats(1e-6, 0.5), st.floats(1e-3, 1))
def test_the_first_length_that_succeeds(shorter: float, sufficient: float, first: float) -> None:
    tried: list[float] = []

    def attempt(length: float) -> str | None:
        tried.append(length)
        return "here" if length <= sufficient else None

    found, length = backtracked(attempt, first, shorter, 1e-4)
    np.testing.assert_allclose(tried, first * shorter ** np.arange(len(tried)))
    if found is None:
        assert length < 1e-4
        assert min(tried) > sufficient
    else:
        assert length == tried[-1] <= sufficient
        assert all(one > sufficient for one in tried[:-1])


def test_the_next_length_is_by_corrections() -> None:
    control = StepControl(1.0, 3.0, 0.1, 0.5, (2.0, 1.0, 0.5))
    assert [control.after(1.0, k) for k in range(3)] == [2.0, 1.0, 0.5]
    assert control.after(2.0, 0) == 3.0
    assert control.most == 2
    factors = FactorControl(1.0, 9.0, 0.1, 0.5, (2.0, 1.0, 0.5))
    assert [factors.after(4.0, k) for k in range(3)] == [9.0, 4.0, 2.0]


@given(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=3, max_size=3))
def test_a_tangent_goes_on(one: list[float], other: list[float]) -> None:
    along, before = np.array(one), np.array(other)
    length = signed_length(along, before, lambda a, b: float(a @ b))
    assert abs(length) == pytest.approx(np.linalg.norm(along))
    assert length * (along @ before) >= 0
    assert signed_length(along, None, lambda a, b: float(a @ b)) <= 0


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=8), st.floats(1e-3, 10))
def test_products_come_back_to_their_neighbourhood(values: list[float], target: float) -> None:
    options, products = CorrectorOptions(low=0.1, high=10.0), np.array(values)
    more = gondzio.beyond(products, target, options)
    inside = (products >= 0.1 * target) & (products <= 10 * target)
    assert (more[inside] == 0).all()
    assert (more >= -10 * target).all()  # not too much at once
    after = products + more
    np.testing.assert_allclose(after[products < 0.1 * target], 0.1 * target)
    assert (after[(products > 10 * target) & (products <= 20 * target)] <= 10 * target * (1 + 1e-12)).all()


def test_correctors_go_on_while_they_pay() -> None:
    """Steps are their lengths; every corrector aims at `min(1, stretch t + longer)`."""
    options, seen = CorrectorOptions(most=5, full=0.9, stretch=1.0, longer=0.3, gain=0.1), []

    def retried(step: float, far: gondzio.Lengths) -> float:
        seen.append(far[0])
        return step + gains.pop(0)

    gains = [0.2, 0.2, 0.02, 0.5]
    step, lengths = gondzio.corrected(0.2, retried, lambda step: (step,), options)
    assert step == pytest.approx(0.6)  # the third brought less than a tenth of what it hoped for
    assert lengths == (step,)
    np.testing.assert_allclose(seen, [0.5, 0.7, 0.9])
    gains = [0.2] * 9
    assert gondzio.corrected(0.0, retried, lambda step: (step,), options)[0] == pytest.approx(1.0)
    assert gondzio.corrected(0.0, retried, lambda step: (step,), options, most=0)[0] == 0.0
    assert gondzio.corrected(0.95, retried, lambda step: (step,), options)[0] == 0.95


def test_nobody_loses_all_pairs() -> None:
    start, user = np.array([0, 2, 5, 6]), np.array([0, 0, 1, 1, 1, 2])
    dear = np.array([True, True, True, False, True, False])
    assert column_screening.staying(dear, start, user).tolist() == [True, True, False, True, False, True]


def test_screening_pays_and_is_bounded() -> None:
    options = replace(column_screening.OPTIONS, many=5, coupled=20, worthwhile=0.5)
    assert column_screening.applies(6, 4, 1, 1e-3, options)
    assert not column_screening.applies(5, 4, 1, 1e-3, options)
    assert not column_screening.applies(6, 4, 1, np.inf, options)
    assert not column_screening.applies(6, 4, 2, 1e-3, options)  # 12 resources a user
    assert column_screening.worthwhile(np.array([True, False]), options)
    assert not column_screening.worthwhile(np.array([True, True, False]), options)
    assert column_screening.far(1.0, options) == options.far
    assert column_screening.far(0.0, options) == options.least_far
    for rate in (0.0, 0.5, 0.9, 2.0, 100.0):
        assert column_screening.longest(rate, options) * rate <= options.most * (1 + 1e-15)
    assert column_screening.longest(0.5, options) == 1


@given(st.lists(st.integers(0, 4), max_size=12))
def test_row_pointers(values: list[int]) -> None:
    group = np.array(values, dtype=np.intp)
    order, pointers = by_group(group, 5)
    assert sorted(order) == list(range(len(group)))
    for k in range(5):
        members = order[pointers[k] : pointers[k + 1]]
        assert members.tolist() == np.flatnonzero(group == k).tolist()
    assert row_pointers(np.sort(group), 5).tolist() == pointers.tolist()
