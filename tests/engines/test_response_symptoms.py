"""What went wrong once in the servers' problems of the game, by its symptom; each test fails if that comes back."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from fairopt.mechanisms import get
from fairopt.mechanisms.reference.server_problem import ServerProblem
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

from .symptoms import VARIANT


def server_problem(name: str, cluster: Cluster, server: int = 0, **parameters: float) -> ServerProblem:
    mechanism = get(name, **parameters)
    criterion = mechanism.criterion(cluster)
    polytope = Polytope(cluster, criterion.limits(cluster))
    return ServerProblem(polytope, criterion, server)


@pytest.mark.parametrize(
    ("name", "parameters"), [("ps-dsf", {}), *(("alphapf-vds", {"alpha": alpha}) for alpha in (0.0, 0.5, 1.0, 3.0))]
)
@pytest.mark.parametrize("limit", [None, [1, 2, 3, 4]], ids=["free", "limited"])
def test_a_second_response_compiles_nothing(name: str, parameters: dict[str, float], limit: list[int] | None) -> None:
    problem = server_problem(name, VARIANT.replace(max_tasks=limit), 1, **parameters)
    compiled = problem._problem if problem._maxmin is None else problem._maxmin._round
    assert compiled.is_dpp()
    assert compiled.parameters()
    tasks = np.array([1.0, 1.0])
    problem.respond(tasks, tasks / problem.program.gamma + 0.2)
    cached = compiled._cache.param_prog
    assert cached is not None
    problem.respond(0 * tasks, tasks / problem.program.gamma + 0.2)
    assert compiled._cache.param_prog is cached


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_responses_where_others_give_a_million_times_more(alpha: float) -> None:
    problem = server_problem("alphapf-vds", VARIANT, 1, alpha=alpha)
    plenty = 1e6 * problem.program.gamma
    fractions, prices = problem.respond(plenty, plenty / problem.program.gamma)
    # Next to 1e6 the marginal utilities are nearly constant: the server maximises sum s_n, a linear program.
    use = problem.program.use.toarray()
    assert (use @ fractions <= 1 + 1e-9).all()
    best = cp.Variable(2, nonneg=True)
    linear = cp.Problem(cp.Maximize(cp.sum(best)), [use @ best <= 1])
    assert fractions.sum() == pytest.approx(linear.solve(solver="HIGHS"), rel=1e-4)
    assert prices.max() > 0
