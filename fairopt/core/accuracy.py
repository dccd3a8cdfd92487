"""Numbers that all methods share: levels of accuracy, from the finest to the coarsest, and the damping of Newton steps.

Thresholds of residuals, zeros and regularizations throughout the core are one of these levels, which are relative sizes
that computations in double precision tell apart, unless their value was measured.
"""

from __future__ import annotations

#: Rounding error of a sum of a few numbers.
SUM_ROUNDING = 1e-15
#: Rounding error of the solution of well-conditioned equations, and so of a refined solution.
SOLVE_ROUNDING = 1e-14
#: Residual that no further Newton step reduces.
NEWTON_ROUNDING = 1e-13
#: Error of an iteration that has converged; relative size of what rounding has left of zero.
CONVERGED = 1e-12
#: Error of a solution that needs no refinement, where equations are nearly singular.
ACCURATE = 1e-11
#: Error above which a solution is refined, and regularization that refinement removes.
REFINED = 1e-10
#: Relative size of what counts as zero before refinement.
NEGLIGIBLE = 1e-9
#: About the square root of the precision: the square of such a perturbation is rounding.
HALF_PRECISION = 1e-8
#: Rounding error in single precision; tasks, prices and slacks up to this count as zero.
SINGLE_ROUNDING = 1e-7
#: Relative size from which tasks, slacks and differences show in an allocation of the default tolerance.
VISIBLE = 1e-6
#: A damped Newton step of length t is accepted if it reduces the norm of residuals by the fraction `DECREASE t`; else t
#: is multiplied by `SHORTER`, down to `SHORTEST`.
DECREASE, SHORTER, SHORTEST = 0.1, 0.4, 1e-3
#: Largest number of Newton steps from a good start.
CORRECTIONS = 8
