"""Intervals with rational ends: arithmetic whose results contain the true ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

#: Ends are rounded outwards to so many bits.
BITS = 160

Number = Fraction | int


def _rounded(value: Fraction, up: bool) -> Fraction:
    """The nearest number of `BITS` bits that is not smaller (`up`), or not larger."""
    top, bottom = value.numerator, value.denominator
    shift = BITS - (abs(top).bit_length() - bottom.bit_length())
    if top == 0 or bottom.bit_length() <= BITS:
        return value
    whole = (abs(top) << shift if shift >= 0 else abs(top) >> -shift) // bottom
    if shift < 0:  # both divisions round down
        whole = abs(top) // (bottom << -shift)
    whole += (top > 0) == up
    found = Fraction(whole << -shift, 1) if shift < 0 else Fraction(whole, 1 << shift)
    return found if top > 0 else -found


def _root(value: Fraction, degree: int, up: bool) -> Fraction:
    """The root of a number >= 0, to about `BITS` bits, not below it (`up`) or not above it."""
    if value == 0 or degree == 1:
        return value
    shift = BITS + max(0, (value.denominator.bit_length() - value.numerator.bit_length()) // degree + 1)
    below = _whole_root((value.numerator << degree * shift) // value.denominator, degree)
    return Fraction(below + up, 1 << shift)


def _whole_root(value: int, degree: int) -> int:
    """The largest whole number whose power is at most a whole number, by Newton's method from above."""
    if value < 2:
        return value
    guess = 1 << -(-value.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + value // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess
        guess = better


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`."""

    low: Fraction
    high: Fraction

    def __add__(self, other: Interval | Number) -> Interval:
        other = interval(other)
        return Interval(_rounded(self.low + other.low, False), _rounded(self.high + other.high, True))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval | Number) -> Interval:
        return self + -interval(other)

    def __mul__(self, other: Interval | Number) -> Interval:
        other = interval(other)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(_rounded(min(ends), False), _rounded(max(ends), True))

    def __truediv__(self, other: Interval | Number) -> Interval:
        other = interval(other)
        if other.low <= 0 <= other.high:
            raise ZeroDivisionError("an interval with 0 in it divides nothing")
        return self * Interval(_rounded(1 / other.high, False), _rounded(1 / other.low, True))

    def power(self, exponent: Fraction) -> Interval:
        """`x^(p/q)` of numbers > 0."""
        if self.low <= 0:
            raise ZeroDivisionError("powers are of numbers > 0")
        p, q = abs(exponent.numerator), exponent.denominator
        found = Interval(_root(self.low**p, q, False), _root(self.high**p, q, True))
        found = Interval(_rounded(found.low, False), _rounded(found.high, True))
        return found if exponent >= 0 else interval(1) / found

    def within(self, other: Interval) -> bool:
        """Is every number of this one strictly inside of another?"""
        return other.low < self.low and self.high < other.high

    def cut(self, other: Interval) -> Interval:
        """What both have in common; they must have something."""
        return Interval(max(self.low, other.low), min(self.high, other.high))


def interval(value: Interval | Number) -> Interval:
    """A number as an interval."""
    return value if isinstance(value, Interval) else Interval(Fraction(value), Fraction(value))
