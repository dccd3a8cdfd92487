"""DRF figure 7 (theorem 5): the departure of user 3 reduces the tasks of user 2 under CEEI, and of nobody under DRF."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import before_after, printed, said
from .style import SINGLE, legend, new

NEEDS = ("drf_figures",)
CAPTION = (
    "Tasks of three users, and of the two that stay when user 3 leaves, under CEEI and DRF; diamonds are what the "
    "paper prints."
)
_CASES = (
    ("thm5", "three users", "CEEI: tasks of three users"),
    ("thm5-left", "user 3 left", "CEEI: user 2 falls when user 3 leaves"),
)


def caption(results: Results) -> str:
    """Tasks before and after user 3 leaves."""
    found = results.of("drf_figures")
    each = [f"under {one.upper()} {' become '.join(said(found, case, one) for case, _, _ in _CASES)}"
            for one in ("ceei", "drf")]  # fmt: skip
    return f"Tasks: {'; '.join(each)}."


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Tasks of each user before and after; the paper states those of CEEI to one decimal."""
    found = results.of("drf_figures")
    drawn, table = new(width, 2.2, 1, 2, sharey=True)
    pair = [(cluster, label) for cluster, label, _ in _CASES]
    theirs = {"ceei": [printed(f"drf-{cluster}", statement).tolist() for cluster, _, statement in _CASES]}
    before_after(table[0], found, {"ceei": pair, "drf": pair}, [f"user {n}" for n in (1, 2, 3)], theirs)
    for axes, mechanism in zip(table[0], ("CEEI", "DRF"), strict=True):
        axes.set_title(mechanism)
    table[0, 0].set_ylabel("tasks")
    legend(drawn, table[0, 0])
    return drawn
