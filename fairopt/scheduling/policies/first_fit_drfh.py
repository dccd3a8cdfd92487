"""First-Fit DRFH: lowest dominant share first, on the first server with room."""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Policy


@dataclass(frozen=True)
class FirstFitDRFH(Policy):
    r"""Serve the user with the lowest weighted dominant share of the pool, on the first server with room.

    .. math:: \arg\min_n\ \frac{1}{\phi_n} \max_r \frac{\text{allocated}_{nr}}{C_r}

    Source: Wang, Li, Liang, arXiv 1308.0083, section V.
    """

    name = "first-fit-drfh"
    title = "First-Fit DRFH"
    source = "INFOCOM 2014, V"
