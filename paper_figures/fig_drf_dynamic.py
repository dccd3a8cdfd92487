"""DRF figure 8: CPU, memory and dominant shares of two jobs of whole tasks over six minutes, and means by phase."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt import papers
from fairopt.report import Results

from .over_time import of_users, parts, policy
from .style import DOUBLE, IN_PAPER, NARROW, legend, line, new, ordered, user

NEEDS = ("drf_dynamic",)
CAPTION = (
    "Parts of CPU and memory and dominant shares of two jobs of whole tasks over the three phases of DRF's figure 8, "
    "of two minutes each, under First-Fit in the first draw; and means of dominant shares by phase under discrete DRF "
    "and fits of DRFH, with 95% intervals over draws. Every phase begins with empty servers. Red lines are what the "
    "paper prints."
)
_JOBS = ("job 1", "job 2")
_PHASES = ("phase1", "phase2", "phase3")
#: Seconds of a phase.
_LONG = 120.0
#: Shares in the paper's text by phase, of jobs 1 and 2; for phase 3 it says "nearly equal".
_PRINTED = {"phase1": (0.70, 0.75)}


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """First row: over time; second row: means after the first wave of tasks, over draws of durations."""
    shares = results.of("drf_dynamic").long("shares")
    drawn, table = new(width, 4.2, 2, 3, stack=6.9)
    panels = table.ravel()
    over_time(panels[:3], shares)
    late = shares[shares["time"] >= shares["time"].max() / 4]
    mean = late.groupby(["workload", "policy", "repetition", "user"], sort=False)["share"].mean().reset_index()
    policies = list(dict.fromkeys(mean["policy"]))
    for k, (axes, phase) in enumerate(zip(panels[3:], _PHASES, strict=True)):
        by_policy(axes, mean[mean["workload"] == phase], policies)
        for value in _PRINTED.get(phase, ()):
            axes.axvline(value, color="#b5152c", linewidth=1.2, alpha=0.7, label=IN_PAPER, zorder=0)
        axes.set(title=f"Phase {phase[-1]}", xlabel="dominant share")
        if k and width >= NARROW:
            axes.tick_params(labelleft=False)
    legend(drawn, panels[0], panels[2], panels[3])
    return drawn


def over_time(panels: np.ndarray, shares: pd.DataFrame) -> None:
    """Parts of CPU and memory and dominant shares of both jobs under First-Fit in the first draw."""
    of = shares[(shares["policy"] == "first-fit-drfh") & (shares["repetition"] == 0)]
    phases = []
    for k, phase in enumerate(_PHASES):
        cluster, here = papers.instance(f"drf-7.1-p{k + 1}"), of[of["workload"] == phase]
        demands = dict(zip(cluster.users, cluster.share_per_task, strict=True))
        phases.append(parts(here.assign(time=here["time"] + k * _LONG), demands))
    theirs = {"share": [(0, _LONG, value) for value in _PRINTED["phase1"]]}
    of_users(panels, pd.concat(phases), _JOBS, theirs)
    for axes in panels:
        axes.set(ylim=(0, 1.02), xlim=(0, 3 * _LONG))


def by_policy(axes: Axes, mean: pd.DataFrame, policies: list[str]) -> None:
    """Dominant shares of both jobs in one phase."""
    for k, job in enumerate(_JOBS):
        here = ordered(mean[mean["user"] == job], "policy", "share", policies)
        look = line(k) | {"linestyle": "none", "color": user(k)}
        y = np.arange(len(policies))[::-1] + (0.12 if k else -0.12)
        axes.errorbar(here["mean"], y, xerr=here["half"].fillna(0.0), label=job, capsize=2, **look)
    axes.set_yticks(np.arange(len(policies))[::-1], [policy(text) for text in policies])
    axes.set(ylim=(-0.6, len(policies) - 0.4), xlim=(0.3, 0.85))
