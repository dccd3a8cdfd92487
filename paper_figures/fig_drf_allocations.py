"""DRF figures 3 and 4 (sections 4.1, 5.1 and 5.2): 9 CPU and 18 GB under DRF, asset fairness and CEEI."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import has, said, shares
from .style import SINGLE, name

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's section 4.1 under DRF, asset fairness and CEEI; diamonds are what the paper prints."
)
_PRINTED = {"drf": "DRF: tasks", "asset-fairness": "asset fairness: tasks", "ceei": "CEEI: tasks"}


def caption(results: Results) -> str:
    """Tasks under each mechanism."""
    found = results.of("drf_figures")
    each = [f"{said(found, 'example', one)} under {name(one)}" for one in _PRINTED if has(found, one)]
    return f"Tasks of both users: {', '.join(each)}."


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Shares of the pool by user."""
    return shares(results, width, "example", "drf-4.1", ("user A", "user B"), _PRINTED)
