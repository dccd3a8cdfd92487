"""DRF figures 3 and 4: 9 CPU and 18 GB shared by DRF, asset fairness and CEEI; what the paper prints as diamonds."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import draw, has, pooled, printed, tasks
from .style import SINGLE, legend, name, new

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's section 4.1 under DRF, asset fairness and CEEI; diamonds are what the paper "
    "prints. DRF equalises dominant shares, and CEEI uses all of both resources."
)
_PRINTED = {"drf": "DRF: tasks", "asset-fairness": "asset fairness: tasks", "ceei": "CEEI: tasks"}


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Parts of the pool by user."""
    found = results.of("drf_figures")
    cases = [
        pooled("drf-4.1", name(mechanism), tasks(found, "example", mechanism), printed("drf-4.1", statement))
        for mechanism, statement in _PRINTED.items()
        if has(found, mechanism)
    ]
    drawn, table = new(width, 2.2)
    draw(table[0, 0], cases, ("user A", "user B"))
    table[0, 0].set_ylabel("part of the pool")
    legend(drawn, table[0, 0])
    return drawn
