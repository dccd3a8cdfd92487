"""DRF theorems 3 and 6: an increase of a resource can reduce a user's tasks, under asset fairness and under DRF."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import before_after, has, printed, said
from .style import SINGLE, legend, name, new

NEEDS = ("drf_figures",)
CAPTION = (
    "Tasks of both users before and after resource 2 of the pool grows, twofold under asset fairness (DRF theorem "
    "3) and fourfold under DRF (theorem 6); diamonds are what the paper prints."
)
_CASES = (("asset-fairness", "thm3", "thm3-doubled", "×2"), ("drf", "thm6", "thm6-quadrupled", "×4"))


def caption(results: Results) -> str:
    """Tasks before and after the increase."""
    found = results.of("drf_figures")
    each = [f"under {name(one)} {said(found, before, one)} become {said(found, after, one)}"
            for one, before, after, _ in _CASES if has(found, one)]  # fmt: skip
    return f"Tasks of both users: {'; '.join(each)}."


def figure(results: Results, width: float = SINGLE) -> Figure:
    """Tasks of each user before and after the increase of resource 2; the paper states bundles of theorem 3."""
    found = results.of("drf_figures")
    cases = [case for case in _CASES if has(found, case[0])]
    drawn, table = new(width, 2.2, 1, len(cases))
    changes = {one: ((before, "before it grows"), (after, "after")) for one, before, after, _ in cases}
    before_after(table[0], found, changes, ["user A", "user B"], {"asset-fairness": _bundles(*_CASES[0][1:3])})
    for axes, (mechanism, _, _, factor) in zip(table[0], cases, strict=True):
        axes.set_title(f"{name(mechanism)}, resource 2 {factor}")
    table[0, 0].set_ylabel("tasks")
    legend(drawn, table[0, 0])
    return drawn


def _bundles(before: str, after: str) -> list[list[float]]:
    """Convert the paper's amounts of resource 2 to tasks, by the demands 2 and 1."""
    statements = {before: "asset fairness: bundles", after: "asset fairness: bundles, A falls"}
    return [
        (printed(f"drf-{cluster}", statement)[:, 1] / (2.0, 1.0)).tolist() for cluster, statement in statements.items()
    ]
