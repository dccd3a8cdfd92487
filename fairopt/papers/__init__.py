"""The source papers as data: their worked examples as clusters, and their claims, checked.

    from fairopt import papers

    papers.instance("pf-fig1")     # a Cluster
    papers.check()                 # a table: every claim, what is printed, ours, what is right, the verdict

One file per paper: `drf`, `drfh`, `lec`, `mqdrf`, `pf`, and `counterexamples` for small instances of our own.
`pf_measured` is what PF says of time and convergence, judged by measurements that come with the package (`data`).
Numbers of items are those of the project's catalogue of everything that the papers state.
"""

from __future__ import annotations

from ._check import check, claims, instance, instances
from ._claim import MEASURED_OTHERWISE, NOT_REPRODUCED, PAPER_IN_ERROR, REPRODUCED, Claim, Instance, Printed, show
from .pf_measured import Measurements, measurements

__all__ = [
    "MEASURED_OTHERWISE",
    "NOT_REPRODUCED",
    "PAPER_IN_ERROR",
    "REPRODUCED",
    "Claim",
    "Instance",
    "Measurements",
    "Printed",
    "check",
    "claims",
    "instance",
    "instances",
    "measurements",
    "show",
]
