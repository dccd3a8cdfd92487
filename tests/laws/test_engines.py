"""Every engine of a mechanism answers on its own, they agree, and the declarative one solves the formulation."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from kernels import without_kernels
from numpy.testing import assert_allclose

from fairopt.engines.reference.program import Formulation, Program
from fairopt.game import reference
from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster
from fairopt.model.problem import Problem

from .registry import OTHERS, UNIQUE, VARIANTS, identify, refuses

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
def test_the_criterion_expresses_the_formulation(mechanism: Mechanism) -> None:
    """Of the package's own mechanisms nobody looks before an engine answers that reads the criterion alone."""
    seen = [mechanism.prepare(cluster)[0] for cluster in CLUSTERS.values() if not refuses(mechanism, cluster)]
    assert seen
    for cluster in seen:
        problem = Problem(cluster, mechanism.criterion(cluster))
        assert mechanism.formulation(mechanism.program(problem.polytope, problem.criterion)).constraints


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_the_formulation_is_what_is_solved(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tighter limits in the formulation the answer is not the mechanism's, and is not returned.

    Nor in games, where the formulation states one server's problem: other programs may find where to start, no more.
    """
    cluster = next(cluster for cluster in reversed(CLUSTERS.values()) if not refuses(mechanism, cluster))
    right = mechanism.solve(cluster).arrays.user_tasks
    formulate = type(mechanism).formulate

    def scarce(self: Mechanism, program: Program) -> Formulation:
        made = formulate(self, program)
        rules = {name: rule for name, rule in made.constraints.items() if name != "min_tasks"}  # could not be met
        return Formulation(made.objective, {**rules, "max_tasks": program.fraction <= 0.1})

    # `formulate` with that is refused before it is solved (test_statements.py): this is behind that check.
    monkeypatch.setattr(type(mechanism), "formulation", scarce)
    monkeypatch.setattr(reference, "solutions", partial(reference.solutions, max_rounds=4))  # or games try for long
    flagged = mechanism.solve(cluster, engine="declarative", solver="CLARABEL", throw=False)
    assert flagged.flagged
    assert flagged.arrays.user_tasks.sum() < 0.5 * right.sum()
