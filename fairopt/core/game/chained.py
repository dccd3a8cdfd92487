"""Equilibria by best responses whose alpha changes gradually from 1, each warm-started at the previous alpha.

User tasks at alpha = 1 are unique. A limit of best responses is stable under them, so that its index is not -1 (up to
deviations below the accuracy of a round). The limit is near the first crossing of the curve from alpha = 1 until the
curve folds or jumps; from there on it is the equilibrium that best responses attain as alpha changes slowly. Source:
docs/equilibria.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base import clock
from ...model.problem import Problem
from ..accuracy import CONVERGED, VISIBLE
from ..solution import Solution
from .equilibrium_system import EquilibriumSystem, suppress_fp_warnings
from .rounds import Sweeps, settle

#: Largest ratio of successive alphas.
_RATIO = 1.2
#: Largest number of rounds, and relative change of tasks at which rounds end, both at intermediate alphas
#: (`_INTERMEDIATE`) and at the last alpha (`_LAST`).
_INTERMEDIATE, _LAST = (300, VISIBLE), (20_000, CONVERGED)


@suppress_fp_warnings
def solutions(problem: Problem, tol: float) -> Iterator[Solution]:
    """Yield one candidate: the state of best responses at the alpha of the problem.

    Alpha changes from 1 by equal factors of at most `_RATIO`. At each alpha rounds are played, in which servers respond
    in turn, until the largest change is below a tolerance, or the largest number of rounds is played (`_INTERMEDIATE`,
    `_LAST`).
    """
    begun = clock.cpu()
    polytope, alpha = problem.polytope, problem.criterion.alpha
    method = EquilibriumSystem(polytope, problem.criterion.weight[polytope.users], 1.0)
    steps = max(1, int(np.ceil(abs(np.log(alpha)) / np.log(_RATIO))))
    state = Sweeps(method).start(method.begin())
    rounds = 0
    for each in np.geomspace(1.0, alpha, steps + 1):
        sweeps = Sweeps(method.at(float(each)))
        most_rounds, tol_of_round = _LAST if each == alpha else _INTERMEDIATE
        state.log_price[:] = 0.0
        rounds += settle(sweeps.rounds(state), most_rounds, tol_of_round)
    yield sweeps.solution(state, "best responses chained in alpha", rounds, clock.cpu() - begun, tol)
