"""Convergence of the game by alpha: rounds by residual, order and damping; rates, messages, seconds; utilization."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.harness.report.games import with_games
from fairopt.harness.report.stored import named_medians
from fairopt.harness.solve import power_of_ten
from fairopt.report import Results, reached

from .style import DOUBLE, NARROW, alpha_axis, at_alpha, by_alpha, legend, line, new
from .utilization import SHORT, overall

NEEDS = ("alpha_convergence",)
CAPTION = (
    "Rounds, linear rates 1 - q (residuals fall by the factor q in a round), messages and seconds against alpha on six "
    "kinds of clusters, when servers respond in turn and when the engine solves for the equilibrium, and the use of "
    "each resource; medians and means over draws with 95% intervals."
)
_NAMES = {
    "small": "20 x 10", "dense": "100 x 20", "sparse": "100 x 20, sparse", "bitbrains": "Bitbrains",
    "google": "Google", "thousands": "2,000 x 60",
}  # fmt: skip
_BY = ["cluster", "alpha"]
_LEVELS = ("1e-1", "1e-2", "1e-4", "1e-6")
#: Order and damping of the games on `small`.
_WAYS = ("cyclic", "random", "over-relaxed", "elastic", "jacobi 0.2", "jacobi 0.5")


def caption(results: Results) -> str:
    """On which clusters medians of rounds and of seconds never fall as alpha grows."""
    found = results.of("alpha_convergence")
    cells, said = found.cells, []
    seconds = named_medians(cells[cells["engine"] == "equilibrium"], _BY, "seconds")
    for what, frame in (("rounds", _played(reached(found), "1e-3")), ("seconds", seconds)):
        each = {name: of.sort_values("alpha")[what].to_numpy() for name, of in _by_cluster(frame).items()}
        grow = [name for name, of in each.items() if (of[1:] >= of[:-1]).all()]
        said.append(f"{what} grow with alpha throughout on {', '.join(grow) or 'none'} of the clusters")
    return f"By medians {'; '.join(said)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Medians of rounds, messages and seconds over draws, where half of the games converge; other means; 95% bands.

    A rate is 1 - q, with the factor q by which residuals fall in a round, of games that reach three of their levels.
    PS-DSF is at alpha = infinity. Bands that end at the top are open: their upper end is a game that does not converge
    within its rounds.
    """
    found = results.of("alpha_convergence")
    cells, games = found.cells, reached(found)
    drawn, table = new(width, 2.0 * width, 5, 2) if width < NARROW else new(width, 0.95 * width, 3, 3)
    panels = table.ravel()
    levels = {level: _of(_played(games, level), "small") for level in _LEVELS}
    close = _by_cluster(_played(games, "1e-3"))
    ways = {way: _of(_played(games, "1e-3", way), "small") for way in _WAYS}
    rates = with_games(_played(cells), found.long("reached"))
    rates = rates.assign(rate=1 - rates["linear_factor"]).dropna(subset=["rate"])
    solved = cells[cells["engine"] == "equilibrium"]
    for axes, (title, of, what, bands, room) in zip(panels, (
        ("20 x 10, by residual", levels, "rounds", True, 40), ("To 1e-3, cyclic", close, "rounds", True, 3),
        ("20 x 10, to 1e-3", ways, "rounds", False, 10),
        ("Linear rate, cyclic", _by_cluster(named_medians(rates, _BY, "rate")), "rate", True, 3),
        ("Messages to 1e-3, cyclic", close, "messages", False, 3),
        ("Seconds to solve", _by_cluster(named_medians(solved, _BY, "seconds")), "seconds", True, 3),
    ), strict=False):  # fmt: skip
        _medians(axes, title, of, what, bands, room)
    used = overall(found)
    used = used[used["engine"] == "equilibrium"]
    uses = {"lognormal clusters": [*_by_cluster(solved).items()][:3]}
    for cluster in ("bitbrains", "google"):
        resources = _of(used, cluster).groupby("resource", sort=False)
        uses[_NAMES[cluster]] = [(SHORT.get(str(one), str(one)), of) for one, of in resources]
    for axes, (title, several) in zip(panels[6:], uses.items(), strict=False):
        for k, (label, of) in enumerate(several):
            by_alpha(axes, of, "utilization", k, label, marks=False)
        axes.set(title=f"Use, {title}", ylim=(0, 1.03))
    for k, axes in enumerate(panels[:9]):
        alpha_axis(axes, label=k + table.shape[1] >= 9)
    for axes, where in zip(panels[[0, 2, 7, 8]], 2 * ["upper left"] + 2 * ["center right"], strict=True):
        axes.legend(loc=where, fontsize=5.5, handlelength=2.4, borderpad=0.2, labelspacing=0.2, ncols=2)
    for axes in panels[9:]:
        axes.remove()
    panels[0].set_ylabel("rounds")
    legend(drawn, panels[5])
    return drawn


def _played(games: pd.DataFrame, level: str = "", way: str = "cyclic") -> pd.DataFrame:
    """Games of an order and damping, to a residual if one is named."""
    damping = games["damping"] if "damping" in games else [math.nan] * len(games)
    ways = [f"{order} {part:g}".removesuffix(" nan") for order, part in zip(games["order"], damping, strict=True)]
    chosen = games[[one == way for one in ways]]
    return chosen[chosen["level"].map(power_of_ten) == level] if level else chosen


def _of(frame: pd.DataFrame, cluster: str) -> pd.DataFrame:
    return frame[frame["cluster"] == cluster]


def _by_cluster(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {label: _of(frame, name) for name, label in _NAMES.items()}


def _medians(
    axes: Axes, title: str, lines: dict[str, pd.DataFrame], what: str, bands: bool = True, room: float = 3
) -> None:
    """Lines with their bands, interrupted where the median is infinite; `room` times the largest value is the top."""
    axes.set(yscale="log", title=title)
    largest = [of[what][np.isfinite(of[what])].max() for of in lines.values()]
    top = room * np.nanmax([1e-3, *largest])
    for k, (label, of) in enumerate(lines.items()):
        shown = of.sort_values("alpha")
        if not np.isfinite(shown[what]).any():
            continue
        x, middle = at_alpha(shown["alpha"]), shown[what].replace(np.inf, np.nan)
        axes.plot(x, middle, label=label, **line(k))
        if bands:
            low, high = shown[f"{what} low"].replace(np.inf, np.nan), shown[f"{what} high"].clip(upper=2 * top)
            axes.fill_between(x, low, high, where=middle.notna(), color=line(k)["color"], alpha=0.12, lw=0)
    axes.set_ylim(top=top)
