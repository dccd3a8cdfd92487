"""Convergence of the game by alpha: rounds by residual, order and damping; rates, messages, seconds; utilization."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairopt.harness.report.games import with_games
from fairopt.harness.solve import power_of_ten
from fairopt.report import Results, median_interval, reached

from .style import DOUBLE, NARROW, alpha_axis, at_alpha, by_alpha, legend, line, new
from .utilization import SHORT

NEEDS = ("alpha_convergence",)
CAPTION = (
    "Rounds, linear rates 1 - q (residuals fall by the factor q in a round), messages and seconds against alpha on six "
    "kinds of clusters, when servers respond in turn and when the engine solves for the equilibrium, and the use of "
    "each resource; medians and means over draws with 95% intervals. Neither rounds nor seconds grow with alpha "
    "throughout."
)
_NAMES = {
    "small": "20 x 10", "dense": "100 x 20", "sparse": "100 x 20, sparse", "bitbrains": "Bitbrains",
    "google": "Google", "thousands": "2,000 x 60",
}  # fmt: skip
_LEVELS = (1e-1, 1e-2, 1e-4, 1e-6)
#: Order and damping of the games on `small`.
_WAYS = (
    ("cyclic", math.nan), ("random", math.nan), ("over-relaxed", math.nan), ("elastic", math.nan), ("jacobi", 0.2),
    ("jacobi", 0.5),
)  # fmt: skip


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Medians of rounds, messages and seconds over draws, where half of the games converge; other means; 95% bands.

    A rate is 1 - q, with the factor q by which residuals fall in a round, of games that reach three of their levels.
    PS-DSF is at alpha = infinity. Bands that end at the top are open: their upper end is a game that does not converge
    within its rounds.
    """
    found = results.of("alpha_convergence")
    cells, games = found.cells, reached(found)
    games = games.assign(damping=games.get("damping", math.nan))
    narrow = width < NARROW
    drawn, table = new(width, 2.0 * width, 5, 2) if narrow else new(width, 0.95 * width, 3, 3)
    panels = table.ravel()
    usual = games[games["damping"].isna() & (games["order"] == "cyclic")]
    small = usual[usual["cluster"] == "small"]
    by_level = {power_of_ten(level): small[np.isclose(small["level"], level)] for level in _LEVELS}
    _medians(panels[0], "20 x 10, by residual", by_level, "rounds", room=40)
    close = usual[np.isclose(usual["level"], 1e-3)]
    _medians(panels[1], "To 1e-3, cyclic", _by_cluster(close), "rounds")
    small = games[(games["cluster"] == "small") & np.isclose(games["level"], 1e-3)]
    ways = {f"{order} {part:g}".removesuffix(" nan"): _of_way(small, order, part) for order, part in _WAYS}
    _medians(panels[2], "20 x 10, to 1e-3", ways, "rounds", bands=False, room=10)
    plain = cells["order"] == "cyclic"
    rates = with_games(cells[plain & cells.get("damping", cells["tol"] * math.nan).isna()], found.long("reached"))
    rates = rates.assign(rate=1 - rates["linear_factor"]).dropna(subset=["rate"])
    _medians(panels[3], "Linear rate, cyclic", _by_cluster(_median(rates, "rate")), "rate")
    _medians(panels[4], "Messages to 1e-3, cyclic", _by_cluster(close), "messages", bands=False)
    solved = cells[cells["engine"] == "equilibrium"]
    _medians(panels[5], "Seconds to solve", _by_cluster(_median(solved, "seconds")), "seconds")
    used = found.long("use", solved)
    for k, (label, of) in enumerate([*_by_cluster(solved).items()][:3]):
        by_alpha(panels[6], of, "utilization", k, label, marks=False)
    panels[6].set_title("Use, lognormal clusters")
    for axes, cluster in zip(panels[7:], ("bitbrains", "google"), strict=False):
        here = used[(used["cluster"] == cluster) & (used["class"] == "all")]
        for k, (resource, of) in enumerate(here.groupby("resource", sort=False)):
            by_alpha(axes, of, "utilization", k, SHORT.get(str(resource), str(resource)), marks=False)
        axes.set_title(f"Use, {_NAMES[cluster]}")
    for axes in panels[6:9]:
        axes.set_ylim(0, 1.03)
    for axes in panels[9:]:
        axes.remove()
    for k, axes in enumerate(panels[:9]):
        alpha_axis(axes, label=k + table.shape[1] >= 9)
    for axes in (panels[0], panels[2], *panels[7:9]):
        where = "center right" if axes in panels[7:] else "upper left"
        axes.legend(loc=where, fontsize=5.5, handlelength=2.4, borderpad=0.2, labelspacing=0.2, ncols=2)
    panels[0].set_ylabel("rounds")
    legend(drawn, panels[5])
    return drawn


def _by_cluster(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {label: frame[frame["cluster"] == name] for name, label in _NAMES.items()}


def _median(cells: pd.DataFrame, what: str) -> pd.DataFrame:
    """Medians of a column by cluster and alpha, with their intervals, in the names of `reached`."""
    found = median_interval(cells, ["cluster", "alpha"], what)
    return found.rename(columns={"median": what, "low": f"{what} low", "high": f"{what} high"})


def _of_way(games: pd.DataFrame, order: str, damping: float) -> pd.DataFrame:
    like = games["damping"].isna() if math.isnan(damping) else np.isclose(games["damping"], damping)
    return games[(games["order"] == order) & like]


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
