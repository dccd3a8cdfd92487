"""The index of an equilibrium: derivatives, three ways to it, and what answers say of theirs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import fairopt as fo
from fairopt.game.model.index import active_at, index_of_answer

from .test_equilibria import SEVERAL, drawn, game

Array = NDArray[np.float64]


def test_the_index_is_the_sign_of_a_determinant_written_down_directly() -> None:
    cases = [(one, SEVERAL, 3.0) for one in fo.game.equilibria(SEVERAL, 3)]
    for seed in range(8):
        cluster = drawn((6, 4, 3), seed)
        cases.append((fo.AlphaPFVDS(4).solve(cluster), cluster, 4.0))
    regular = 0
    for answer, cluster, alpha in cases:
        x, gamma = answer.tasks, cluster.gamma
        pairs = [(n, i) for n, i in np.ndindex(*x.shape) if x[n, i] > 1e-9 * x[n].sum()]
        assert answer.arrays.prices is not None
        rows = [(i, r) for i, r in np.ndindex(*cluster.capacity.shape) if answer.arrays.prices[i, r] > 0]
        unlike = np.zeros((len(pairs) + len(rows),) * 2)
        for p, (n, i) in enumerate(pairs):
            for q, (m, _) in enumerate(pairs):
                unlike[p, q] = (
                    alpha * gamma[n, i] ** (alpha - 1) * float(n == m) * (cluster.weight[n] / x[n].sum()) ** alpha
                )
                unlike[p, q] /= x[n].sum()
            for k, (j, r) in enumerate(rows):
                if i == j:
                    unlike[p, len(pairs) + k] = cluster.demand[n, r]
                    unlike[len(pairs) + k, p] = -cluster.demand[n, r]
        assert index_of_answer(game(cluster, alpha), answer.tasks, answer.log_prices) == answer.index
        if np.linalg.matrix_rank(unlike) == len(unlike):
            regular += 1
            assert int(np.linalg.slogdet(unlike)[0]) == answer.index
    assert regular >= 3


def test_splits_that_are_free_do_not_count() -> None:
    """Two servers that are alike: the matrix is singular, tasks are unique, and the index is +1."""
    cluster = drawn((4, 3, 2), 1)
    cluster = cluster.replace(capacity=cluster.capacity[[0, 0, 1]])
    problem = game(cluster, 3)
    answer = fo.AlphaPFVDS(3).solve(cluster)
    assert answer.log_prices is not None
    assert (answer.tasks[:, :2] > 0).all(axis=1).sum() > 1
    assert index_of_answer(problem, answer.tasks, answer.log_prices) == 1
    assert fo.game.equilibria(cluster, 3).complete
    active = active_at(problem, answer.tasks, answer.log_prices)
    assert active is not None
    assert np.linalg.matrix_rank(active.jacobian(), tol=1e-9) < len(active.jacobian())


def test_answers_know_their_index() -> None:
    assert fo.AlphaPFVDS(1).solve(SEVERAL).index == 1
    assert fo.AlphaPFVDS(0.3).solve(SEVERAL).index == 1
    assert fo.DRFH().solve(SEVERAL).index is None
    assert fo.PSDSF().solve(SEVERAL).index is None
    large = fo.AlphaPFVDS(2).solve(drawn((60, 12, 3), 0))
    assert large.index == 1
    limited = SEVERAL.replace(max_tasks=[0.1, np.inf, np.inf])
    assert fo.AlphaPFVDS(3).solve(limited).index is None


def test_indices_along_alpha_change_only_where_equilibria_meet() -> None:
    counts = [len(fo.game.equilibria(SEVERAL, alpha)) for alpha in np.linspace(2.95, 3.05, 9)]
    assert counts[0] == counts[-1] == 1
    assert 3 in counts
    assert all(abs(a - b) in (0, 2) for a, b in pairwise(counts))


def test_where_nobody_can_run_anything_nothing_is_left() -> None:
    cluster = fo.Cluster([[1.0, 0], [2, 0]], [[1.0, 1], [0, 1]])
    assert fo.AlphaPFVDS(3).solve(cluster).index == 1
