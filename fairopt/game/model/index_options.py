"""What counts as singular where the index of an equilibrium is found, sparsely (`index`) and densely (`_index`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IndexOptions:
    """What counts as singular."""

    #: The multiple of the identity that makes up for splits and prices that are not unique.
    regular: float = 1e-10
    #: X is not locally unique where `|d log X_n|`, for right-hand sides of size 1, is above this: the index is 0.
    singular: float = 1e7
    #: Right-hand sides (random signs) that this is tried with where there are more than `all` unknowns; with fewer each
    #: unknown has one of its own.
    probes: int = 4
    all: int = 24
    #: Densely: a pair is active if its part is above its slack, and `part`; a limit binds that lacks less than the
    #: part `binds`.
    part: float = 1e-12
    binds: float = 1e-9


#: What is used unless a caller says otherwise.
OPTIONS = IndexOptions()
