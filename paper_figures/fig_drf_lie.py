"""DRF figure 6 (theorem 4): a misreport gains tasks for user 1 under CEEI, and not under DRF."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import draw, pooled, printed, said, tasks
from .style import DOUBLE, legend, new

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of both resources of the pool that each user is given when both tell the truth, and when user 1 states "
    "another demand, with the tasks of both by what they state; diamonds are what the paper prints."
)
_CASES = (("thm4", "truth", "CEEI: tasks"), ("thm4-lie", "user 1 lies", "CEEI: tasks when user 1 lies"))


def caption(results: Results) -> str:
    """Tasks by what users state, before and after the lie; a task that is stated serves user 1 as one of its own."""
    found = results.of("drf_figures")
    each = [f"under {one.upper()} {' become '.join(said(found, case, one) for case, _, _ in _CASES)}"
            for one in ("ceei", "drf")]  # fmt: skip
    return f"Stated tasks: {'; '.join(each)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Shares of the pool by user as reported, with tasks; the paper states those of CEEI."""
    found = results.of("drf_figures")
    drawn, table = new(width, 2.3, 1, 2, stack=True, sharey=True)
    for axes, mechanism in zip(table[0], ("ceei", "drf"), strict=True):
        cases = []
        for cluster, label, statement in _CASES:
            ours = tasks(found, cluster, mechanism).sum(axis=1)
            theirs = printed(f"drf-{cluster}", statement) if mechanism == "ceei" else None
            text = f"{label}\n{ours[0]:.2f}, {ours[1]:.2f} tasks"
            cases.append(pooled(f"drf-{cluster}", text, ours, theirs))
        draw(axes, cases, ("user 1", "user 2"))
        axes.set_title(mechanism.upper())
    table[0, 0].set_ylabel("part of the pool")
    legend(drawn, table[0, 0])
    return drawn
