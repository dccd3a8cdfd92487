"""Numbers that the interior points `interior` and `welfare`, and their starts by mirror descent, have in common."""

from __future__ import annotations

#: Mirror descent to a starting point: number of iterations, target utilization, and damping of log fractions.
DESCENTS, LOAD, DAMPING = 25, 0.7, 0.7
#: Starting point: largest utilization, least slack relative to its capacity or cost, least share of a row in the cost
#: of some pair, and least fraction of a server that a pair gets, over the number of its pairs.
FULL, LEAST, LEAST_SHARE, LEAST_PART = 0.9, 0.1, 0.3, 0.07
#: Least part of its user's tasks that a pair gets at the start, where that is less.
LEAST_OF_TASKS = 0.02
#: Centring parameter: its lower bound, and its least value relative to the residual while mu is above the last number,
#: so that feasibility keeps pace with complementarity.
LEAST_CENTRING, RESIDUAL_CENTRING, LARGE_MU = 1e-6, 0.005, 1e-4
#: Fraction of the step to the boundary, and the lengths above which steps count as long, and below which as short.
TO_BOUNDARY, LONG_STEP, SHORT_STEP = 0.95, 0.9, 0.1
#: Least slope of a log marginal utility, so that tasks follow from prices.
LEAST_SLOPE = 1e-13
#: Largest number of halvings of a step, and rounding of the merit function.
HALVINGS, MERIT_ROUNDING = 8, 1e-9
#: Largest number of certified iterates without progress.
PATIENCE = 5
