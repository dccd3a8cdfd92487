"""What went wrong once where solvers are wrong or sloppy, by its symptom; each test fails if that comes back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from families import EXAMPLE

from fairopt.core.solution import Run, Solution
from fairopt.errors import CertificateError, NotConverged, SolverError
from fairopt.mechanisms import _solve, get
from fairopt.mechanisms.reference import solvers

from .symptoms import VARIANT, nine_eighteen

# -- solvers that say optimal and are wrong -----------------------------------------------------

Lie = Callable[[cp.Problem, str], Run]


def liar(status: str, factor: float) -> Lie:
    original = solvers.solve

    def lie(problem: cp.Problem, solver: str) -> Run:
        run = original(problem, solver)
        for variable in problem.variables():
            if "fraction" in variable.name():
                variable.save_value(np.asarray(variable.value) * factor)
        return replace(run, status=status)

    return lie


@pytest.mark.parametrize(
    ("name", "status", "factor", "error", "said"),
    [
        ("drf", "optimal", 0.9, CertificateError, "misses tol"),  # a bug
        ("drf", "optimal", 0.99, (CertificateError, SolverError), "misses tol"),  # or a solver short of accuracy
        ("ceei", "optimal_inaccurate", 0.99, SolverError, "optimal_inaccurate.*Relax tol"),
    ],
)
def test_optimal_and_wrong_is_refused(
    name: str, status: str, factor: float, error: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solvers, "solve", liar(status, factor))
    with pytest.raises(error, match=said):
        get(name).solve(EXAMPLE, solver="CLARABEL")
    flagged = get(name).solve(EXAMPLE, throw=False, solver="CLARABEL")
    assert flagged.flagged
    assert "misses the tolerance" in repr(flagged)
    assert flagged.stats.status == status


def test_whose_claim_is_wrong_is_said_with_what_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a solver of CVXPY those that are left; of our own engine that it is a bug."""
    monkeypatch.setattr(solvers, "solve", liar("optimal", 0.9))
    for wrong, other in (("CLARABEL", "SCS"), ("SCS", "CLARABEL")):
        with pytest.raises(
            CertificateError, match=f"{wrong} reports an optimum that the certificate refutes"
        ) as refusal:
            get("ceei").solve(EXAMPLE, solver=wrong)
        said = str(refusal.value)
        assert all(remedy in said for remedy in ("engine='native'", f"solver={other!r}", "throw=False"))
        assert not any(f"solver={name!r}" in said for name in (wrong, "HIGHS"))  # HiGHS knows no logarithm
        assert "This is a bug" not in said
    tasks = 0.5 * get("ceei").solve(EXAMPLE, engine="native").tasks
    ours = Solution(tasks, None, "native", (Run("interior point", 0),), status="optimal")

    def solutions(*_: object) -> Iterator[Solution]:
        yield ours

    monkeypatch.setattr(type(get("ceei")), "solutions", solutions)
    monkeypatch.setattr(_solve, "with_refinement", lambda *_: None)
    with pytest.raises(CertificateError, match="This is a bug: please report it"):
        get("ceei").solve(EXAMPLE, engine="native")


def test_a_bad_status_with_a_good_answer_is_judged_by_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "solve", liar("optimal_inaccurate", 1.0))
    found = get("drf").solve(EXAMPLE, engine="declarative")
    assert found.certificate.passes()
    assert found.stats.status == "optimal_inaccurate"


@pytest.mark.parametrize("name", ["ps-dsf", "alphapf-vds"])
def test_wrong_responses_of_servers_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairopt.mechanisms.reference import server_problem

    monkeypatch.setattr(solvers, "solve", liar("optimal", 0.9))
    monkeypatch.setattr(server_problem, "solutions", partial(server_problem.solutions, max_rounds=2))
    with pytest.raises(NotConverged, match="misses tol"):
        get(name).solve(VARIANT, engine="declarative")
    assert get(name).solve(VARIANT, throw=False, engine="declarative").flagged


def test_more_than_there_is_is_cut_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An overfull answer is scaled inside, and then judged: 1% too much of everything is not a pass either way."""
    monkeypatch.setattr(solvers, "solve", liar("optimal", 1.01))
    found = get("drf").solve(EXAMPLE, throw=False, engine="declarative")
    assert found.certificate.feasibility <= 1e-12


def test_times_are_reported_apart() -> None:
    stats = get("alpha-fair").solve(EXAMPLE, engine="declarative").stats
    assert min(stats.build, stats.compile, stats.solve, stats.certify) >= 0
    assert stats.total == pytest.approx(stats.build + stats.compile + stats.solve + stats.certify)
    assert stats.build > 0
    assert stats.compile > 0
    assert stats.solver == "CLARABEL"
    assert set(stats.versions) >= {"fairopt", "cvxpy", "clarabel", "highspy", "scs", "numpy", "scipy"}


# -- tolerances of solvers that leave tasks wrong ------------------------------------------------


def test_the_options_reach_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    original = cp.Problem.solve

    def record(self: cp.Problem, *arguments: Any, **options: Any) -> Any:
        given.append(options)
        return original(self, *arguments, **options)

    monkeypatch.setattr(cp.Problem, "solve", record)
    get("ceei").solve(EXAMPLE, engine="declarative")
    by_solver = {options["solver"]: options for options in given}
    assert by_solver["CLARABEL"]["tol_gap_rel"] <= 1e-8
    assert by_solver["HIGHS"]["highs_options"]["primal_feasibility_tolerance"] <= 1e-8


def test_what_a_solver_prints_is_in_its_error_and_not_in_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As SCS does where QDLDL cannot factorise: `--json` would be no JSON."""

    def _solve(*_: object, **__: object) -> None:
        sys.stdout.write("KKT matrix has < n positive\neigenvalues.\n")
        raise ValueError("ScsWork allocation error!")

    monkeypatch.setattr(cp.Problem, "solve", _solve)
    with pytest.raises(SolverError, match=r"SCS failed: ScsWork allocation error! KKT .* positive eigenvalues\. Try"):
        solvers.solve(cp.Problem(cp.Minimize(0)), "SCS")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_tasks_are_right_to_four_digits(solver: str) -> None:
    """A gap of 1e-6 in welfare alone would allow tasks wrong by 1e-3: second order at the optimum."""
    for alpha in (0.5, 1.0, 2.0):
        found = get("alpha-fair", alpha=alpha).solve(EXAMPLE, solver=solver)
        np.testing.assert_allclose(found.arrays.user_tasks, nine_eighteen(alpha), rtol=1e-4)
    found = get("drf").solve(EXAMPLE, solver="CLARABEL")
    np.testing.assert_allclose(found.arrays.user_tasks, [3, 2], rtol=1e-6)


def test_a_solver_by_another_name() -> None:
    from fairopt.errors import DataError

    with pytest.raises(DataError, match=r"'gurobi' is not one of CLARABEL, HIGHS, SCS"):
        get("drf").solve(EXAMPLE, solver="gurobi")
    assert get("drf").solve(EXAMPLE, solver="highs").stats.engine == "declarative"
    with pytest.raises(DataError, match="native engine of DRF takes no solver"):
        get("drf").solve(EXAMPLE, engine="native", solver="HIGHS")
    with pytest.raises(DataError, match="HiGHS solves linear programs only; choose CLARABEL or SCS"):
        get("ceei").solve(EXAMPLE, solver="highs")
    nobody = EXAMPLE.replace(max_tasks=0)  # no solver is called, so none could complain
    for name in ("drf", "alphapf-vds", "ps-dsf"):
        for wrong in ("gurobi", 3):
            with pytest.raises(DataError, match=r"is not one of CLARABEL, HIGHS, SCS"):
                get(name).solve(nobody, solver=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.0, np.inf])
def test_a_solver_for_the_game_means_its_declarative_engine(alpha: float) -> None:
    """As for the global mechanisms: it is used or refused, never ignored."""
    from fairopt.errors import DataError

    game = get("alphapf-vds", alpha=alpha)
    found = game.solve(EXAMPLE, solver="clarabel")
    assert found.stats.engine == "declarative"
    assert found.stats.solver == "CLARABEL"
    for engine in game.engines(game.criterion(EXAMPLE))[:-1]:
        with pytest.raises(DataError, match=rf"the {engine} engine of .* takes no solver; .*engine='declarative'"):
            game.solve(EXAMPLE, engine=engine, solver="CLARABEL")


def test_all_solvers_failing_is_a_solver_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise cp.error.SolverError("no luck.")

    monkeypatch.setattr(cp.Problem, "solve", fail)
    for name in ("drf", "ceei", "ps-dsf"):
        with pytest.raises(SolverError, match=r"no luck\. Try another solver"):
            get(name).solve(EXAMPLE, engine="declarative")
