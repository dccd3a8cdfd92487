"""Best responses chained in alpha: from the unique tasks at alpha = 1 to another alpha, each from where the last ended.

What they end at is stable under best responses, so its index is not -1 (but for a departure that no round shows). It
is an equilibrium near the curve from alpha = 1 as long as that does not fold or jump; then it is one that servers come
to as alpha changes slowly. Source: docs/equilibria.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base import clock
from ...model.problem import Problem
from ..solution import Solution
from .equilibrium_system import EquilibriumSystem, suppress_fp_warnings
from .rounds import Sweeps

#: Alphas grow, or fall, by at most this factor.
_RATIO = 1.2
#: Most rounds at alphas on the way, and at the last; they end where nobody would change more than these parts.
_WAY, _LAST = (300, 1e-6), (20_000, 1e-12)


@suppress_fp_warnings
def solutions(problem: Problem, tol: float) -> Iterator[Solution]:
    """One candidate: the end of the chain."""
    begun = clock.now()
    polytope, alpha = problem.polytope, problem.criterion.alpha
    method = EquilibriumSystem(polytope, problem.criterion.weight[polytope.users], 1.0)
    steps = max(1, int(np.ceil(abs(np.log(alpha)) / np.log(_RATIO))))
    state = Sweeps(method).start(method.begin(0.3))
    played = 0
    for each in np.geomspace(1.0, alpha, steps + 1):
        sweeps = Sweeps(method.at(float(each)))
        most, enough = _LAST if each == alpha else _WAY
        state.log_price[:] = 0.0
        for _ in range(most):
            played += 1
            if sweeps.gauss_seidel(state) <= enough:
                break
    yield sweeps.solution(state, "best responses chained in alpha", played, clock.now() - begun, tol)
