"""Constants of all methods: levels of accuracy, from the finest to the coarsest, and the damping of Newton steps.

Levels are relative. A threshold of residuals or zeros, or a regularization, in the core equals one of the levels unless
its value was measured.
"""

from __future__ import annotations

#: Rounding error of a sum of a few numbers.
SUM_ROUNDING = 1e-15
#: Rounding error of the solution of well-conditioned equations, and therefore of a refined solution.
SOLVE_ROUNDING = 1e-14
#: Residual that no further Newton step reduces.
NEWTON_ROUNDING = 1e-13
#: Error at which an iteration has converged; relative size of rounding errors where the exact result is zero.
CONVERGED = 1e-12
#: Error up to which a solution of nearly singular equations needs no refinement.
ACCURATE = 1e-11
#: Error above which a solution is refined, and regularization that refinement removes.
REFINED = 1e-10
#: Relative size up to which a quantity counts as zero before refinement.
NEGLIGIBLE = 1e-9
#: About the square root of the machine precision: the square of such a perturbation is a rounding error.
HALF_PRECISION = 1e-8
#: Rounding error in single precision; tasks, prices and slacks up to this count as zero.
SINGLE_ROUNDING = 1e-7
#: Relative size from which tasks, slacks and differences are visible in an allocation of the default tolerance.
VISIBLE = 1e-6
#: A damped Newton step of length t is accepted if it reduces the norm of residuals by the fraction `DECREASE t`; else t
#: is multiplied by `SHORTER`, down to `SHORTEST`.
DECREASE, SHORTER, SHORTEST = 0.1, 0.4, 1e-3
#: Largest number of Newton steps from a start near the solution.
CORRECTIONS = 8
