"""DRF 7.1: dominant shares of two jobs of whole tasks in three phases; who does not fit is skipped, or blocks."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import lines, policy, printed
from .style import DOUBLE, legend, new, styled

NEEDS = ("drf_dynamic",)
#: About what the paper's figure shows in each phase: of job 1, and of job 2.
_PRINTED = {"phase1": (0.70, 0.75)}
_POLICIES = ("first-fit-drfh", "first-fit-drfh(strict=True)", "best-fit-drfh(strict=True)")


@styled
def figure(results: Results, width: float = DOUBLE) -> Figure:
    """The first draw of tasks' durations: both jobs, each under three policies. Printed values of phase 1 in red."""
    found = results.of("drf_dynamic")
    shares = found.long("shares")
    shares = shares[shares["repetition"] == 0].rename(columns={"share": "value"})
    drawn, table = new(width, 2.1, 1, 3, stack=True, sharey=True)
    for axes, phase in zip(table.ravel(), ("phase1", "phase2", "phase3"), strict=True):
        here = shares[(shares["workload"] == phase) & shares["policy"].isin(_POLICIES)]
        here = here.assign(which=here["user"] + ", " + here["policy"].map(policy))
        lines(axes, here, "which", {name: name for name in here["which"].unique()})
        for value in _PRINTED.get(phase, ()):
            printed(axes, here["time"].min(), here["time"].max(), value, "printed")
        axes.set_title(f"Phase {phase[-1]}")
        axes.set_xlabel("seconds")
        axes.set_ylim(0, 1)
    table[0, 0].set_ylabel("dominant share")
    legend(drawn, *table.ravel())
    return drawn
