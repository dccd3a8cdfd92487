"""Pseudo-arclength continuation: a circle, and the compiled corrector of the curve of alpha held to the shared one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

import fairopt as fo
from fairopt.engines.linalg.arclength import CorrectionOptions, Step, corrected, stepped, towards
from fairopt.game.curve import _begin, _point, _steps, _system
from fairopt.game.curve._gauge import gauged
from fairopt.game.curve.stack import stacked
from fairopt.model.problem import Problem

Array = NDArray[np.float64]
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


@dataclass(frozen=True)
class Compiled:
    """A place of the compiled curve, its steps by NumPy from the same equations."""

    game: _system.Game
    at: _system.Place
    place: NDArray[np.int64]
    scale: Array

    @property
    def residual(self) -> Array:
        values, found = _system.values_of(self.game), np.empty(len(self.scale))
        assert _system.evaluate(self.game, self.at, values)
        _system.residual(self.game, self.at, values, self.place, found)
        return -found[:-1]

    @property
    def merit(self) -> float:
        return float(np.abs(self.residual).max())

    def moved(self, step: Step, part: float) -> Compiled:
        there = _system.copied(self.at)
        _system.moved(self.game, there, self.place, np.append(*step), part)
        return replace(self, at=there)

    def solved(self, there: Compiled) -> tuple[Step, Step]:
        values = _system.values_of(self.game)
        _system.evaluate(self.game, self.at, values)
        both = _system.bordered(self.game, self.at, values, self.place, np.zeros(len(self.scale)))[:-1]
        return (-np.linalg.solve(both[:, :-1], there.residual), 0.0), (
            -np.linalg.solve(both[:, :-1], both[:, -1]),
            1.0,
        )

    def product(self, one: Step, other: Step) -> float:
        return float((self.scale * np.append(*one) * np.append(*other)).sum())

    def part(self, step: Step) -> float:
        return 1.0


@pytest.mark.kernels
@pytest.mark.parametrize("alpha", [0.7, 1.2, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_corrector_finds_the_same_place(seed: int, alpha: float) -> None:
    """One step on one active set from the curve at some alpha: tasks, prices and log alpha to rounding."""
    rng = np.random.default_rng(seed)
    cluster = fo.Cluster(rng.uniform(1, 9, (3, 2)), rng.uniform(0.5, 5, (4, 2)))
    problem = Problem(cluster, fo.AlphaPFVDS(alpha).criterion(cluster))
    game, at, sound = _begin.begun(_point.cell_of(alpha, [one[0] for one in stacked([problem])]), 1e-12, 400)
    assert sound
    gauged(game, at)
    place = np.empty(len(game.user) + len(game.host) + len(game.limit), np.int64)
    count, values = _system.numbered(game, at, place), _system.values_of(game)
    border, matrix, order = np.eye(1, count + 1, count)[0], np.empty((count + 1,) * 2), np.empty(count + 1, np.int64)
    t, scale, length = np.empty(count + 1), np.empty(count + 1), 0.02
    assert _system.evaluate(game, at, values)
    assert _steps.tangent(game, at, values, place, border, matrix, order, t, scale)
    here, there = Compiled(game, _system.copied(at), place, scale), _system.copied(at)
    tangent = towards(here, here.solved(here)[1], (np.zeros(count), 1.0))
    np.testing.assert_allclose(np.append(*tangent), t, rtol=1e-8, atol=1e-10)

    given = game, there, values, place, border, matrix, order, t, scale
    land, turns, done = _steps.advanced(*given, length, 1e-9, np.nan)
    assert turns >= 0
    if land >= 0:  # up to a change of the active set, whose place is no plane: half of that way
        there, length = _system.copied(at), 0.5 * done
        assert _steps.tangent(game, there, values, place, border, matrix, order, t, scale)
        land, turns, done = _steps.advanced(game, there, *given[2:], length, 1e-9, np.nan)
    assert (land, done) == (-1, length)
    found = corrected(here, tangent, length, lambda one: one.merit < 1e-12, OPTIONS).here
    assert abs(found.at.theta[0] - at.theta[0]) > 1e-4  # it has moved
    for name in ("z", "w", "level", "xi", "theta"):
        np.testing.assert_allclose(getattr(found.at, name), getattr(there, name), rtol=1e-9, atol=1e-11, err_msg=name)
