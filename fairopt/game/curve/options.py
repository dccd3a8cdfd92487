"""Tuning of the curve of equilibria."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CurveOptions:
    """Options of the continuation."""

    #: The curve begins at `near` or `1/near`; nearer to 1 an equilibrium is taken as it is found.
    near: float = 1.001
    #: The longest step. `length^2 = (d log alpha)^2 + min(1, 10/unknowns) (|d tasks / tasks of the user|^2 + |d log
    #: levels of servers|^2 + |d parts of rows in what is paid|^2)`.
    longest: float = 0.3
    #: Steps of a run: `steps_per_pair (pairs + 10) (1 + |log alpha|)` at most, whichever way it goes.
    steps_per_pair: int = 60
    #: It is followed up to this number of pairs (user, server); its beginning has dense matrices and looks at no clock.
    most_pairs: int = 6000
    #: Crossings that `select="welfare"` compares lie on the curve up to this factor beyond alpha.
    beyond: float = 3.0


#: What is used unless a caller says otherwise.
OPTIONS = CurveOptions()
