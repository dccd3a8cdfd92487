"""Every engine of a mechanism answers on its own, they agree, and program and criterion say the same."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from kernels import without_kernels
from numpy.testing import assert_allclose

from fairopt.mechanisms import Mechanism
from fairopt.mechanisms.reference.program import check_expressed
from fairopt.model.cluster import Cluster

from .registry import OTHERS, UNIQUE, VARIANTS, identify, one_answer, refuses, resources, takes_limits

#: Nothing ties, and everything matters: weights, placement, a limit that binds.
FREE = Cluster([[9, 18], [7, 5]], [[1, 4], [3, 1], [2, 2.5]], weight=[1, 2, 1.5])
PLACED = FREE.replace(eligible=[[1, 0], [1, 1], [0, 1]])
LIMITED = PLACED.replace(max_tasks=[np.inf, 0.5, np.inf])
CLUSTERS = {
    "placed": PLACED,
    "limited": LIMITED,
    **{
        f"{name}, one resource": cluster.select(resources=cluster.resources[:1])
        for name, cluster in (("free", FREE), ("limited", LIMITED))
    },
}


def engines(mechanism: Mechanism, cluster: Cluster) -> tuple[str, ...]:
    return mechanism.engines(mechanism.criterion(mechanism.prepare(cluster)[0]))


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_engines_agree(mechanism: Mechanism) -> None:
    """Each of them alone: what one cannot do must not be hidden by another that stands in."""
    solved = 0
    for name, cluster in CLUSTERS.items():
        if solved == 2 or refuses(mechanism, cluster):  # of one resource where several are refused
            continue
        answers = []
        ways = [(engine, True) for engine in engines(mechanism, cluster)]
        for engine, kernels in [*ways, (ways[0][0], False)]:
            with nullcontext() if kernels else without_kernels():
                found = mechanism.solve(cluster, engine=engine)
            assert found.stats.engine == engine
            assert found.certify().residual <= mechanism.tolerance(engine), (name, engine)
            answers.append(found.arrays.user_tasks)
            assert found.arrays.user_tasks.min() > 0 or mechanism not in UNIQUE
        if mechanism in UNIQUE:
            for tasks in answers[1:]:
                assert_allclose(tasks, answers[0], rtol=1e-4, err_msg=name)
        assert engines(mechanism, cluster)[0] == mechanism.solve(cluster).stats.engine
        solved += 1
    assert solved >= 1


@pytest.mark.parametrize("mechanism", [*VARIANTS, *OTHERS], ids=identify)
def test_program_and_criterion_say_the_same(mechanism: Mechanism) -> None:
    """Of the package's own mechanisms nobody looks before an engine answers that reads the criterion alone."""
    seen = [mechanism.prepare(cluster)[0] for cluster in CLUSTERS.values() if not refuses(mechanism, cluster)]
    assert seen
    assert "program" in {name for kind in type(mechanism).__mro__[:2] for name in vars(kind)}
    for cluster in seen:
        check_expressed(mechanism, mechanism.program, cluster, mechanism.criterion(cluster))


@pytest.mark.parametrize(
    "mechanism",
    [m for m in [*VARIANTS, *OTHERS] if one_answer(m) and getattr(m, "alpha", 1.0) not in (50, 500)],
    ids=identify,
)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # at these tolerances; the comparison decides
def test_programs_have_the_answers_of_criteria(mechanism: Mechanism, seed: int) -> None:
    """On random clusters, solved by CVXPY as they come: all levels of max-min, else Clarabel's tasks."""
    rng = np.random.default_rng(100 + seed)
    users, servers = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    eligible = (rng.random((users, servers)) < 0.8) | (np.arange(servers) == 0)
    draws = [rng.uniform(low, high, shape) for low, high, shape in (
        (0.5, 20, (servers, 2)), (0.1, 5, (users, 2)), (0.5, 2, users)
    )]  # fmt: skip
    cluster = Cluster(*draws, eligible=eligible)
    if resources(mechanism) == 1:
        cluster = cluster.select(resources=[cluster.resources[0]])
    if takes_limits(mechanism) and seed:
        cluster = cluster.replace(max_tasks=rng.choice([0.5, 1.0, np.inf], users))
    answer, problem = mechanism.solve(cluster), mechanism.problem(cluster)
    if np.isinf(answer.criterion.alpha):
        problem.lexicographic()
    else:
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    known = answer.arrays.user_tasks
    assert_allclose(problem.user_tasks.value, known, rtol=1e-3, atol=1e-5 * known.max())
