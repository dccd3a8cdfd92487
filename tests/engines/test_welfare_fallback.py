"""What the native engine of alpha-fair welfare says of itself, and who answers where it does not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificates import certify
from fairopt.certificates.backward import error_at
from fairopt.engines.welfare import concave, conditions, interior_point
from fairopt.engines.welfare.options import OPTIONS
from fairopt.errors import SolverError
from fairopt.game.equilibrium import equilibria
from fairopt.model.polytope import Polytope
from fairopt.solving import candidates

from .test_welfare import plain


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interior point after one step, without other engines and without last digits."""
    monkeypatch.setattr(concave, "solutions", lambda *_: iter(()))
    few = partial(interior_point.solutions, options=replace(OPTIONS, steps=1))
    monkeypatch.setattr(interior_point, "solutions", few)
    monkeypatch.setattr(equilibria, "solutions", lambda *_: iter(()))
    monkeypatch.setattr(candidates, "with_last_digits", lambda *_: None)


def test_the_declarative_engine_steps_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no native answer is good enough; the statistics say who answered."""
    alone(monkeypatch)
    shared = plain(10, 6, 3)
    found = fo.CEEI(scope="servers").solve(shared)
    assert found.stats.engine == "declarative"
    assert found.certify().passes(1e-6)
    with pytest.raises(SolverError, match="misses tol"):
        fo.CEEI(scope="servers").solve(shared, engine="native")
    flagged = fo.CEEI(scope="servers").solve(shared, engine="native", throw=False)
    assert flagged.flagged
    assert flagged.stats.status == "not converged"


def test_a_wrong_answer_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own error is not believed: here it calls the optimum what leaves a thousandth unused."""
    monkeypatch.setattr(concave, "solutions", lambda *_: iter(()))
    honest = conditions.Welfare.fractions
    monkeypatch.setattr(conditions.Welfare, "fractions", lambda self, point: 0.999 * honest(self, point))
    monkeypatch.setattr(interior_point, "judge_of", lambda *_: lambda *_: 0.0)
    monkeypatch.setattr(equilibria, "solutions", lambda *_: iter(()))
    honestly = candidates.with_last_digits
    monkeypatch.setattr(candidates, "with_last_digits", lambda *_: None)
    with pytest.raises(SolverError, match="misses tol"):
        fo.AlphaFair(3.0).solve(plain(11), engine="native")
    monkeypatch.setattr(candidates, "with_last_digits", honestly)
    assert fo.AlphaFair(3.0).solve(plain(11)).stats.engine == "native"  # the last digits put it right


def test_the_error_of_the_engine_is_the_certificate_s() -> None:
    shared = plain(12)
    criterion = fo.AlphaFair(2.0).criterion(shared)
    polytope = Polytope(shared, criterion.limits(shared))
    q = conditions.Welfare(polytope, criterion)
    *_, found = interior_point.run(q, 1e-8, interior_point.judge_of(polytope, criterion, 1e-8))
    assert found.error <= 1e-8
    tasks = polytope.allocation(found.fractions)
    prices = polytope.log_unit_prices(np.log(found.point.price[q.row]))
    # The judge tries several levels, of which the engine knows one: its own bound is the larger one.
    assert certify(shared, tasks, criterion, prices)[0].optimality <= found.error * (1 + 1e-3) + 1e-13
    rows = polytope.log_row_prices(prices)
    assert error_at(polytope, criterion, tasks, rows, 1e-8) == pytest.approx(found.error, rel=1e-3, abs=1e-13)


def test_a_point_without_tasks_for_somebody_has_no_error() -> None:
    """Scaled back until it fits, a point may leave a user with nothing: no marginal welfare."""
    shared = plain(12)
    criterion = fo.AlphaFair(2.0).criterion(shared)
    q = conditions.Welfare(Polytope(shared, criterion.limits(shared)), criterion)
    at, judged = q.begin(), interior_point.judge_of(q.polytope, criterion, 1.0)  # rows that idle keep their prices
    fractions = q.polytope.inside(q.fractions(at))
    assert 0 < judged(fractions, at) < np.inf
    assert judged(np.where(q.polytope.pair_user == 0, 0.0, fractions), at) == np.inf
    assert judged(np.full_like(fractions, np.nan), at) == np.inf
