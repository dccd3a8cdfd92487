"""What the native engine of alpha-fair welfare says of itself, and who answers where it does not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import fairopt as fo
from fairopt.certificates import certify
from fairopt.certificates.backward import error_at
from fairopt.core import market, welfare
from fairopt.errors import SolverError
from fairopt.game.equilibrium import equilibria
from fairopt.model.problem import Problem
from fairopt.solving import candidates

from .test_welfare import plain


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interior point after one step, without other engines and without last digits."""
    monkeypatch.setattr(welfare, "run", partial(welfare.run, most=1))
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
    honest = welfare.run

    def lying(*given: object, **named: object) -> welfare.Candidate:
        found = honest(*given, **named)  # type: ignore[arg-type]
        return replace(found, fractions=0.999 * found.fractions, error=0.0)

    monkeypatch.setattr(welfare, "run", lying)
    monkeypatch.setattr(equilibria, "solutions", lambda *_: iter(()))
    honestly = candidates.with_last_digits
    monkeypatch.setattr(candidates, "with_last_digits", lambda *_: None)
    with pytest.raises(SolverError, match="misses tol"):
        fo.AlphaFair(3.0).solve(plain(11), engine="native")
    monkeypatch.setattr(candidates, "with_last_digits", honestly)
    assert fo.AlphaFair(3.0).solve(plain(11)).stats.engine == "native"  # the last digits put it right


def problem() -> Problem:
    shared = plain(12)
    return Problem(shared, fo.AlphaFair(2.0).criterion(shared))


def test_the_error_of_the_engine_is_the_certificate_s() -> None:
    asked = problem()
    polytope, found = asked.polytope, welfare.run(asked, 1e-8)
    assert found.error <= 1e-8
    tasks, prices = polytope.allocation(found.fractions), polytope.log_unit_prices(found.log_rows)
    # The judge tries several levels, of which the engine knows one: its own bound is the larger one.
    error = certify(asked.cluster, tasks, asked.criterion, prices)[0].optimality
    assert error <= found.error * (1 + 1e-3) + 1e-13
    rows = polytope.log_row_prices(prices)
    assert error_at(polytope, asked.criterion, tasks, rows, 1e-8) == pytest.approx(found.error, rel=1e-3, abs=1e-13)


def test_a_point_without_tasks_for_somebody_has_no_error() -> None:
    """Scaled back until it fits, a point may leave a user with nothing: no marginal welfare."""
    asked = problem()
    q, polytope = market.Market(asked), asked.polytope
    at = q.begin()
    fractions = polytope.inside(at.y * q.pairs.of_user(q.unit) / polytope.gamma)
    log_rows = np.log(at.lam[polytope.row_server, polytope.row_resource])

    def judged(fractions: np.ndarray) -> float:
        return error_at(polytope, asked.criterion, polytope.allocation(fractions), log_rows, 1.0)

    assert 0 < judged(fractions) < np.inf
    assert judged(np.where(polytope.pair_user == 0, 0.0, fractions)) == np.inf
    assert judged(np.full_like(fractions, np.nan)) == np.inf
