"""Constants that the interior points `interior` and `welfare`, and their starts by mirror descent, have in common."""

from __future__ import annotations

from .accuracy import NEGLIGIBLE, SUM_ROUNDING

#: Mirror descent to a starting point: number of iterations, target utilization, and damping of log fractions.
DESCENTS, LOAD, DAMPING = 25, 0.7, 0.7
#: Starting point: largest utilization, least slack relative to its capacity or cost, least share of a row in the cost
#: of some pair, and least fraction of a server that a pair gets, over the number of its pairs.
FULL, LEAST, LEAST_SHARE, LEAST_PART = 0.9, 0.1, 0.3, 0.07
#: Least part of its user's tasks that a pair gets at the start, unless the fraction `LEAST_PART` of a server is less.
LEAST_OF_TASKS = 0.02
#: Centring parameter: its lower bound, and its least value relative to the residual while mu exceeds `LARGE_MU`, so
#: that feasibility keeps pace with complementarity.
LEAST_CENTRING, RESIDUAL_CENTRING, LARGE_MU = 1e-6, 0.005, 1e-4
#: Fraction of the step to the boundary that is taken, and lengths above which a step is long, and below which it is
#: short.
TO_BOUNDARY, LONG_STEP, SHORT_STEP = 0.95, 0.9, 0.1
#: Least slope of a log marginal utility, so that tasks follow from prices.
LEAST_SLOPE = 1e-13
#: Largest number of halvings of a step, and rounding of the merit function.
HALVINGS, MERIT_ROUNDING = 8, NEGLIGIBLE
#: Largest number of certified iterates without progress, and ratio of errors up to which an iterate counts as progress.
PATIENCE, PROGRESS = 5, 0.9
#: Upper bound of the centring parameter, unless steps are short.
MOST_CENTRING = 0.1
#: Gondzio's correctors: least complementarity product relative to the target, increase of the step length that a
#: corrector aims at, and the least increase for which it is used.
LEAST_PRODUCT, LENGTHENED, LEAST_GAIN = 0.1, 0.3, 0.02
#: Residual to which directions are refined, relative to mu or to the gap of bounds; its lower bound, that of rounding;
#: and the multiple of it above which factors in single precision are given up.
RESIDUAL_PER_MU, LEAST_RESIDUAL, SINGLE_ACCURACY = 1e-2, SUM_ROUNDING, 50
