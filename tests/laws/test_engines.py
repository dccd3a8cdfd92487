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
def test_program_and_criterion_say_the_same(mechanism: Mechanism) -> None:
    """Of the package's own mechanisms nobody looks before an engine answers that reads the criterion alone."""
    seen = [mechanism.prepare(cluster)[0] for cluster in CLUSTERS.values() if not refuses(mechanism, cluster)]
    assert seen
    assert "program" in {name for kind in type(mechanism).__mro__[:2] for name in vars(kind)}
    for cluster in seen[:2]:  # of one resource where several are refused
        check_expressed(mechanism, mechanism.program, cluster, mechanism.criterion(cluster))
