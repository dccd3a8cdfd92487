"""Tuning of the compiled kernels for small problems: a tuple with named fields per algorithm, with the values in use.

Kernels read them as constants when they are compiled, which numba allows tuples and not dataclasses. A study changes a
value here: what reads it is compiled again, and nothing else (`_loops`). Certificates have theirs where they are
defined.
"""

from __future__ import annotations

from typing import NamedTuple


class DenseLimitOptions(NamedTuple):
    """PS-DSF as a limit (`_psdsf`)."""

    #: alpha to begin with, in turn; what the equilibrium there is to reach, and has to.
    large: tuple[float, ...] = (4096.0, 512.0, 64.0, 8.0)
    near: float = 1e-7
    reached: float = 1e-3
    #: What a full row may idle, and a user at its limit lack, as a part.
    full: float = 1e-6
    #: Newton steps, which end where no equation is off by more than `exact`; nothing falls by more than the part `fall`
    #: in one; singular values below the part `tie` of the largest are ties.
    steps: int = 8
    exact: float = 1e-15
    fall: float = 0.9
    tie: float = 1e-11
    #: Everything is determined if the least singular value is above this part of the largest.
    determined: float = 1e-6
    #: What is decided by more than this part is not decided by rounding.
    clear: float = 1e-6
    #: Rounds of best responses after which the certificate is computed.
    look: int = 10


class TableauOptions(NamedTuple):
    """The simplex method (`_tableau`), and lexicographic max-min by it (`_leximin`)."""

    #: Entries of the tableau below this are rounding; ratios closer than `tie` are the same.
    small: float = 1e-9
    tie: float = 1e-13
    #: Steps that do not raise the level before Bland's rule, and most steps, in parts of rows + columns.
    before_bland: int = 1
    steps: int = 50
    #: Parts of the price of a level below this are rounding.
    priced: float = 1e-10


#: A limit that is larger than what fits by less than this part is none.
BINDS = 1e-9

#: What is used.
LIMIT = DenseLimitOptions()
TABLEAU = TableauOptions()
