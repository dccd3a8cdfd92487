"""DRF figure 5: asset fairness can leave a user with less than half of everything, which half the pool would give."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import draw, has, pooled, printed, tasks
from .style import SINGLE, legend, name, new

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's theorem 1 by user under three mechanisms; diamonds are what the paper prints of "
    "asset fairness, and the line is one half. Asset fairness leaves user 2 with less than half of everything, "
    "DRF and CEEI do not."
)


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Parts of the pool by user; the paper prints those of asset fairness. The line is at one half."""
    found = results.of("drf_figures")
    theirs = {"asset-fairness": printed("drf-thm1", "asset fairness: tasks")}
    cases = [
        pooled("drf-thm1", name(mechanism), tasks(found, "thm1", mechanism), theirs.get(mechanism))
        for mechanism in ("asset-fairness", "drf", "ceei")
        if has(found, mechanism)
    ]
    drawn, table = new(width, 2.2)
    draw(table[0, 0], cases, ("user 1", "user 2"), half=True)
    table[0, 0].set_ylabel("part of the pool")
    legend(drawn, table[0, 0])
    return drawn
