"""DRF figures 3 and 4: 9 CPU and 18 GB under DRF, asset fairness and CEEI, with the paper's values as diamonds."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import shares
from .style import SINGLE

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's section 4.1 under DRF, asset fairness and CEEI; diamonds are what the paper "
    "prints. DRF equalises dominant shares, and CEEI uses all of both resources."
)
_PRINTED = {"drf": "DRF: tasks", "asset-fairness": "asset fairness: tasks", "ceei": "CEEI: tasks"}


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Shares of the pool by user."""
    return shares(results, width, "example", "drf-4.1", ("user A", "user B"), _PRINTED)
