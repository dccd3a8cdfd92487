"""DRF figure 6 (theorem 4): a misreport gains tasks for user 1 under CEEI, and not under DRF."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from fairopt import papers
from fairopt.report import StoredCells

from .stacks import before_after, draw, pooled, printed, tasks
from .style import DOUBLE

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of both resources of the pool that each user is given when both tell the truth, and when user 1 states "
    "another demand, with the tasks of both by what they state; diamonds are what the paper prints."
)
_CASES = {
    "ceei": (("thm4", "truth", "CEEI: tasks"), ("thm4-lie", "user 1 lies", "CEEI: tasks when user 1 lies")),
    "drf": (("thm4", "truth", ""), ("thm4-lie", "user 1 lies", "")),
}


def _panel(
    axes: Axes, found: StoredCells, mechanism: str, pair: Sequence[tuple[str, str, str]], users: Sequence[str]
) -> None:
    """Shares of the pool by user as reported; a task that is stated serves user 1 as one of its own."""
    cases = []
    for cluster, label, statement in pair:
        ours = tasks(found, cluster, mechanism).sum(axis=1)
        theirs = printed(f"drf-{cluster}", statement) if statement else None
        cases.append(
            pooled(papers.instance(f"drf-{cluster}"), f"{label}\n{ours[0]:.2f}, {ours[1]:.2f} tasks", ours, theirs)
        )
    draw(axes, cases, users)


caption, figure = before_after(
    "Stated tasks", ("user 1", "user 2"), _CASES, _panel, label="part of the pool", usual=DOUBLE, height=2.3,
    stack=True, sharey=True,
)  # fmt: skip
