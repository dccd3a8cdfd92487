"""Budget of an enumeration of equilibria."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnumerationOptions:
    """Budget of an enumeration."""

    #: CPU seconds.
    seconds: float = 60.0
    #: Most subsets of users and resources of servers, and faces of them.
    subsets: float = 1e6
    faces: int = 24_000
    #: Beyond enumeration: starts of best responses, and most rounds of each.
    starts: int = 20
    rounds: int = 2000


#: What is used unless a caller says otherwise.
OPTIONS = EnumerationOptions()
