"""DRF figures 3 and 4 (sections 4.1, 5.1 and 5.2): 9 CPU and 18 GB under DRF, asset fairness and CEEI."""

from __future__ import annotations

from .stacks import of_pool

NEEDS = ("drf_figures",)
CAPTION = (
    "Parts of the pool of DRF's section 4.1 under DRF, asset fairness and CEEI; diamonds are what the paper prints."
)
caption, figure = of_pool(
    "example", "drf-4.1", ("user A", "user B"),
    {"drf": "DRF: tasks", "asset-fairness": "asset fairness: tasks", "ceei": "CEEI: tasks"},
)  # fmt: skip
