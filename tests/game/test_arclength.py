"""Pseudo-arclength continuation: a circle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fairopt.engines.linalg.arclength import CorrectionOptions, Step, corrected, stepped, towards

OPTIONS = CorrectionOptions(most=9, shorter=0.5)


@dataclass(frozen=True)
class Circle:
    """u^2 + s^2 = 1, whose parameter s turns at s = 1 and s = -1."""

    u: float
    s: float

    @property
    def merit(self) -> float:
        return abs(self.u**2 + self.s**2 - 1)

    def moved(self, step: Step, part: float) -> Circle:
        return Circle(self.u + part * step[0], self.s + part * step[1])

    def solved(self, there: Circle) -> tuple[Step, Step] | None:
        if self.u == 0:
            return None
        wrong_by = there.u**2 + there.s**2 - 1
        return (-wrong_by / (2 * self.u), 0.0), (-self.s / self.u, 1.0)

    def product(self, one: Step, other: Step) -> float:
        return float(one[0] * other[0] + one[1] * other[1])

    def part(self, step: Step) -> float:
        return 1.0


def exact(at: Circle) -> bool:
    return at.merit < 1e-12


@pytest.mark.parametrize("serves", [0.0, 0.5])
def test_a_circle_is_followed_through_its_folds(serves: float) -> None:
    """Once round: 2 pi of length in steps of 0.2, each corrected in the plane across its tangent."""
    here, before, angles = Circle(0.6, 0.8), None, [np.arctan2(0.8, 0.6)]
    for _ in range(32):
        tangent = towards(here, (-here.s / here.u, 1.0), before)
        found, systems, length = stepped(here, tangent, 0.2, 1e-3, 100, exact, replace(OPTIONS, serves=serves))
        assert found is not None
        assert length == 0.2
        assert 0 < systems <= found.corrections
        assert here.product(tangent, (found.here.u - here.u, found.here.s - here.s)) == pytest.approx(0.2)
        here, before = found.here, tangent
        angles.append(np.arctan2(here.s, here.u))
    turned = np.diff(np.unwrap(angles))
    assert (turned < 0).all()  # at first to where the parameter falls, then on
    np.testing.assert_allclose(turned, -np.arcsin(0.2), rtol=1e-9)


def test_a_step_beyond_the_curve_is_made_shorter_or_given_up() -> None:
    here = Circle(0.6, 0.8)
    tangent = towards(here, (-here.s / here.u, 1.0), None)
    found, _, length = stepped(here, tangent, 4.0, 0.1, 100, exact, OPTIONS)
    assert found is not None
    assert length < 1  # the plane across a step of more than 1 misses the circle
    assert stepped(here, tangent, 4.0, 2.0, 100, exact, OPTIONS)[0] is None
    assert stepped(here, tangent, 4.0, 0.1, 0, exact, OPTIONS)[0] is None
    assert corrected(Circle(0.0, 1.0), (1.0, 0.0), 0.0, lambda at: False, OPTIONS).along is None
