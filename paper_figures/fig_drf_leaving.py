"""DRF figure 7 (theorem 5): the departure of user 3 reduces the tasks of user 2 under CEEI, and of nobody under DRF."""

from __future__ import annotations

from .stacks import before_after

NEEDS = ("drf_figures",)
CAPTION = (
    "Tasks of three users, and of the two that stay when user 3 leaves, under CEEI and DRF; diamonds are what the "
    "paper prints."
)
_CASES = {
    "ceei": (
        ("thm5", "three users", "CEEI: tasks of three users"),
        ("thm5-left", "user 3 left", "CEEI: user 2 falls when user 3 leaves"),
    ),
    "drf": (("thm5", "three users", ""), ("thm5-left", "user 3 left", "")),
}
caption, figure = before_after("Tasks", ("user 1", "user 2", "user 3"), _CASES, sharey=True)
