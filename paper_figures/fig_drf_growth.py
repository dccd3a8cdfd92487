"""DRF theorems 3 and 6: an increase of a resource can reduce a user's tasks, under asset fairness and under DRF."""

from __future__ import annotations

from .stacks import before_after

NEEDS = ("drf_figures",)
CAPTION = (
    "Tasks of both users before and after resource 2 of the pool grows, twofold under asset fairness (DRF theorem "
    "3) and fourfold under DRF (theorem 6); diamonds are what the paper prints."
)
_CASES = {
    "asset-fairness": (
        ("thm3", "before it grows", "asset fairness: bundles"),
        ("thm3-doubled", "after", "asset fairness: bundles, A falls"),
    ),
    "drf": (("thm6", "before it grows", ""), ("thm6-quadrupled", "after", "")),
}
caption, figure = before_after(
    "Tasks of both users", ("user A", "user B"), _CASES, titles=(", resource 2 ×2", ", resource 2 ×4")
)
