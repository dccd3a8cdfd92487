"""First-Fit DRFH."""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Policy


@dataclass(frozen=True)
class FirstFitDRFH(Policy):
    """The user with the lowest weighted global dominant share, on the first server with room.

    Source: Wang, Li, Liang, arXiv 1308.0083, section V.
    """

    name = "first-fit-drfh"
    title = "First-Fit DRFH"
    source = "INFOCOM 2014, V"
