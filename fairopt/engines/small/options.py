"""Tuning of the compiled kernels for small problems: a tuple with named fields per algorithm, with the values in use.

Kernels read them as constants when they are compiled, which numba allows tuples and not dataclasses. A study changes a
value here: what reads it is compiled again, and nothing else (`_loops`). Certificates have theirs where they are
defined.
"""

from __future__ import annotations

from typing import NamedTuple

INFINITE = float("inf")


class Tuning(NamedTuple):
    """How an attempt of the interior point goes."""

    #: The part of the way to the boundary that a step goes.
    inside: float
    #: The most that the log of a price of a task may change in a step.
    bound: float
    #: Steps are searched along for larger A = max(alpha, 1),
    powers: float
    #: where residuals may grow by this part.
    worse: float
    #: mu stays above a part of the residuals while it is above this.
    residual: float
    #: Products are those of prices in this power of v, at most A.
    power: float
    #: Steps.
    most: int
    #: Sums over rows are of powers soft/mu, at most A.
    soft: float


class DenseInteriorOptions(NamedTuple):
    """When the interior point is judged, refined and ended (`_interior`)."""

    #: Certificates are computed while `mu < look`.
    look: float = 1e-8
    #: A pair loses its tasks before that where they are less than its slack and the part `stray` of the user's.
    stray: float = 1e-6
    #: Ends are refined while `mu < refine`, then after `mu < again mu` of the last time, and only where the error has
    #: not fallen to the part `slow` since the last look.
    refine: float = 1e-8
    again: float = 1e-2
    slow: float = 0.1
    #: A run ends after more than `patience` looks with `error >= better` times the one before, or by a step shorter
    #: than `shortest`.
    patience: int = 5
    better: float = 0.9
    shortest: float = 1e-10
    #: Attempts in turn: nearly all problems are solved by the first.
    attempts: tuple[Tuning, ...] = (
        Tuning(0.95, 1e9, 0.0, 1.0, 1e-4, 4.0, 60, INFINITE),
        Tuning(0.99, 1e9, 4.0, 1.0, 1e-4, 1.0, 60, INFINITE),
        Tuning(0.9, 0.5, 0.0, 1.0, 0.0, INFINITE, 80, INFINITE),
        Tuning(0.9, 1e9, 0.0, 1.0, 1e-4, 4.0, 80, 1.0),
        Tuning(0.95, 1e9, 0.0, 1.0, 0.0, 4.0, 80, INFINITE),
        Tuning(0.7, 0.2, 0.0, 0.1, 0.0, 1.0, 150, INFINITE),
    )


class DenseStepOptions(NamedTuple):
    """Where a run starts, and one step of it (`_steps`)."""

    #: At the start at most the part `use` of a server and of a limit is used, prices are `dear` times those at which
    #: nobody buys more, and slacks at least `slack`.
    use: float = 0.7
    dear: float = 1.3
    slack: float = 0.1
    #: mu falls to `least` at most.
    least: float = 1e-22
    #: After a predictor of length t, `target = min(max((mu after / mu)^3, short (1 - t)^3, least_target), most_target)
    #: mu`; while `mu > Tuning.residual` at least the part `residual` of the worst residual.
    short: float = 0.5
    least_target: float = 1e-6
    most_target: float = 0.5
    residual: float = 0.005
    #: Steps go all the way to the boundary but for the root of `near mu`.
    near: float = 10.0
    #: A search halves a step so often at most, while residuals grow by more than `Tuning.worse` and rounding.
    halvings: int = 8
    rounding: float = 1e-9


class DenseRefinementOptions(NamedTuple):
    """The last digits by Newton's method on the active set (`_refinement`)."""

    #: Most steps; they end once the error is below the part `sufficient` of the tolerance.
    steps: int = 5
    sufficient: float = 0.01
    #: Nothing falls by more than this part in a step.
    fall: float = 0.9
    #: Where all pivots are above the part `no_ties` of the largest the system is solved as it is; else, up to `dense`
    #: unknowns, by the shortest step, singular values below the part `tie` of the largest left out.
    no_ties: float = 1e-7
    dense: int = 40
    tie: float = 1e-11


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
INTERIOR = DenseInteriorOptions()
STEP = DenseStepOptions()
REFINEMENT = DenseRefinementOptions()
LIMIT = DenseLimitOptions()
TABLEAU = TableauOptions()
