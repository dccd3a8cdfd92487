"""The structured factorisation against matrices assembled entry by entry, in floats and in exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairopt.engines.linalg import _eliminate, structured

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Arguments = tuple[Index, Index, Array, Array, Array, Array, Array]


def drawn(
    rng: np.random.Generator, users: int, servers: int, resources: int, density: float = 0.6, low: float = -1
) -> Arguments:
    """start, server, weight, left, right, extra, diagonal; users without a pair do not occur."""
    there = rng.random((users, servers)) < density
    there[np.arange(users), rng.integers(0, servers, users)] = True
    user, server = np.nonzero(there)
    start = np.searchsorted(user, np.arange(users + 1))
    left = rng.uniform(0, 1, (len(user), resources)) * (rng.random((len(user), resources)) < 0.8)
    right = left * rng.uniform(0.5, 1.5, left.shape)
    weight, extra = 10 ** rng.uniform(low, 1, len(user)), 10 ** rng.uniform(-1, 1, users)
    return start, server, weight, left, right, extra, rng.uniform(0.5, 2, (servers, resources))


def naive(
    start: Index, server: Index, weight: Array, left: Array, right: Array, extra: Array, diagonal: Array
) -> Array:
    """S from its formula."""
    size, resources = diagonal.size, diagonal.shape[1]
    result = np.diag(diagonal.ravel())
    for n in range(len(start) - 1):
        summed, a, b = np.zeros((size, size)), np.zeros(size), np.zeros(size)
        for k in range(start[n], start[n + 1]):
            one, other = np.zeros(size), np.zeros(size)
            for r in range(resources):
                one[server[k] * resources + r] = left[k, r]
                other[server[k] * resources + r] = right[k, r]
            summed += weight[k] * np.outer(one, other)
            a += weight[k] * one
            b += weight[k] * other
        result += summed - np.outer(a, b) / (extra[n] + weight[start[n] : start[n + 1]].sum())
    return result


#: Options that force a route.
ROUTES = {name: replace(structured.OPTIONS, loop_cost=cost) for name, cost in (("pairs", 0.0), ("product", 1e9))}


def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The routes that are really taken from now on."""
    taken: list[str] = []

    def noting(original: Callable[..., None], called: str) -> Callable[..., None]:
        def call(*given: Any) -> None:
            taken.append(called)
            original(*given)

        return call

    monkeypatch.setattr(_eliminate, "couple", noting(_eliminate.couple, "pairs"))
    monkeypatch.setattr(_eliminate, "spread_both", noting(_eliminate.spread_both, "product"))
    return taken


@pytest.mark.parametrize("name", ["pairs", "product"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 2), (6, 1, 3), (7, 4, 1), (12, 5, 3), (40, 8, 4)])
def test_against_the_formula(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int], name: str) -> None:
    taken = noted(monkeypatch)
    rng = np.random.default_rng(5)
    for density in (0.3, 1.0):
        given = drawn(rng, *shape, density)
        matrix, rhs = naive(*given), rng.normal(size=shape[1] * shape[2])
        found = structured.factor(*given, options=ROUTES[name]).solve(rhs)
        np.testing.assert_allclose(found, np.linalg.solve(matrix, rhs), rtol=1e-9, atol=1e-10)
    assert set(taken) == {name}


def test_the_cheaper_route_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each user on one of many servers: pairs. Everybody everywhere: the product."""
    rng = np.random.default_rng(0)
    taken = noted(monkeypatch)
    structured.factor(*drawn(rng, 30, 10, 2, 0.0))
    assert taken == ["pairs"]
    structured.factor(*drawn(rng, 30, 10, 2, 1.0))
    assert set(taken[1:]) == {"product"}
    taken.clear()
    mixed = halved(*drawn(rng, 30, 10, 2, 1.0))
    rhs = rng.normal(size=20)
    assert np.linalg.solve(naive(*mixed), rhs) == pytest.approx(structured.factor(*mixed).solve(rhs), rel=1e-9)
    assert taken == ["product", "pairs"]
    rough = structured.factor(*mixed, single=True)  # the same users both ways again, should single precision not do
    assert np.linalg.solve(naive(*mixed), rhs) == pytest.approx(rough.double().solve(rhs), rel=1e-9)


def test_the_cheaper_route_is_taken_where_symmetric(monkeypatch: pytest.MonkeyPatch) -> None:
    """By users everywhere the product of matrices, by the others the sum over pairs of pairs."""
    rng = np.random.default_rng(1)
    start, server, weight, left, _, extra, diagonal = symmetric(rng, 30, 10, 2, density=1.0)
    mixed = halved(start, server, weight, left, left, extra, diagonal)
    original, many = _eliminate.spread, []

    def spread(users: Index, *given: Any) -> None:
        many.extend(users.tolist())
        original(users, *given)

    monkeypatch.setattr(_eliminate, "spread", spread)
    rhs = rng.normal(size=20)
    assert np.linalg.solve(naive(*mixed), rhs) == pytest.approx(factored(mixed).solve(rhs), rel=1e-9)
    assert many == list(range(15))


def halved(
    start: Index, server: Index, weight: Array, left: Array, right: Array, extra: Array, diagonal: Array
) -> tuple[Index, Index, Array, Array, Array, Array, Array]:
    """The first half of the users everywhere, the others on their first server only."""
    half = (len(start) - 1) // 2
    kept = np.sort(np.r_[np.arange(start[half]), start[half:-1]])
    start = np.r_[start[: half + 1], start[half] + 1 + np.arange(len(start) - 1 - half)]
    return start, server[kept], weight[kept], left[kept], right[kept], extra, diagonal


def test_single_precision_is_refined_and_given_up_where_it_must_be() -> None:
    options = ROUTES["product"]
    rng = np.random.default_rng(7)
    given, rhs = drawn(rng, 40, 8, 3), rng.normal(size=24)
    exact = np.linalg.solve(naive(*given), rhs)
    easy = structured.factor(*given, single=True, options=options)
    np.testing.assert_allclose(easy.solve(rhs), exact, rtol=1e-6, atol=1e-9)
    assert easy.single
    # Servers that only differences of their prices matter to, nearly.
    start, server, weight, _, _, _, _ = drawn(rng, 40, 8, 1)
    ones = np.ones((len(server), 1))
    hard = (start, server, weight, ones, ones, np.full(40, 1e-11), np.full((8, 1), 1e-11))
    factors = structured.factor(*hard, single=True, options=options)
    found = factors.solve(rhs[:8])
    assert not factors.single
    np.testing.assert_allclose(found, structured.factor(*hard, options=options).solve(rhs[:8]), rtol=1e-12)


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


def test_a_row_that_nobody_uses() -> None:
    given = drawn(np.random.default_rng(4), 5, 3, 2)
    given[3][:, 1] = given[4][:, 1] = 0.0
    found = structured.factor(*given).solve(np.ones(6))
    np.testing.assert_allclose(found[1::2], 1 / given[6][:, 1], rtol=1e-9)


def solved_exactly(matrix: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction]:
    """Gauss, in fractions."""
    rows = [[*row, value] for row, value in zip(matrix, rhs, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [value - rows[i][k] * top for value, top in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("name", ["pairs", "product"])
def test_digits_that_a_subtraction_would_lose(name: str) -> None:
    """A user on one server with weight 1e12, another with nearly all of its weight there: exact arithmetic decides."""
    start, server = np.array([0, 1, 3]), np.array([0, 0, 1])
    weight, extra = np.array([1e12, 1.7e12, 3.1]), np.array([0.3, 0.9])
    left = np.array([[0.7], [1.0], [0.3]])
    diagonal = np.array([[2.0**-40], [2.0**-40]])
    exact = [[Fraction(2) ** -40 if i == j else Fraction(0) for j in range(2)] for i in range(2)]
    for n in range(2):
        pairs = range(start[n], start[n + 1])
        whole = Fraction(extra[n]) + sum(Fraction(weight[k]) for k in pairs)
        for k in pairs:
            scaled = Fraction(weight[k]) * Fraction(left[k, 0])
            exact[server[k]][server[k]] += scaled * Fraction(left[k, 0])
            for j in pairs:
                other = Fraction(weight[j]) * Fraction(left[j, 0])
                exact[server[k]][server[j]] -= scaled * other / whole
    rhs = [Fraction(1), Fraction(-1, 4)]
    expected = np.array([float(value) for value in solved_exactly(exact, rhs)])
    factors = structured.factor(start, server, weight, left, left, extra, diagonal, options=ROUTES[name])
    found = factors.solve(np.array([1, -0.25]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    lost = np.linalg.solve(naive(start, server, weight, left, left, extra, diagonal), np.array([1, -0.25]))
    assert np.abs(lost / expected - 1).max() > 1e-6


# -- left is right -------------------------------------------------------------------------------


def symmetric(rng: np.random.Generator, *shape: int, density: float = 0.6, low: float = -1) -> Arguments:
    """As `drawn`, with right = left."""
    start, server, weight, left, _, extra, diagonal = drawn(rng, *shape, density, low)
    return start, server, weight, left, left, extra, diagonal


def factored(
    given: Arguments, least: float = 0.0, single: bool = False, cost: float = structured.OPTIONS.loop_cost
) -> structured.SymmetricFactors:
    start, server, weight, left, _, extra, diagonal = given
    options = replace(structured.OPTIONS, loop_cost=cost)
    return structured.factor_symmetric(start, server, weight, left, extra, diagonal, least, single, options=options)


@pytest.mark.parametrize("cost", [0.0, 1e9])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 4, 2), (6, 1, 3), (7, 4, 1), (12, 5, 3), (40, 8, 4)])
def test_symmetric_against_the_formula(shape: tuple[int, int, int], cost: float) -> None:
    rng = np.random.default_rng(5)
    for density in (0.3, 1.0):
        given = symmetric(rng, *shape, density=density)
        rhs = rng.normal(size=shape[1] * shape[2])
        found = factored(given, cost=cost)
        np.testing.assert_allclose(found.solve(rhs), np.linalg.solve(naive(*given), rhs), rtol=1e-9, atol=1e-10)
        assert found.damping < 1e-12


@pytest.mark.parametrize("single", [False, True])
def test_symmetric_with_a_border(single: bool) -> None:
    rng = np.random.default_rng(6)
    start, server, weight, left, _, extra, diagonal = given = symmetric(rng, 12, 5, 3)
    border, rhs = rng.normal(size=(5, 3)), rng.normal(size=15)
    found = structured.factor_symmetric(start, server, weight, left, extra, diagonal, single=single, border=border)
    expected = np.linalg.solve(naive(*given) + np.outer(border, border), rhs)
    np.testing.assert_allclose(found.solve(rhs), expected, rtol=1e-3 if single else 1e-9, atol=1e-4 if single else 0)


def test_symmetric_single_precision_is_close() -> None:
    rng = np.random.default_rng(2)
    given, rhs = symmetric(rng, 40, 8, 3), rng.normal(size=24)
    double, single = (factored(given, single=single, cost=1e9).solve(rhs) for single in (False, True))
    off = float(np.abs(single - double).max() / np.abs(double).max())
    assert 1e-12 < off < 1e-4


def test_symmetric_users_without_a_slope() -> None:
    """h = 0, as for users who are held: only differences between a user's servers have a price."""
    rng = np.random.default_rng(3)
    start, server, weight, left, right, extra, diagonal = symmetric(rng, 20, 6, 2, density=1.0)
    given = start, server, weight, left, right, 0 * extra, diagonal
    rhs = rng.normal(size=12)
    np.testing.assert_allclose(factored(given).solve(rhs), np.linalg.solve(naive(*given), rhs), rtol=1e-9)


@pytest.mark.parametrize("cost", [0.0, 1e9])
def test_symmetric_digits_that_a_subtraction_would_lose(cost: float) -> None:
    """One server, users with weights of 1e12: what remains is their slope, in exact arithmetic 0.3 * 0.49 + 0.9."""
    start, server, weight = np.array([0, 1, 2]), np.array([0, 0]), np.array([1e12, 1e13])
    extra, left = np.array([0.3, 0.9]), np.array([[0.7], [1.0]])
    diagonal = np.full((1, 1), 2.0**-40)
    given = (start, server, weight, left, left, extra, diagonal)
    exact = Fraction(2) ** -40
    for n in range(2):
        w, h, a = Fraction(weight[n]), Fraction(extra[n]), Fraction(left[n, 0])
        exact += w * a * a * h / (h + w)
    assert factored(given).solve(np.ones(1))[0] == pytest.approx(float(1 / exact), rel=1e-12)
    assert abs(1 / naive(*given)[0, 0] - float(1 / exact)) > 1e-6


def test_an_indefinite_matrix_is_damped() -> None:
    """Rounding may make S indefinite; here its diagonal is, on purpose: more is added, and it says how much."""
    given = symmetric(np.random.default_rng(4), 5, 3, 2)
    given[6][:] = 1e-18
    found = factored((*given[:5], 1e-18 * given[5], given[6]))
    assert 0 < found.damping <= 1e-5
    assert np.isfinite(found.solve(np.ones(6))).all()


@pytest.mark.parametrize("resources", [3, 4])
def test_what_is_compiled_for_a_number_of_resources_is_kept_for_the_next_process(resources: int) -> None:
    """numba tells enclosed objects apart by their pickles, and compiled functions' differ from process to process."""
    enclosed = _eliminate._coupling(resources).py_func.__closure__
    assert [cell.cell_contents for cell in enclosed] == [resources]


@pytest.mark.parametrize("shape", [(3, 120, 2), (10, 70, 4), (2, 300, 1)])
@pytest.mark.parametrize("low", [-1, -8])
def test_few_users_on_many_servers(shape: tuple[int, int, int], low: float) -> None:
    """Servers are eliminated first, and the solution is that of the formula."""
    rng = np.random.default_rng(3)
    for density in (0.3, 1.0):
        given = drawn(rng, *shape, density=density, low=low)
        rhs = rng.standard_normal(given[-1].size)
        for right in (given[4], given[3]):
            start, server, weight, left, _, extra, diagonal = given
            whole = naive(start, server, weight, left, right, extra, diagonal)
            made = structured.factor(start, server, weight, left, right, extra, diagonal)
            assert isinstance(made, structured.ServersFirst)
            np.testing.assert_allclose(whole @ made.solve(rhs), rhs, rtol=0, atol=1e-11 * np.abs(whole).max())
        symmetric = structured.factor_symmetric(start, server, weight, left, extra, diagonal)
        np.testing.assert_allclose(symmetric.solve(rhs), made.solve(rhs), rtol=1e-10, atol=1e-12)


def test_many_users_or_few_rows_stay_with_prices() -> None:
    rng = np.random.default_rng(4)
    for shape in ((3, 20, 2), (200, 120, 2)):
        assert isinstance(structured.factor(*drawn(rng, *shape)), structured.Factors)
