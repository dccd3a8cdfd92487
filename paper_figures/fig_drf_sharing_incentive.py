"""DRF figure 5 (theorem 1): asset fairness gives a user less than half of every resource."""

from __future__ import annotations

from .stacks import of_pool

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's theorem 1 by user under three mechanisms; diamonds are what the paper prints of "
    "asset fairness, and the line is one half."
)
caption, figure = of_pool(
    "thm1", "drf-thm1", ("user 1", "user 2"), {"asset-fairness": "asset fairness: tasks", "drf": "", "ceei": ""},
    "; half of the pool runs 15 of user 2", half=True,
)  # fmt: skip
