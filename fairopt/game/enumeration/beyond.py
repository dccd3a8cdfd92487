"""Where enumeration does not finish: what else looks for equilibria, each a strategy that offers candidates.

A strategy is a function of a problem, its equations, a generator and options, that yields tasks (pairs,) and log level
prices (servers, resources) near equilibria. What it offers is solved to the last digits and judged by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...model._arrays import Array
from ...model.problem import Problem
from ..engine import solutions
from ..model.equilibrium_system import EquilibriumSystem
from ..responses.rounds import Sweeps
from .options import EnumerationOptions

Offers = Iterator[tuple[Array, Array]]
Strategy = Callable[[Problem, EquilibriumSystem, np.random.Generator, EnumerationOptions], Offers]


#: The tolerance that the engine is asked for, and the change of a round of best responses that ends them.
_FINE = 1e-10


def engine(
    problem: Problem, system: EquilibriumSystem, rng: np.random.Generator, options: EnumerationOptions
) -> Offers:
    """What the engine `equilibrium` answers."""
    polytope = problem.polytope
    for found in solutions(problem, _FINE):
        log_prices = found.log_prices
        if log_prices is None:
            continue
        tasks = found.tasks[polytope.users[polytope.pair_user], polytope.pair_server]
        levels = polytope.by_server(polytope.log_row_prices(log_prices), unused=-np.inf) / system.alpha
        yield tasks / system.largest[system.user], levels
        return


def best_responses(
    problem: Problem, system: EquilibriumSystem, rng: np.random.Generator, options: EnumerationOptions
) -> Offers:
    """Where best responses from random tasks end, servers in turn."""
    sweeps = Sweeps.of(system)
    for _ in range(options.starts):
        part = (
            rng.exponential(size=len(system.user))
            / np.bincount(system.server, minlength=len(system.row))[system.server]
        )
        state = sweeps.start(problem.polytope.inside(part) * system.gamma)
        for _ in range(options.rounds):
            if sweeps.gauss_seidel(state) <= _FINE:
                break
        yield state.tasks.copy(), np.where(system.row, state.log_price, -np.inf)


#: By name, in the order in which they are asked.
STRATEGIES: dict[str, Strategy] = {"engine": engine, "best responses": best_responses}
