"""Schur complements from lists, against the matrix itself, and what is left for a dense end."""

from __future__ import annotations

import numpy as np
import pytest

import fairopt as fo
from fairopt.core.leximin import Leximin
from fairopt.core.sparse import Factors, ordered
from fairopt.model.polytope import Polytope


def three_servers(users: int, servers: int) -> tuple[np.ndarray, np.ndarray, fo.Cluster]:
    """Users and servers of pairs, sorted by user, and their cluster."""
    rng = np.random.default_rng(7)
    server = np.sort(np.argsort(rng.random((users, servers)), axis=1)[:, :3], axis=1)
    eligible = np.zeros((users, servers), dtype=bool)
    np.put_along_axis(eligible, server, True, axis=1)
    capacity, demand = rng.lognormal(0, 0.5, (servers, 3)), rng.lognormal(-1, 0.5, (users, 3))
    return np.repeat(np.arange(users), 3), server.ravel(), fo.Cluster(capacity, demand, eligible=eligible)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("size", [1, 2])
def test_factors_solve_what_members_join(symmetric: bool, size: int) -> None:
    user, server, _ = three_servers(400, 300)
    rng, count = np.random.default_rng(1), 300 * size
    order = ordered(user, server, 300, size)
    assert count / 5 < len(order.pointer) - 1 < 0.9 * count  # both kinds of elimination are met
    left = 0.2 * rng.random((len(user) * size, 2))
    right = left if symmetric else 0.2 * rng.random(left.shape)
    node, along = (server[:, None] * size + np.arange(size)).ravel(), rng.random(count) if symmetric else None
    matrix = np.eye(count) if along is None else np.eye(count) + np.outer(along, along)
    for e, f in np.argwhere(np.repeat(user, size)[:, None] == np.repeat(user, size)):
        if node[e] // size != node[f] // size:
            matrix[node[e], node[f]] -= left[e] @ right[f]
    others = None
    if size == 2:  # beside the diagonal in the block of a node: of symmetric ones the lower
        first, second = np.arange(300) * 2 + 1, np.arange(300) * 2
        both = np.append(first, second), np.append(second, first), np.full(600, 0.3)
        matrix[both[:2]] += 0.3
        others = tuple(each[:300] for each in both) if symmetric else both
    found = Factors(order, left[order.member], right[order.member], others, along)
    given = rng.standard_normal(count)
    np.testing.assert_allclose(found.solve(given), np.linalg.solve(matrix, given), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mechanism", [fo.DRFH(), fo.CEEI(scope="servers"), fo.AlphaPFVDS(3), fo.PSDSF()])
def test_as_many_servers_as_users(mechanism: fo.mechanisms.Mechanism) -> None:
    """Which side goes first means nothing to the answer."""
    cluster = three_servers(300, 300)[2]
    assert mechanism.solve(cluster, 1e-7).certificate.residual <= 1e-7


def test_a_user_alone_has_its_servers_without_a_program() -> None:
    capacity, demand = np.array([[4.0, 2.0], [1.0, 3.0], [5.0, 5.0]]), np.array([[1.0, 1.0], [1.0, 2.0]])
    cluster = fo.Cluster(capacity, demand, eligible=[[True, True, False], [False, False, True]], max_tasks=[9, 2])
    criterion = fo.DRFH().criterion(cluster)
    found = Leximin(Polytope(cluster, criterion.limits(cluster)), criterion)
    assert found.steps == 0
    np.testing.assert_allclose(found.tasks().sum(axis=1), [3.0, 2.0])
    assert fo.DRFH().solve(cluster).certificate.residual < 1e-12


def test_marginals_of_pairs_are_those_of_the_table() -> None:
    user, server, cluster = three_servers(20, 20)
    criterion, tasks = fo.AlphaPFVDS(3).criterion(cluster), np.linspace(1, 2, 20)
    table = criterion.log_marginal(tasks)[user, server]
    np.testing.assert_array_equal(criterion.log_marginal_of(tasks, user, server), table)
