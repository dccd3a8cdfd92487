"""What the native engine of alpha-fair welfare says of itself, and who answers where it does not."""

from __future__ import annotations

from functools import partial

import pytest

import fairopt as fo
from fairopt.core import welfare
from fairopt.core.game import equilibria
from fairopt.errors import SolverError
from fairopt.mechanisms import _solve

from .test_welfare import plain


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interior point after one step, without other engines and without last digits."""
    monkeypatch.setattr(welfare, "run", partial(welfare.run, max_steps=1))
    monkeypatch.setattr(equilibria, "solutions", lambda *_: iter(()))
    monkeypatch.setattr(_solve, "with_refinement", lambda *_: None)


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
