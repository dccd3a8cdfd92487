"""Where the default engine misses the tolerance the others of a mechanism are tried, for as long as one would wait."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from families import draw
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.core.engines import native
from fairopt.core.game import engine as game_engine
from fairopt.core.game import played
from fairopt.core.solution import Solution
from fairopt.errors import FairoptError, SolverError
from fairopt.mechanisms import _game
from fairopt.mechanisms.reference import declarative, server_problem
from fairopt.model.problem import Problem

EXAMPLE = fo.Cluster([[9, 18], [4, 2]], [[1, 4], [3, 1]])


def broken(*_: object, **__: object) -> Iterator[Solution]:
    raise SolverError("no luck")
    yield


def nothing(problem: Problem, *_: object, **__: object) -> Iterator[Solution]:
    yield Solution(np.full(problem.cluster.shape[:2], 1e-9), None, "nothing")


def test_power_cones_have_no_second_solver_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCS takes a minute for a thousand pairs at alpha = 64, where Clarabel fails within a second."""
    asked: list[object] = []
    monkeypatch.setattr(declarative, "solutions", lambda _, solver, *__: iter([asked.append(solver)]))
    for mechanism in (fo.AlphaFair(64), fo.DRFH()):
        list(mechanism.stand_in(Problem(EXAMPLE, mechanism.criterion(EXAMPLE)), "declarative", 1e-6) or ())
    assert asked == ["CLARABEL", None]


@pytest.mark.parametrize("seed", [55, 127])
def test_psdsf_over_eight_decades(seed: int) -> None:
    """Somebody has less than the rounding error of a capacity: nobody stands in, whichever way sums are rounded."""
    found = fo.PSDSF().solve(draw("wide", seed))
    assert found.certify().passes(1e-6)
    assert found.stats.engine == "equilibrium"


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0, np.inf])
def test_the_engines_of_the_game_in_their_order(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    game = fo.AlphaPFVDS(alpha, select="fast")
    wanted = game.solve(EXAMPLE).arrays.user_tasks
    monkeypatch.setattr(game_engine, "solutions", broken)
    for engine in game.engines(game.criterion(EXAMPLE))[1:]:
        found = game.solve(EXAMPLE)
        assert found.stats.engine == engine
        assert found.certify().passes(1e-6)
        assert_allclose(found.arrays.user_tasks, wanted, rtol=1e-4)
        monkeypatch.setattr(played, "solutions", broken)


def test_errors_name_the_engines_that_were_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in (game_engine, played, server_problem):
        monkeypatch.setattr(engine, "solutions", broken)
    with pytest.raises(SolverError, match=r"no luck \(engines tried: equilibrium, best-response, declarative\)"):
        fo.PSDSF().solve(EXAMPLE)
    with pytest.raises(SolverError, match=r"no luck \(engines tried: best-response\)"):
        fo.PSDSF().solve(EXAMPLE, engine="best-response")


def test_what_would_take_minutes_is_not_tried_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game_engine, "solutions", nothing)
    monkeypatch.setattr(native, "solutions", nothing)
    monkeypatch.setattr(_game, "RESPONDING", 3)
    assert fo.PSDSF().solve(EXAMPLE).stats.engine == "declarative"  # four pairs
    monkeypatch.setattr(_game, "DECLARED", 3)
    monkeypatch.setattr("fairopt.model.polytope.LARGE", 3)
    for mechanism, first, others in (
        (fo.PSDSF(), "equilibrium", ("best-response", "declarative")),
        (fo.DRFH(), "native", ("declarative",)),
    ):
        with pytest.raises(FairoptError, match=rf"engines tried: {first}\)"):
            mechanism.solve(EXAMPLE)
        flagged = mechanism.solve(EXAMPLE, throw=False)
        for name in others:
            assert f"on such a cluster {name} is not tried unasked; engine='{name}' does" in flagged.notes
            assert mechanism.solve(EXAMPLE, engine=name).stats.engine == name


def test_power_cones_of_thousands_of_pairs_are_not_tried_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "solutions", nothing)
    monkeypatch.setattr("fairopt.core.game.equilibria.solutions", nothing)
    rng = np.random.default_rng(0)
    shared = fo.Cluster(rng.uniform(1, 2, (51, 2)), rng.uniform(1, 2, (100, 2)))
    with pytest.raises(FairoptError, match=r"engines tried: native\)"):
        fo.AlphaFair(50.0).solve(shared)
