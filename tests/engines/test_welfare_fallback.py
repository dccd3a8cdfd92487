"""What the native engine of alpha-fair welfare says of itself, and who answers where it does not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import fairopt as fo
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


def test_a_point_without_tasks_for_somebody_has_no_error() -> None:
    """Scaled back until it fits, a point may leave a user with nothing: no marginal welfare."""
    shared = plain(12)
    asked = Problem(shared, fo.AlphaFair(2.0).criterion(shared))
    q, polytope = market.Market(asked), asked.polytope
    at = q.begin()
    fractions = polytope.inside(at.y * q.pairs.of_user(q.unit) / polytope.gamma)
    log_rows = np.log(at.lam[polytope.row_server, polytope.row_resource])

    def judged(fractions: np.ndarray) -> float:
        return error_at(polytope, asked.criterion, polytope.allocation(fractions), log_rows, 1.0)

    assert 0 < judged(fractions) < np.inf
    assert judged(np.where(polytope.pair_user == 0, 0.0, fractions)) == np.inf
    assert judged(np.full_like(fractions, np.nan)) == np.inf
