"""One step of Dynamic DRF as it is written, in CVXPY."""

from __future__ import annotations

from ..._libraries import cp
from ...errors import SolverError
from ...model._arrays import Array
from . import solvers


def step_problem(demand: Array, before: Array, weight: Array, part: float) -> cp.Problem:
    """`max M  s.t.  x_i >= w_i M,  x_i >= before_i,  sum_i x_i D_ir <= part` with the variables `M` and `x`.

    `demand` D (users, resources) is in parts of the largest one, `before` (users,) what they have, `weight` w.
    """
    level, share = cp.Variable(name="M"), cp.Variable(len(before), name="x")
    return cp.Problem(cp.Maximize(level), [share >= weight * level, share >= before, demand.T @ share <= part])


def step(demand: Array, before: Array, weight: Array, part: float) -> float:
    """M of one step.

    Raises
    ------
    SolverError
        HiGHS does not say that it is optimal.
    """
    problem = step_problem(demand, before, weight, part)
    run = solvers.solve(problem, "HIGHS")
    if run.status != "optimal":
        raise SolverError(f"a step of Dynamic DRF: HiGHS says {run.status!r}; take the engine 'filling'")
    return float(problem.var_dict["M"].value)
