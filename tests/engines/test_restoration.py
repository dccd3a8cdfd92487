"""Last digits of max-min over several levels: exact levels, exactly full rows, and certificates that show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import fairopt as fo
from fairopt.certificates.leximin import SAME_LEVEL, by_level, proved
from fairopt.core.leximin import Leximin
from fairopt.engines.maxmin.restoration import RESTORATION, restored
from fairopt.mechanisms import get
from fairopt.model.merging import merge
from fairopt.model.problem import Problem
from fairopt.workloads import alibaba_like

Array = NDArray[np.float64]

MECHANISMS = [fo.DRFH(), fo.TSF(), get("asset-fairness", scope="servers")]


def found(mechanism: fo.mechanisms.Mechanism, seed: int) -> tuple[Problem, Leximin]:
    """Users of whom most need no GPU and all have finite tasks: many levels, with held users in all of them."""
    cluster = merge(alibaba_like(np.random.default_rng(seed), 150, 120, max_tasks=True).cluster).cluster
    problem = Problem(cluster, mechanism.criterion(cluster))
    with np.errstate(all="ignore"):
        return problem, Leximin(problem.polytope, problem.criterion)


def proof(problem: Problem, levels: Leximin, tasks: Array) -> float:
    """The largest rise that prices leave open, by arithmetic alone."""
    polytope, own = problem.polytope, problem.criterion.restrict(problem.polytope.users)
    total = polytope.user_tasks(polytope.fractions(tasks))
    with np.errstate(all="ignore"):
        rise = proved(polytope, tasks, by_level(own.levels(total)), levels.prices(), own.floor).rise
    return float(np.where(polytope.limit > total * (1 + SAME_LEVEL), rise, 0.0).max())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_proofs_are_better(mechanism: fo.mechanisms.Mechanism) -> None:
    """A hundred times where levels alone leave more than 1e-10 open, but for one of twelve, and never worse.

    Which levels are found to 1e-11 before hangs on rounding.
    """
    less = 0
    for seed in range(12):
        problem, levels = found(mechanism, seed)
        with np.errstate(all="ignore"):
            tasks = restored(levels)
        assert tasks is not None
        before, after = proof(problem, levels, levels.tasks()), proof(problem, levels, tasks)
        assert before < 1e-6
        assert after < max(1.01 * before, 2e-12)
        less += before > 1e-10 and after >= 1e-2 * before
    assert less <= 1


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
@pytest.mark.parametrize("seed", [0, 1, 6, 11, 16])
def test_such_clusters_are_certified(mechanism: fo.mechanisms.Mechanism, seed: int) -> None:
    cluster = alibaba_like(np.random.default_rng(seed), 150, 120, max_tasks=True).cluster
    answer = mechanism.solve(cluster)
    assert answer.stats.engine == "native"
    assert answer.certify().residual < 1e-6


def test_far_moves_are_refused() -> None:
    _, levels = found(fo.DRFH(), 0)
    with np.errstate(all="ignore"):
        assert restored(levels, replace(RESTORATION, far=1e-15)) is None
        levels.level = levels.level * np.linspace(1, 3, len(levels.level))  # more than there is
        assert restored(levels) is None


def test_thousands_with_finite_tasks_need_no_other_engine() -> None:
    cluster = alibaba_like(np.random.default_rng(0), 1000, 750, max_tasks=True).cluster
    for mechanism in (fo.DRFH(), fo.TSF()):
        answer = mechanism.solve(cluster)
        assert answer.stats.engine == "native"
        assert answer.certificate.residual <= 1e-6
