"""DRF's algorithm 1 on servers."""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Policy


@dataclass(frozen=True)
class DiscreteDRF(Policy):
    """The user with the lowest weighted dominant share of the pool; if its task does not fit, nobody's is started.

        repeat: pick the user with the lowest  s_n / phi_n,  s_n = max_r allocated[n,r] / C_r;
                start one task of it on the first server with room, otherwise stop

    On one server this is `fairopt.scheduling.discrete_drf`. `strict=False` goes on with the next user.

    Source: Ghodsi et al., NSDI 2011, section 4.2, algorithm 1; weights as in section 4.3.
    """

    name = "discrete-drf"
    title = "discrete DRF"
    source = "NSDI 2011, algorithm 1"

    strict: bool = True
