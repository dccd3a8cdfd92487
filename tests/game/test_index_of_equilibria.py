"""The index of an equilibrium: derivatives, three ways to it, and what answers say of theirs."""

from __future__ import annotations

import numpy as np

import fairopt as fo
from fairopt.core.game.index import active_at, index_of_answer

from .clusters import SEVERAL
from .test_equilibria import drawn, game


def test_the_index_is_the_sign_of_a_determinant_written_down_directly() -> None:
    cases = [(one, SEVERAL, 3.0) for one in fo.game.equilibria(SEVERAL, 3)]
    for seed in range(8):
        cluster = drawn((6, 4, 3), seed)
        cases.append((fo.AlphaPFVDS(4).solve(cluster), cluster, 4.0))
    regular = 0
    for answer, cluster, alpha in cases:
        x, gamma = answer.tasks, cluster.gamma
        n, i = np.nonzero(x > 1e-9 * x.sum(axis=1, keepdims=True))
        j, r = np.nonzero(answer.arrays.prices > 0)
        total = x.sum(axis=1)[n]
        falls = alpha * gamma[n, i] ** (alpha - 1) * (cluster.weight[n] / total) ** alpha / total
        use = cluster.demand[n][:, r] * (i[:, None] == j)
        unlike = np.block([[falls[:, None] * (n[:, None] == n), use], [-use.T, np.zeros((len(j), len(j)))]])
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
    assert (answer.tasks[:, :2] > 0).all(axis=1).sum() > 1
    assert index_of_answer(problem, answer.tasks, answer.log_prices) == 1
    assert fo.game.equilibria(cluster, 3).complete
    active = active_at(problem, answer.tasks, answer.log_prices)
    assert np.linalg.matrix_rank(active.jacobian, tol=1e-9) < len(active.jacobian)


def test_answers_know_their_index() -> None:
    assert fo.AlphaPFVDS(1).solve(SEVERAL).index == 1
    assert fo.AlphaPFVDS(0.3).solve(SEVERAL).index == 1
    assert fo.DRFH().solve(SEVERAL).index is None
    assert fo.PSDSF().solve(SEVERAL).index is None
    large = fo.AlphaPFVDS(2).solve(drawn((60, 12, 3), 0))
    assert large.index == 1
    assert fo.AlphaPFVDS(3).solve(fo.Cluster([[1.0, 0]], [[1.0, 1]])).index == 1  # nobody can run anything
    limited = SEVERAL.replace(max_tasks=[0.1, np.inf, np.inf])
    assert fo.AlphaPFVDS(3).solve(limited).index is None
