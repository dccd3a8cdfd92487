"""The structured factorisation against matrices assembled entry by entry, in floats and in exact fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from fairopt.engines.linalg import structured

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Arguments = tuple[Index, Index, Array, Array, Array, Array]


def drawn(
    rng: np.random.Generator, users: int, servers: int, resources: int, density: float | Array = 0.6, low: float = -1
) -> Arguments:
    """start, server, weight, vectors, extra, diagonal; users without a pair do not occur."""
    there = rng.random((users, servers)) < density
    there[np.arange(users), rng.integers(0, servers, users)] = True
    user, server = np.nonzero(there)
    start = np.searchsorted(user, np.arange(users + 1))
    vectors = rng.uniform(0, 1, (len(user), resources)) * (rng.random((len(user), resources)) < 0.8)
    weight, extra = 10 ** rng.uniform(low, 1, len(user)), 10 ** rng.uniform(-1, 1, users)
    return start, server, weight, vectors, extra, rng.uniform(0.5, 2, (servers, resources))


def naive(start: Index, server: Index, weight: Array, vectors: Array, extra: Array, diagonal: Array) -> Array:
    """S from its formula."""
    size, resources = diagonal.size, diagonal.shape[1]
    result = np.diag(diagonal.ravel())
    for n in range(len(start) - 1):
        summed, whole = np.zeros((size, size)), np.zeros(size)
        for k in range(start[n], start[n + 1]):
            one = np.zeros(size)
            one[server[k] * resources : (server[k] + 1) * resources] = vectors[k]
            summed += weight[k] * np.outer(one, one)
            whole += weight[k] * one
        result += summed - np.outer(whole, whole) / (extra[n] + weight[start[n] : start[n + 1]].sum())
    return result


#: Options that force a route, or leave the choice.
ROUTES = {
    name: replace(structured.OPTIONS, loop_cost=cost)
    for name, cost in (("pairs", 0.0), ("product", 1e9), ("cheaper", structured.OPTIONS.loop_cost))
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (6, 1, 3), (7, 4, 1), (40, 8, 4)])
def test_against_the_formula(shape: tuple[int, int, int], route: str) -> None:
    """The last users of half of them on one server: some couple their pairs, others the product."""
    rng, mixed = np.random.default_rng(5), (np.arange(shape[0]) < shape[0] / 2)[:, None].astype(float)
    for density in (0.3, 1.0, mixed):
        given, rhs = drawn(rng, *shape, density), rng.normal(size=shape[1] * shape[2])
        factors = structured.factor(*given, options=ROUTES[route])
        np.testing.assert_allclose(factors.solve(rhs), np.linalg.solve(naive(*given), rhs), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("route", ROUTES)
def test_digits_that_a_subtraction_would_lose(route: str) -> None:
    """A user on one server with weight 1e12, another with nearly all of its weight there: exact arithmetic decides."""
    start, server = np.array([0, 1, 3]), np.array([0, 0, 1])
    weight, extra = np.array([1e12, 1.7e12, 3.1]), np.array([0.3, 0.9])
    left = np.array([[0.7], [1.0], [0.3]])
    given = start, server, weight, left, extra, np.full((2, 1), 2.0**-40)
    exact = np.full((2, 2), Fraction(0)) + np.diag([Fraction(2) ** -40] * 2)
    for n in range(2):
        pairs = range(start[n], start[n + 1])
        whole = Fraction(extra[n]) + sum(Fraction(weight[k]) for k in pairs)
        for k in pairs:
            scaled = Fraction(weight[k]) * Fraction(left[k, 0])
            exact[server[k], server[k]] += scaled * Fraction(left[k, 0])
            for j in pairs:
                exact[server[k], server[j]] -= scaled * Fraction(weight[j]) * Fraction(left[j, 0]) / whole
    (a, b), (c, d) = exact
    expected = np.array([d + b / 4, -c - a / 4], dtype=float) / float(a * d - b * c)
    rhs = np.array([1, -0.25])
    factors = structured.factor(*given, options=ROUTES[route])
    np.testing.assert_allclose(factors.solve(rhs), expected, rtol=1e-9)
    assert np.abs(np.linalg.solve(naive(*given), rhs) / expected - 1).max() > 1e-6


def test_pairs_that_hardly_matter_may_be_left_out() -> None:
    options = ROUTES["pairs"]
    rng = np.random.default_rng(3)
    given, rhs = drawn(rng, 20, 6, 2, 1.0, -12.0), rng.normal(size=12)
    exact = np.linalg.solve(naive(*given), rhs)
    np.testing.assert_allclose(structured.factor(*given, 1e-9, options=options).solve(rhs), exact, rtol=1e-6, atol=1e-7)
    # With everything left out blocks are all that remains.
    blocks = naive(*given).reshape(6, 2, 6, 2)
    kept = np.zeros_like(blocks)
    kept[np.arange(6), :, np.arange(6), :] = blocks[np.arange(6), :, np.arange(6), :]
    none = structured.factor(*given, 1e9, options=options).solve(rhs)
    np.testing.assert_allclose(none, np.linalg.solve(kept.reshape(12, 12), rhs), rtol=1e-9, atol=1e-10)
    assert np.abs(none - exact).max() > 1e-3


def test_single_precision() -> None:
    rng = np.random.default_rng(6)
    given, rhs = drawn(rng, 12, 5, 3), rng.normal(size=15)
    found = structured.factor(*given, single=True)
    assert isinstance(found, structured.Factors)
    assert found.upper.dtype == np.float32
    np.testing.assert_allclose(found.solve(rhs), np.linalg.solve(naive(*given), rhs), rtol=1e-3, atol=1e-4)


def test_an_indefinite_matrix_is_damped() -> None:
    """Rounding may make S indefinite; here its diagonal is, on purpose: more is added, and it says how much."""
    start, server, weight, vectors, extra, diagonal = drawn(np.random.default_rng(4), 5, 3, 2)
    found = structured.factor(start, server, weight, vectors, 1e-18 * extra, np.full_like(diagonal, 1e-18))
    assert isinstance(found, structured.Factors)
    assert 0 < found.damping <= 1e-5
    assert np.isfinite(found.solve(np.ones(6))).all()


@pytest.mark.parametrize("shape", [(3, 120, 2), (10, 70, 4), (2, 300, 1)])
@pytest.mark.parametrize("low", [-1, -8])
def test_few_users_on_many_servers(shape: tuple[int, int, int], low: float) -> None:
    """Servers are eliminated first, and the solution is that of the formula."""
    rng = np.random.default_rng(3)
    for density in (0.3, 1.0):
        given = drawn(rng, *shape, density=density, low=low)
        rhs = rng.standard_normal(given[-1].size)
        made = structured.factor(*given)
        assert isinstance(made, structured.ServersFirst)
        whole = naive(*given)
        np.testing.assert_allclose(whole @ made.solve(rhs), rhs, rtol=0, atol=1e-11 * np.abs(whole).max())
