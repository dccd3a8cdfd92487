"""Constants shared by the interior-point methods `interior`, `welfare` and `level`, and by their starting points."""

from __future__ import annotations

from .accuracy import NEGLIGIBLE, SUM_ROUNDING

#: Mirror descent to a starting point: number of iterations (`DESCENTS`), target utilization (`LOAD`), and damping of
#: log fractions (`DAMPING`).
DESCENTS, LOAD, DAMPING = 25, 0.7, 0.7
#: Starting point: largest utilization (`FULL`), least slack relative to the capacity or cost (`LEAST`), least share of
#: a row in the cost of some pair (`LEAST_SHARE`), and least fraction of a server that a pair gets, times the number of
#: pairs of the server (`LEAST_PART`).
FULL, LEAST, LEAST_SHARE, LEAST_PART = 0.9, 0.1, 0.3, 0.07
#: Least part of its user's tasks that a pair gets at the start, unless `LEAST_PART` is a smaller bound.
LEAST_OF_TASKS = 0.02
#: Lower bound of the centring parameter (`LEAST_CENTRING`), and least target product relative to the residual
#: (`RESIDUAL_CENTRING`) while mu exceeds `LARGE_MU`, so that feasibility keeps pace with complementarity.
LEAST_CENTRING, RESIDUAL_CENTRING, LARGE_MU = 1e-6, 0.005, 1e-4
#: Fraction of the step to the boundary that is taken (`TO_BOUNDARY`), and lengths above which a step counts as long
#: (`LONG_STEP`) and below which it counts as short (`SHORT_STEP`).
TO_BOUNDARY, LONG_STEP, SHORT_STEP = 0.95, 0.9, 0.1
#: Least elasticity of marginal utility, so that tasks follow from prices.
LEAST_SLOPE = 1e-13
#: Largest number of halvings of a step (`HALVINGS`), and rounding error of the merit function (`MERIT_ROUNDING`).
HALVINGS, MERIT_ROUNDING = 8, NEGLIGIBLE
#: Largest number of certified iterates without progress (`PATIENCE`), and ratio of successive errors up to which an
#: iterate counts as progress (`PROGRESS`).
PATIENCE, PROGRESS = 5, 0.9
#: Upper bound of the centring parameter, unless steps are short.
MOST_CENTRING = 0.1
#: Gondzio's correctors: least complementarity product relative to the target (`LEAST_PRODUCT`), increase of the step
#: length that a corrector aims at (`LENGTHENED`), and least increase for which it is accepted (`LEAST_GAIN`).
LEAST_PRODUCT, LENGTHENED, LEAST_GAIN = 0.1, 0.3, 0.02
#: Residual to which directions are refined, relative to mu or to the gap of bounds (`RESIDUAL_PER_MU`), its lower bound
#: (`LEAST_RESIDUAL`), and the multiple of the required residual from which single precision is abandoned
#: (`SINGLE_ACCURACY`).
RESIDUAL_PER_MU, LEAST_RESIDUAL, SINGLE_ACCURACY = 1e-2, SUM_ROUNDING, 50
