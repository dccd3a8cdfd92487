"""What an enumeration of equilibria may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class EnumerationOptions:
    """What an enumeration may take."""

    #: CPU seconds.
    seconds: float = 60.0
    #: Most users, subsets of users and resources of a server, faces of it, and pairs of faces that are tabulated.
    users: int = 40
    subsets: float = 4e6
    faces: int = 20_000
    tabulated: int = 200_000_000
    #: From this alpha on prices of a cell may differ by more than rounding leaves of the smaller.
    wide: float = 6.0
    #: Cells that are made at a time, and nodes between two looks at the clock.
    cells: int = 256
    nodes: int = 20_000
    #: Most solutions of a cell.
    solutions: int = 16
    #: Where indices do not sum to 1 all data are changed by up to this part, which leaves no ties, for a second look.
    jitter: float = 1e-6
    #: Beyond enumeration: starts of best responses, and most rounds of each.
    starts: int = 20
    rounds: int = 2000


class CellOptions(NamedTuple):
    """A cell and its faces, compiled (`_cell`, `_faces`, `_cells`): tuples, which numba takes for constants."""

    #: A face is one, and a cone has an interior, if the largest common margin of its points of sum one is above
    #: `margin`; a pair of faces has one above `common`.
    margin: float = 1e-9
    common: float = 1e-10
    #: Most solutions of a component that are kept.
    kept: int = 8
    #: Tasks may be negative by the part `slip`, use and prices be off by ten times that; splits fill rows to `split`,
    #: by shortest solutions without singular values below the part `tie`.
    slip: float = 1e-9
    split: float = 1e-7
    tie: float = 1e-12


class TableauOptions(NamedTuple):
    """The simplex method, compiled (`_tableau`)."""

    #: Entries of the tableau below this are rounding; ratios closer than `tie` are the same.
    small: float = 1e-9
    tie: float = 1e-13
    #: Steps that do not raise the level before Bland's rule, and most steps, in parts of rows + columns.
    before_bland: int = 1
    steps: int = 50


class ComponentOptions(NamedTuple):
    """Prices of one component, compiled (`_component`)."""

    #: Singular values below this part of the largest are zero.
    rank: float = 1e-10
    #: Prices below the part `hidden` of the largest are hidden by rounding, and may be negative by `negative`: they are
    #: looked for from `floors` values, the first the part `least`, each `deeper` times the one before.
    hidden: float = 1e-13
    negative: float = 1e-12
    least: float = 1e-15
    floors: int = 6
    deeper: float = 1e-6
    #: Solutions whose log prices differ by less are the same.
    same: float = 1e-8
    #: The ends of a segment of prices: rays shorter than `short` are none, conditions are met to `met`, and ends differ
    #: by more than `apart`.
    short: float = 1e-14
    met: float = 1e-9
    apart: float = 1e-11
    #: The grid in log t/(1 - t) for R - T = 2: its end, and its number of points; bisections.
    end: float = 36.0
    grid: int = 145
    halvings: int = 60
    #: Starts for R - T > 2, and by how much their log prices differ from the first.
    starts: int = 12
    spread: float = 1.0


class ComponentNewtonOptions(NamedTuple):
    """Newton's method for the prices of a component, compiled (`_equations`)."""

    #: Residual at the end, and in multiples of it what will do where no step helps any more.
    target: float = 1e-12
    stuck: float = 1e2
    steps: int = 60
    #: The largest change of a log price in a step.
    stride: float = 1.0
    #: A step of length t is taken if the residual falls by the part `descent t`, else it is shorter by `shorter`, until
    #: it is below `shortest`.
    descent: float = 0.1
    shorter: float = 0.4
    shortest: float = 1e-3
    #: Where a pivot is below the part `singular` of the largest the step is the shortest one, singular values below the
    #: part `tie` of the largest left out.
    singular: float = 1e-13
    tie: float = 1e-12


#: What is used unless a caller says otherwise.
OPTIONS = EnumerationOptions()
#: What compiled loops use.
TABLEAU = TableauOptions()
CELL = CellOptions()
COMPONENT = ComponentOptions()
NEWTON = ComponentNewtonOptions()
