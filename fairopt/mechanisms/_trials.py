"""Parameters that are hard for numerics, for the laws."""

from __future__ import annotations

import math

#: Around 1 and far out.
ALPHAS = (0.0, 0.5, 0.9999, 1.0, 1.0001, 3.0, 50.0, 500.0, math.inf)
