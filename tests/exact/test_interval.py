"""Intervals contain what exact arithmetic gives, and little more."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from fairopt.exact.interval import BITS, Interval, interval

TINY = F(1, 2 ** (BITS - 8))


def _number(rng: np.random.Generator) -> F:
    top, bottom = (int(rng.integers(1, 2**62)) ** int(rng.integers(1, 6)) for _ in range(2))
    return F(top, bottom) * int(rng.choice([-1, 1]))


def _around(value: F) -> Interval:
    return Interval(value - abs(value) / 1000, value + abs(value) / 999)


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_contains_the_true_result(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(300):
        a, b = _number(rng), _number(rng)
        wide, other = _around(a), _around(b)
        for found, true in ((wide + other, a + b), (wide - other, a - b), (wide * other, a * b), (wide / other, a / b)):
            assert found.low < true < found.high
        for found, true in (
            (interval(a) + b, a + b),
            (interval(a) * b, a * b),
            (interval(a) / b, a / b),
            (interval(a) - b, a - b),
        ):
            assert found.low <= true <= found.high
            assert found.high - found.low <= 2 * TINY * abs(true)


@pytest.mark.parametrize("exponent", [F(2), F(-1), F(1, 2), F(3, 10), F(-7, 10), F(16), F(0), F(-1, 3)])
def test_powers(exponent: F) -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        value = abs(_number(rng))
        found = interval(value).power(exponent)
        p, q = exponent.numerator, exponent.denominator
        assert found.low**q <= value**p <= found.high**q
        assert found.high - found.low <= 16 * TINY * found.low
        wide = _around(value).power(exponent)
        assert wide.low <= found.low <= found.high <= wide.high


def test_what_has_no_result() -> None:
    with pytest.raises(ZeroDivisionError):
        interval(1) / Interval(F(-1), F(1))
    with pytest.raises(ZeroDivisionError):
        Interval(F(0), F(1)).power(F(1, 2))
    assert not Interval(F(0), F(1)).within(Interval(F(0), F(2)))  # strictly inside
    assert interval(1).within(Interval(F(0), F(2)))
