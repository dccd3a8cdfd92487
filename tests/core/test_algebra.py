"""Pairs eliminated in either order: the equations as they are written, solved by a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.core import algebra, sparse
from fairopt.core.algebra import Equations, Pairs


def apart(rng: np.random.Generator, density: float) -> Pairs:
    """7 users on 4 servers and 5 on 9, with three resources that not all need."""
    sizes = ((7, 4), (5, 9))
    users, servers = [], []
    for part, (n, k) in enumerate(sizes):
        there = rng.random((n, k)) < density
        there[:, 0] = True
        user, server = np.nonzero(there)
        users.append(user + 7 * part)
        servers.append(server + 4 * part)
    demand = rng.uniform(0.1, 1, (12, 3)) * (rng.random((12, 3)) < 0.8)
    demand[~demand.any(axis=1), 0] = 0.5
    return Pairs(np.concatenate(users), np.concatenate(servers), demand, rng.uniform(0.5, 2, (13, 3)))


def one_part(rng: np.random.Generator, users: int, servers: int) -> Pairs:
    """Everybody on every server."""
    user, server = np.divmod(np.arange(users * servers), servers)
    return Pairs(user, server, rng.uniform(0.1, 1, (users, 2)), rng.uniform(0.5, 2, (servers, 2)))


@pytest.mark.parametrize("order", ["users listed", "servers listed", "users", "servers"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "full"])
@pytest.mark.parametrize("decades", [0, 8])
@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("game", [False, True])
def test_orders(
    order: str, kind: str, decades: float, rough: bool, game: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Factors in single precision are put right as well as others, where numbers are not too far apart."""
    decades = min(decades, 2) if rough else decades
    monkeypatch.setattr(algebra, "_SINGLE_FROM", 0)
    monkeypatch.setattr(sparse, "_UNORDERED", 0)
    monkeypatch.setattr(sparse, "_DENSE_DEGREE", 0.7)
    rng = np.random.default_rng(3)
    pairs = one_part(rng, 6, 5) if kind == "full" else apart(rng, 0.9 if kind == "dense" else 0.4)
    vars(pairs)["order"] = order

    def positive(*shape: int) -> np.ndarray:
        return np.asarray(10 ** rng.uniform(-decades / 2, decades / 2, shape))

    weight, loose, idle = positive(len(pairs.user)), positive(len(pairs.demand)), positive(*pairs.inverse.shape)
    idle[~pairs.present] = np.inf
    rising = (np.arange(len(loose)) % 3 > 0).astype(float)
    if game:
        pairs, rising = pairs.with_value(rng.uniform(0.3, 3, len(pairs.user))), np.zeros(len(loose))
    b = np.where(pairs.present, rng.standard_normal(idle.shape), 0.0)
    e, f = rng.standard_normal(len(loose)), rng.standard_normal() * (not game)
    equations = Equations(pairs, weight, idle, loose, rising, rough)
    lam, p, t = equations.solve(b, e, f, 1e-13)

    # G lam - B p = b;  -B' lam + E p - tau t = e;  tau.p = f.
    through = weight * (pairs.cost(lam) - pairs.of_user(p))
    left = np.where(pairs.present, pairs.use(through) + np.where(pairs.present, idle, 0.0) * lam - b, 0.0)
    users = -pairs.sums(through) + loose * p - rising * t - e
    size = max(np.abs(through).max(), 1.0)
    assert np.abs(left).max() < 1e-11 * size
    assert np.abs(users).max() < 1e-11 * size
    np.testing.assert_allclose(rising @ p, f, atol=1e-11 * max(np.abs(p).max(), 1.0))


@pytest.mark.parametrize("order", ["users listed", "users"])
def test_digits_that_a_subtraction_would_lose(order: str) -> None:
    """A user on one server with weight 1e12, another with nearly all of its weight there."""
    user, server = np.array([0, 1, 1]), np.array([0, 0, 1])
    pairs = Pairs(user, server, np.array([[0.7], [1.0]]), np.array([[1.0], [0.3]]))
    vars(pairs)["order"] = order
    weight, loose, idle = np.array([1e12, 1.7e12, 3.1]), np.array([0.3, 0.9]), 2.0**-40
    w, takes = weight, pairs.takes[:, 0]
    # G - B E^-1 B' without a subtraction: what a user's weight on a server leaves of its whole is a sum.
    whole, both = loose[1] + w[1] + w[2], -takes[1] * takes[2] * w[1] * w[2]
    first = takes[0] ** 2 * w[0] * loose[0] / (loose[0] + w[0]) + takes[1] ** 2 * w[1] * (loose[1] + w[2]) / whole
    second = takes[2] ** 2 * w[2] * (loose[1] + w[1]) / whole
    rhs = np.array([[1.0], [-0.25]])
    expected = np.linalg.solve([[idle + first, both / whole], [both / whole, idle + second]], rhs)
    found = Equations(pairs, weight, np.full((2, 1), idle), loose, np.zeros(2))
    np.testing.assert_allclose(found.inverse(rhs), expected, rtol=1e-9)


def test_the_cheaper_order_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    assert one_part(rng, 5, 300).order == "servers"
    assert one_part(rng, 300, 5).order == "users"
    few = one_part(rng, 400, 150)
    some = np.flatnonzero((few.server == 0) | (few.server == few.user % 150))
    some_of = Pairs(few.user[some], few.server[some], few.demand, few.inverse)
    assert some_of.order == "users"  # lists are not worth compiling
    del vars(some_of)["order"]
    monkeypatch.setattr(algebra, "DENSE_FLOPS", 0.0)
    assert some_of.order == "users listed"
