"""The only module that calls `cp.Problem.solve`: solvers, their options, times, versions and statuses.

HiGHS solves linear programs and Clarabel conic programs; SCS solves conic programs where Clarabel fails, and on
request. Solver tolerances are stricter than the tolerance of certificates, since a gap of 1e-6 in the objective does
not bound the error of the tasks.
"""

from __future__ import annotations

import io
import warnings
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...base import clock
from ...base.errors import DataError, SolverError
from ...base.libraries import cp
from ...core.solution import Run

#: Time limit of every solver, in seconds: simplex methods can cycle.
_SECONDS = 3600.0
#: Clarabel: tolerance of duality gaps and constraint violations.
_CONES = 1e-11
#: Clarabel: iteration limit.
_CONE_STEPS = 500
#: HiGHS: tolerance of primal and dual constraint violations.
_LINEAR = 1e-10
#: HiGHS: magnitude below which it drops coefficients. Its default, 1e-9, is a relevant fraction of a server.
_DROPPED = 1e-12
#: SCS: tolerance of residuals.
_SPLITTING = 1e-9
#: SCS: iteration limit.
_SPLITTING_STEPS = 100_000

#: Options of each solver, in the solver's own names.
OPTIONS: dict[str, dict[str, Any]] = {
    "CLARABEL": {
        "tol_gap_abs": _CONES,
        "tol_gap_rel": _CONES,
        "tol_feas": _CONES,
        "max_iter": _CONE_STEPS,
        "time_limit": _SECONDS,
    },
    "HIGHS": {
        "primal_feasibility_tolerance": _LINEAR,
        "dual_feasibility_tolerance": _LINEAR,
        "small_matrix_value": _DROPPED,
        "time_limit": _SECONDS,
    },
    "SCS": {
        "eps_abs": _SPLITTING,
        "eps_rel": _SPLITTING,
        "max_iters": _SPLITTING_STEPS,
        "time_limit_secs": _SECONDS,
    },
}

_PACKAGE = {"CLARABEL": "clarabel", "HIGHS": "highspy", "SCS": "scs"}


def known(solver: str) -> str:
    """Return the name of a solver in upper case; raise `DataError` for an unknown solver."""
    name = solver.upper() if isinstance(solver, str) else None
    if name not in OPTIONS:
        raise DataError(f"solver {solver!r} is not one of {', '.join(OPTIONS)}")
    return name


def solvers_for(problem: cp.Problem, wanted: str | None = None) -> list[str]:
    """Solvers to try, in order: the requested solver, or all solvers that support the problem.

    Raises `DataError` for an unknown solver, or for HiGHS if the problem is not a linear program.
    """
    if wanted is not None:
        name = known(wanted)
        if name == "HIGHS" and not problem.is_lp():
            raise DataError("HiGHS solves linear programs only; choose CLARABEL or SCS for this one")
        return [name]
    return ["HIGHS", "CLARABEL"] if problem.is_lp() else ["CLARABEL", "SCS"]


def solve(problem: cp.Problem, solver: str) -> Run:
    """Solve a problem with one solver, which assigns values to the problem's variables.

    Raises
    ------
    SolverError
        No values exist: the solver failed, or reports the problem as infeasible or unbounded. Any other status is only
        recorded, since the certificate, not the status, decides on optimality.
    """
    start, wall, said = clock.cpu(), clock.now(), io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(said):  # SCS prints the reason of a failure to stdout
            # CVXPY warns of inaccurate solutions; the certificate decides whether they are accepted.
            warnings.simplefilter("ignore")
            problem.solve(solver=solver, **_options(solver))
    except (cp.error.SolverError, ValueError) as error:
        # CVXPY raises ValueError for a solver status that it cannot unpack.
        why = " ".join([str(error).partition(": Solution(")[0], *said.getvalue().split()]).rstrip(".")
        raise SolverError(f"{solver} failed: {why}. Try another solver (solver=...) or engine") from None
    total = clock.cpu() - start
    # Solvers report wall time; their fraction of the wall time is taken as their fraction of the CPU time.
    part = min(float(problem.solver_stats.solve_time or 0.0) / max(clock.now() - wall, 1e-9), 1.0)
    if any(variable.value is None for variable in problem.variables()):
        raise SolverError(
            f"{solver} reports {problem.status!r}. A cluster always has a feasible allocation, so this is numerical: "
            "try another solver (solver=...), or bring weights and demands closer together"
        )
    return Run(solver, part * total, (1 - part) * total, str(problem.status))


def wrong_claim(solver: str, engines: tuple[str, ...], linear: bool) -> str:
    """Remedy for a CVXPY solver that reports optimality in contradiction to the certificate; "" for other solvers.

    The text ends with the beginning of a sentence, which the caller completes with how to report a bug. `engines` names
    the engines that were not tried; `linear` tells whether the problem consists of linear programs.
    """
    if solver not in OPTIONS:
        return ""
    others = [f"engine={name!r}" for name in engines]
    others += [f"solver={name!r}" for name in OPTIONS if name != solver and (linear or name != "HIGHS")]
    return (
        f"{solver} reports an optimum that the certificate refutes, as happens where numbers or welfares span many "
        f"decades: try {', '.join(others)}, bring weights and demands closer together, or take it flagged with "
        "throw=False. If another solver finds the same, the program states another objective than the criterion, or "
        "it is a bug: "
    )


def first_success(problem: cp.Problem, wanted: str | None = None) -> Run:
    """Solve with the first solver that returns values; if all solvers fail, raise the first failure."""
    failures = []
    for name in solvers_for(problem, wanted):
        try:
            return solve(problem, name)
        except SolverError as error:
            failures.append(error)
    raise failures[0]


def _options(solver: str) -> dict[str, Any]:
    return {"highs_options": OPTIONS[solver]} if solver == "HIGHS" else dict(OPTIONS[solver])


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that determine a solution, by package name."""
    found = {}
    for package in ("fairopt", "cvxpy", "numpy", "scipy", *_PACKAGE.values()):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
