"""Last digits: from tasks, places and prices that are off to an answer, whichever way the matrix is factored."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from families import FAMILIES, draw

import fairopt as fo
from fairopt.certificates.backward import backward_error
from fairopt.core import refinement
from fairopt.core.solution import Solution
from fairopt.mechanisms._solve import at_vertex, with_refinement
from fairopt.model.cluster import Cluster
from fairopt.model.merging import merge
from fairopt.model.problem import Problem

MECHANISMS = [fo.AlphaFair(0.5), fo.AlphaFair(50.0), fo.CEEI(scope="servers"), fo.AlphaPFVDS(3.0)]


def off(cluster: Cluster, mechanism: fo.mechanisms.Mechanism, by: float, seed: int) -> tuple[Problem, Solution]:
    """An answer of which a part of tasks runs elsewhere, a part not at all, at prices that are off."""
    rng = np.random.default_rng(seed)
    answer = mechanism.solve(cluster, tol=1e-9)
    problem = Problem(cluster, mechanism.criterion(cluster))
    tasks = answer.tasks * (1 - by * rng.random(answer.tasks.shape))
    tasks += np.where(cluster.eligible, by * rng.random(tasks.shape) * cluster.gamma, 0.0) / len(tasks)
    return problem, Solution(tasks, None, "native", log=answer.log_prices + by * rng.standard_normal())


def error(problem: Problem, found: Solution | None) -> float:
    """The backward error of a candidate, its tasks made feasible."""
    polytope = problem.polytope
    tasks = polytope.allocation(polytope.inside(polytope.fractions(found.tasks)))
    return backward_error(polytope, problem.criterion, tasks, polytope.log_row_prices(found.log_prices)).error


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_whole_or_eliminated(family: str, mechanism: fo.mechanisms.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the whole matrix leads to an answer, that of prices alone does; a rough start is put right by both."""
    problem, offer = off(merge(draw(family, 4)).cluster, mechanism, 1e-5, 4)
    whole = error(problem, with_refinement(problem, offer))
    monkeypatch.setattr(refinement, "DENSE", 0)
    eliminated = error(problem, with_refinement(problem, offer))
    assert max(whole, eliminated) < 1e-9


def test_users_of_many_servers_count_by_their_own_parts() -> None:
    """A user with 1e5 times the tasks of others: its part of 1e-6 fills a server that others need."""
    rng = np.random.default_rng(0)
    demand = rng.uniform(0.5, 2, (8, 2)) * 10.0 ** np.array([-4, -2, 0, 0, 0, 0, 0, 0])[:, None]
    cluster = Cluster(rng.uniform(1, 5, (6, 2)) * 10.0 ** rng.uniform(-3, 3, (6, 1)), demand)
    # Four servers have just as many pairs as there may be of active pairs and rows.
    for shared, mechanism in product(
        (cluster, cluster.select(servers=cluster.servers[:4])), (fo.AlphaFair(3.0), fo.AlphaPFVDS(3.0))
    ):
        problem, offer = off(shared, mechanism, 1e-7, 1)
        assert error(problem, with_refinement(problem, offer)) < 1e-9


def test_with_task_counts_games_are_left_alone() -> None:
    """A vertex would be another equilibrium."""
    mechanism = fo.AlphaPFVDS(3.0)
    rng = np.random.default_rng(2)
    problem, offer = off(Cluster(rng.uniform(1, 5, (4, 3)), rng.uniform(0.25, 5, (8, 3))), mechanism, 1e-6, 2)
    assert at_vertex(problem, offer) is not None
    limited = problem.cluster.replace(max_tasks=0.5 * problem.polytope.reach)
    assert at_vertex(Problem(limited, mechanism.criterion(limited)), offer) is None


@pytest.mark.parametrize(("seed", "alpha"), [(1, 0.5), (3, 3.0)])
def test_few_users_on_thousands_of_servers_need_no_table_of_rows(
    seed: int, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interior point misses these by 5e-6; a matrix of 6,600 rows took 20 seconds, or a path 34."""
    monkeypatch.setattr(refinement, "lapack", None)
    rng = np.random.default_rng(seed)
    cluster = fo.Cluster(10 * np.exp(rng.normal(size=(3000, 3))), np.exp(0.7 * rng.normal(size=(10, 3))))
    found = fo.AlphaPFVDS(alpha).solve(cluster, 1e-9)
    assert found.certificate.passes(1e-9)
    assert found.stats.solver == "interior point"
