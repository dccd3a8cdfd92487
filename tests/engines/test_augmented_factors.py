"""The Newton matrix of the last digits: its formula entry by entry, its product, and both ways to solve with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from families import FAMILIES, draw
from numpy.typing import NDArray

import fairopt as fo
from fairopt.certificates.backward import log_price_per_task
from fairopt.engines.augmented import factors
from fairopt.engines.augmented.state import AugmentedState, Options
from fairopt.engines.augmented.system import System
from fairopt.model.problem import Problem

Array = NDArray[np.float64]


def system_and_point(family: str, seed: int, alpha: float, scope: str) -> tuple[System, AugmentedState]:
    """A system at a random point beside the answer: products of 1e-1 to 1e-6, as on the way of an interior point."""
    rng = np.random.default_rng([seed, 7])
    cluster = draw(family, seed)
    mechanism = fo.AlphaPFVDS(alpha) if scope == "game" else fo.AlphaFair(alpha)
    problem = Problem(cluster, mechanism.criterion(cluster))
    polytope, criterion = problem.polytope, problem.criterion
    answer = mechanism.solve(cluster)
    user, server = polytope.pair_user, polytope.pair_server
    tasks = answer.tasks[polytope.users[user], server] * rng.uniform(0.9, 1.0, len(user))
    log_rows = rng.uniform(-1, 1, len(polytope.row_server))
    ones = np.ones(len(polytope.users))
    own = criterion.restrict(polytope.users)
    marginal = own.log_marginal(ones)
    marginal = marginal[user, server] if criterion.scope == "game" else marginal[user]
    cost = log_price_per_task(polytope, log_rows)
    log_rows = log_rows + float(np.median(marginal - cost))
    with np.errstate(divide="ignore"):  # demands of zero
        system = System(polytope, marginal, alpha, tasks, log_rows, Options())
        at = system.begin()

    def spread(size: int) -> Array:
        return np.asarray(10 ** rng.uniform(-3, 0.5, size))

    return system, AugmentedState(
        at.part * rng.uniform(0.5, 1.0, len(at.part)) + 1e-4,
        spread(len(at.slack)),
        at.log_row,
        at.weight,
        spread(len(at.idle)),
        spread(len(at.room)),
        spread(len(at.excess)),
    )


def matrix_of(system: System, at: AugmentedState) -> factors.Matrix:
    with np.errstate(divide="ignore"):
        return factors.Matrix(system, at, system.at(at))


def solved(system: System, at: AugmentedState, rhs: Array, **options: int) -> Array:
    """The solution with the matrix at a point, by the way that the options choose."""
    system.options = replace(system.options, **options)
    with np.errstate(divide="ignore"):
        solve = factors.factors(system, at, system.at(at))
    assert solve is not None
    return solve(rhs)


def by_formula(matrix: factors.Matrix, at: AugmentedState) -> Array:
    """The matrix in the head of `factors`, entry by entry."""
    s = matrix.system
    polytope = s.polytope
    total = np.zeros(len(s.unit))
    for pair, part in zip(s.who, at.part, strict=True):
        total[pair] += part
    pairs, rows, size = len(s.pairs), len(s.rows), s.size
    price = {int(row): np.exp(log) for row, log in zip(s.rows, at.log_row, strict=True)}
    found = np.zeros((size, size))
    for a, pair in enumerate(s.pairs):
        n, i = s.who[a], polytope.pair_server[pair]
        for b in range(pairs):
            if s.who[b] == n:
                found[a, b] += s.alpha[n] / s.scale
        found[a, a] += at.slack[a] / at.part[a] * total[n]
        costs = {
            b: price[int(row)] * polytope.pair_use[pair, polytope.row_resource[row]]
            for b, row in enumerate(s.rows)
            if polytope.row_server[row] == i
        }
        for b, cost in costs.items():
            tasks = s.unit[n] / polytope.gamma[pair] * total[n]
            found[a, pairs + b] = cost / sum(costs.values()) / s.scale if cost else 0.0
            found[pairs + b, a] = polytope.pair_use[pair, polytope.row_resource[s.rows[b]]] * tasks
        for c, limited in enumerate(s.limits):
            if limited == n:
                found[a, pairs + rows + c] = 1.0
                found[pairs + rows + c, a] = total[n] * s.unit[n] / polytope.limit[n]
    for b in range(rows):
        found[pairs + b, pairs + b] -= at.idle[b]
    for c in range(len(s.limits)):
        found[pairs + rows + c, pairs + rows + c] -= at.room[c] / at.excess[c]
    return found


CASES = [
    (family, seed, alpha, scope)
    for scope in ("game", "global")
    for seed, family in enumerate(FAMILIES)
    for alpha in (0.5, 3.0)
]


@pytest.mark.parametrize(("family", "seed", "alpha", "scope"), CASES)
def test_product_and_both_solutions(family: str, seed: int, alpha: float, scope: str) -> None:
    system, at = system_and_point(family, seed, alpha, scope)
    matrix = matrix_of(system, at)
    whole = by_formula(matrix, at)
    given = np.random.default_rng(seed).uniform(-1, 1, system.size)
    product = matrix @ given
    assert np.allclose(product, whole @ given, rtol=1e-10, atol=1e-10 * abs(whole).max())
    for dense in (system.size, 0):  # whole, and with pairs and users eliminated
        found = solved(system, at, product, dense=dense)
        # Residuals count by row; unknowns may differ where splits or prices are not unique.
        left = abs(whole @ found - product) * matrix.scale
        assert left.max() <= 1e-9 * abs(product * matrix.scale).max()


def test_elimination_is_exact_for_the_matrix_it_stands_for() -> None:
    """Without refinement, what is eliminated solves the matrix plus its multiple of the identity, limits included."""
    system, at = system_and_point("limits", 3, 2.0, "global")
    assert len(system.limits), "this cluster must have users with finite tasks"
    matrix = matrix_of(system, at)
    pairs = len(system.pairs)
    signs = np.concatenate([np.ones(pairs), -np.ones(system.size - pairs)])
    shifted = by_formula(matrix, at) + system.options.regular_of_many * np.diag(signs)
    rhs = np.random.default_rng(0).uniform(-1, 1, system.size)
    assert np.allclose(shifted @ solved(system, at, rhs, dense=0, refinements=0), rhs, rtol=0, atol=1e-8)
