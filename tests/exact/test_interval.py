"""Intervals contain what exact arithmetic gives, and little more."""

from __future__ import annotations

import operator
from decimal import Decimal, localcontext
from fractions import Fraction as F

import numpy as np
import pytest

from fairopt.certificates.rational import numbers
from fairopt.properties._enclosure import DIGITS, Box, Interval, contracted, interval, logarithm, rank

TINY = F(1, 10 ** (DIGITS - 2))


def _number(rng: np.random.Generator) -> F:
    top, bottom = (int(rng.integers(1, 2**62)) ** int(rng.integers(1, 6)) for _ in range(2))
    return F(top, bottom) * int(rng.choice([-1, 1]))


def _around(value: F) -> Interval:
    return interval(value) * Interval(Decimal("0.999"), Decimal("1.002"))


def _width(found: Interval) -> F:
    return F(found.high) - F(found.low)


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_contains_the_true_result(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(300):
        a, b = _number(rng), _number(rng)
        wide, other = _around(a), _around(b)
        for of in (operator.add, operator.sub, operator.mul, operator.truediv):
            true, found, around = of(a, b), of(interval(a), b), of(wide, other)
            assert around.low < true < around.high
            assert found.low <= true <= found.high
            assert _width(found) <= 2 * TINY * abs(true)


def test_logarithms() -> None:
    """A logarithm times n is that of the n-th power; it is increasing, and little is lost."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        value, n = abs(_number(rng)), int(rng.integers(2, 9))
        found, power = logarithm(value), logarithm(value**n)
        assert power.low <= (found * n).high
        assert (found * n).low <= power.high
        assert _width(found) <= 16 * TINY * max(1, abs(F(found.low)))
        wide = logarithm(_around(value))
        assert wide.low < found.low <= found.high < wide.high
        with localcontext(prec=3 * DIGITS):
            assert found.low < Decimal(value.numerator).ln() - Decimal(value.denominator).ln() < found.high


def test_what_has_no_result() -> None:
    with pytest.raises(ZeroDivisionError):
        interval(1) / Interval(Decimal(-1), Decimal(1))
    unit, wider = Interval(Decimal(0), Decimal(1)), Interval(Decimal(0), Decimal(2))
    with pytest.raises(ZeroDivisionError):
        logarithm(unit)
    assert not unit.within(wider)  # strictly inside
    assert interval(1).within(wider)


def test_krawczyk() -> None:
    """w^2 + 2w = e has the root sqrt(1 + e) - 1 near 0; a double root is not proved, nor one outside of the box."""

    def solved(e: F, slope: float = 2.0) -> Box | None:
        return contracted(np.array([-e]), lambda box: (box * 2 + 2)[:, None], np.array([[slope]]), (1e-6, 1e-3))

    found = solved(F(1, 10**4))
    square = 1 + F(1, 10**4)
    assert (1 + F(found[0].low)) ** 2 < square < (1 + F(found[0].high)) ** 2
    assert solved(F(1, 100)) is None
    assert solved(F(1, 10**4), 0.5) is None  # Y is no inverse: nothing contracts
    double = contracted(np.array([F(0)]), lambda box: (box * 2)[:, None], np.array([[1e-3]]), (1e-6, 1e-3))
    assert double is None or (double[0].low <= 0 <= double[0].high)


def test_rank() -> None:
    rng = np.random.default_rng(0)
    for rows, columns in rng.integers(1, 5, (60, 2)):
        table = rng.integers(-1, 2, (rows, columns)).astype(float)
        assert rank(numbers(table)) == np.linalg.matrix_rank(table)
