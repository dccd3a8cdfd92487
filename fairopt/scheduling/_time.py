"""Whole numbers of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]

#: Microseconds in a second: times are whole numbers of them.
SECOND = 1_000_000
#: The time of what never happens.
NEVER = int(np.iinfo(np.int64).max)
