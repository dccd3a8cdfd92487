"""What is wrong is refused: answers by their certificate, engines that give up with a remedy, parameters by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from fairopt.core.solution import Solution
from fairopt.errors import CertificateError, DataError, FairoptError, NotConverged, SolverError
from fairopt.mechanisms import Mechanism
from fairopt.model.problem import Problem

from .answers import Tally, check_answer, check_remedy
from .registry import ONE_RESOURCE, VARIANTS, identify

variants = pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)


def alone(mechanism: Mechanism, solutions: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """These are all the solutions that there are: no other engine stands in."""
    monkeypatch.setattr(type(mechanism), "solutions", solutions)
    monkeypatch.setattr(type(mechanism), "stand_in", lambda *_: None)


@variants
def test_wrong_answers_are_not_returned(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gets anything, which is refused, or all get a thousand times what there is, which is flagged."""
    tasks = 1e-9

    def solutions(self: Mechanism, problem: Problem, *_: object, **__: object) -> Iterator[Solution]:
        yield Solution(np.full(problem.cluster.shape[:2], tasks), None, "made up")

    alone(mechanism, solutions, monkeypatch)
    with pytest.raises((SolverError, NotConverged, CertificateError), match=r"misses tol=.*engines tried") as refusal:
        mechanism.solve(ONE_RESOURCE)
    check_remedy(refusal.value)
    tasks = 1e3
    flagged = mechanism.solve(ONE_RESOURCE, throw=False)
    assert flagged.flagged
    assert flagged.certificate.residual > 0.1


@variants
def test_engines_that_give_up(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their reason is passed on, with the engines that were tried; a law would not take that for an answer."""

    def solutions(*_: object, **__: object) -> Iterator[Solution]:
        raise SolverError("no luck. Relax tol")
        yield

    alone(mechanism, solutions, monkeypatch)
    with pytest.raises(SolverError, match=r"no luck.*engines tried"):
        mechanism.solve(ONE_RESOURCE)
    with pytest.raises(SolverError):
        check_answer(mechanism, ONE_RESOURCE, Tally())
    shared = mechanism.solve(ONE_RESOURCE, throw=False)
    assert "no luck" in shared.notes[-1]
    assert shared.certificate.feasibility <= 1e-12
    assert (shared.arrays.user_tasks > 0).all()


@variants
def test_changed_answers_do_not_pass(mechanism: Mechanism) -> None:
    """Everybody's tasks less by a hundredth, or one user's; more than there is; nothing at all."""
    found = mechanism.solve(ONE_RESOURCE)
    assert found.certify().residual <= mechanism.default_tol
    first = np.arange(2)[:, None] == 0
    for factor in (0.99, np.where(first, 0.99, 1.0), 1.01, 0.0):
        served = (found.tasks > 0) & (factor != 1.0)
        if not served.any():
            continue  # who has nothing cannot have less
        changed = replace(found, tasks=found.tasks * factor)
        assert not changed.certify().passes(1e-3), factor
        assert replace(changed, certificate=changed.certify()).flagged


def test_certificate_errors_are_not_swallowed() -> None:
    """Laws forgive some errors by their class: an answer that is wrong must not be one of them."""
    assert not issubclass(CertificateError, SolverError | NotConverged | DataError)
    assert issubclass(CertificateError, FairoptError)
