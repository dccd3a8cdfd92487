"""DRF 7.1: dominant shares of two jobs of whole tasks in three phases, when blocked users are skipped or wait."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from fairopt.report import Results

from .over_time import policy
from .style import DOUBLE, IN_PAPER, legend, line, new, ordered, user

NEEDS = ("drf_dynamic",)
CAPTION = (
    "Dominant shares of two jobs of whole tasks in the three phases of DRF's figure 8, under discrete DRF and "
    "fits of DRFH; lines are what the paper prints, and intervals are over draws. Both jobs have nearly the same "
    "share in every phase."
)
#: Shares in the paper's text by phase, of jobs 1 and 2; for phase 3 it says "nearly equal".
_PRINTED = {"phase1": (0.70, 0.75)}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Means after the first wave of tasks, over draws of durations, with 95% intervals; the paper's values in red."""
    shares = results.of("drf_dynamic").long("shares")
    late = shares[shares["time"] >= shares["time"].max() / 4]
    mean = late.groupby(["workload", "policy", "repetition", "user"], sort=False)["share"].mean().reset_index()
    policies = list(dict.fromkeys(mean["policy"]))
    drawn, table = new(width, 2.3, 1, 3, stack=True, sharey=width == DOUBLE)
    for axes, phase in zip(table.ravel(), ("phase1", "phase2", "phase3"), strict=True):
        for k, job in enumerate(("job 1", "job 2")):
            of = mean[(mean["workload"] == phase) & (mean["user"] == job)]
            here = ordered(of, "policy", "share", policies)
            look = line(k) | {"linestyle": "none", "color": user(k)}
            y = np.arange(len(policies))[::-1] + (0.12 if k else -0.12)
            axes.errorbar(here["mean"], y, xerr=here["half"].fillna(0.0), label=job, capsize=2, **look)
        for value in _PRINTED.get(phase, ()):
            axes.axvline(value, color="#b5152c", linewidth=1.2, alpha=0.7, label=IN_PAPER, zorder=0)
        axes.set_yticks(np.arange(len(policies))[::-1], [policy(text) for text in policies])
        axes.set(
            title=f"Phase {phase[-1]}", ylim=(-0.6, len(policies) - 0.4), xlim=(0.3, 0.85), xlabel="dominant share"
        )
    legend(drawn, table[0, 0])
    return drawn
