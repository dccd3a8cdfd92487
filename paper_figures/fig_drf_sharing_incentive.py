"""DRF figure 5: asset fairness violates the sharing incentive of a user, with less than half of every resource."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import shares
from .style import SINGLE

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's theorem 1 by user under three mechanisms; diamonds are what the paper prints of "
    "asset fairness, and the line is one half. Asset fairness leaves user 2 with less than half of everything, "
    "DRF and CEEI do not."
)


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Shares of the pool by user, with the paper's of asset fairness, and a line at one half."""
    printed = {"asset-fairness": "asset fairness: tasks", "drf": None, "ceei": None}
    return shares(results, width, "thm1", "drf-thm1", ("user 1", "user 2"), printed, half=True)
