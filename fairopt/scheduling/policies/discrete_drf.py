"""Algorithm 1 of DRF on several servers."""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Policy


@dataclass(frozen=True)
class DiscreteDRF(Policy):
    r"""Serve the user with the lowest weighted dominant share of the pool; stop if its task does not fit.

    .. math:: \arg\min_n\ \frac{1}{\phi_n} \max_r \frac{\text{allocated}_{nr}}{C_r}

    One task starts on the first server with room. On one server this is `fairopt.scheduling.discrete_drf`.
    `strict=False` continues with the next user.

    Source: Ghodsi et al., NSDI 2011, section 4.2, algorithm 1; weights as in section 4.3.
    """

    name = "discrete-drf"
    title = "discrete DRF"
    source = "NSDI 2011, algorithm 1"

    strict: bool = True
