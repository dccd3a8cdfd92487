"""What an enumeration of equilibria may take."""

from __future__ import annotations

from dataclasses import dataclass


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


#: What is used unless a caller says otherwise.
OPTIONS = EnumerationOptions()
