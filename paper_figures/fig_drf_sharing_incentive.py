"""DRF figure 5 (theorem 1): asset fairness gives a user less than half of every resource."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import has, said, shares
from .style import SINGLE, name

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's theorem 1 by user under three mechanisms; diamonds are what the paper prints of "
    "asset fairness, and the line is one half."
)
_PRINTED = {"asset-fairness": "asset fairness: tasks", "drf": None, "ceei": None}


def caption(results: Results) -> str:
    """Tasks under each mechanism; half of the pool runs 15 of user 2."""
    found = results.of("drf_figures")
    each = [f"{said(found, 'thm1', one)} under {name(one)}" for one in _PRINTED if has(found, one)]
    return f"Tasks of both users: {', '.join(each)}; half of the pool runs 15 of user 2."


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Shares of the pool by user, with the paper's of asset fairness, and a line at one half."""
    return shares(results, width, "thm1", "drf-thm1", ("user 1", "user 2"), _PRINTED, half=True)
