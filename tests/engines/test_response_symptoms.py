"""What went wrong once in the servers' problems of the game, by its symptom; each test fails if that comes back."""

from __future__ import annotations

from collections.abc import Iterator

import cvxpy as cp
import numpy as np
import pytest

from fairopt.game.reference.server_problem import ServerProblem
from fairopt.mechanisms import get
from fairopt.model.cluster import Cluster
from fairopt.model.polytope import Polytope

from .symptoms import VARIANT, Array


def server_problem(name: str, cluster: Cluster, server: int = 0, **parameters: float) -> ServerProblem:
    mechanism = get(name, **parameters)
    criterion = mechanism.criterion(cluster)
    polytope = Polytope(cluster, criterion.limits(cluster))
    return ServerProblem(polytope, criterion, server, mechanism.formulate)


def programs() -> Iterator[tuple[str, ServerProblem]]:
    for alpha in (0.0, 0.5, 1.0, 3.0):
        yield f"alpha {alpha}", server_problem("alphapf-vds", VARIANT, 1, alpha=alpha)
    limited = VARIANT.replace(max_tasks=[1, 2, 3, 4])
    yield "limits", server_problem("alphapf-vds", limited, 1, alpha=3.0)
    yield "max-min", server_problem("ps-dsf", VARIANT, 1)
    yield "max-min with limits", server_problem("ps-dsf", limited, 1)


@pytest.mark.parametrize(("name", "problem"), list(programs()), ids=[name for name, _ in programs()])
def test_a_second_response_compiles_nothing(name: str, problem: ServerProblem) -> None:
    compiled = problem._problem if problem._maxmin is None else problem._maxmin._round
    assert compiled.is_dpp()
    assert compiled.parameters()
    tasks = np.array([1.0, 1.0])
    first = problem.respond(tasks, tasks / problem.program.gamma + 0.2)[0]

    cached = compiled._cache.param_prog
    assert cached is not None
    second = problem.respond(0 * tasks, tasks / problem.program.gamma + 0.2)[0]
    assert compiled._cache.param_prog is cached
    assert first.shape == second.shape


def best_fractions(problem: ServerProblem, elsewhere: Array) -> tuple[Array, Array]:
    share = elsewhere / problem.program.gamma + 0.5
    return problem.respond(elsewhere, share)


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


@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_a_price_of_zero_comes_back(alpha: float) -> None:
    """Server 2 of PF figure 1: its RAM has no price while user 4 is rich elsewhere, and one again when it is not."""
    problem = server_problem("alphapf-vds", Cluster([[1, 1]], [[1, 0.2], [0.2, 1]]), 0, alpha=alpha)
    rich = np.array([0.0, 1e3])
    _, without = best_fractions(problem, rich)
    fractions, back = best_fractions(problem, np.zeros(2))
    fresh = server_problem("alphapf-vds", Cluster([[1, 1]], [[1, 0.2], [0.2, 1]]), 0, alpha=alpha)
    cold, _ = best_fractions(fresh, np.zeros(2))
    assert without[1] < 1e-6 * without[0]
    assert back[1] == pytest.approx(back[0], rel=1e-5)
    np.testing.assert_allclose(fractions, [5 / 6, 5 / 6], rtol=1e-6)
    np.testing.assert_allclose(fractions, cold, rtol=1e-6)
