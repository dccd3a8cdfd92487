"""Utilization by resource, and gains of PS-DSF over other mechanisms on the same clusters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fairopt.report import StoredCells, interval

from .style import groups, ordered, per_cent

MECHANISMS: dict[Hashable, str] = {"ps-dsf": "PS-DSF", "drfh": "DRFH", "tsf": "TSF"}
SHORT = {"cpu": "CPU", "memory": "RAM", "disk": "disk", "received": "net in", "transmitted": "net out"}


def overall(found: StoredCells) -> pd.DataFrame:
    """Utilization by resource over all servers of a cluster."""
    return found.long("use").query("`class` == 'all'")


def series_of(
    use: pd.DataFrame, by: str, labels: Mapping[Any, str], within: str, chosen: Sequence[str]
) -> list[tuple[str, pd.Series, pd.Series]]:
    """Label, means and half-widths in per cent, by value of the column `by`, for the values `chosen` of `within`."""
    every = [ordered(use[use[by] == value], within, "utilization", chosen) for value in labels]
    return [(text, 100 * one["mean"], 100 * one["half"]) for text, one in zip(labels.values(), every, strict=True)]


def by_resource(axes: Axes, use: pd.DataFrame, by: str, labels: Mapping[Hashable, str]) -> None:
    """Draw bars of utilization in groups by resource, with a bar for each value of the column `by`."""
    resources = list(dict.fromkeys(use["resource"]))
    series = series_of(use, by, labels, "resource", resources)
    groups(axes, [SHORT.get(name, name) for name in resources], series)
    highest = max(float(np.nanmax(mean + half.fillna(0))) for _, mean, half in series)
    per_cent(axes, max(105.0, 1.03 * highest))  # intervals around means near 100% exceed it
    axes.set_ylabel("utilization")


def points(use: pd.DataFrame, by: str, texts: Mapping[str, str], column: str = "name", better: str = "ps-dsf",
           than: str = "drfh") -> str:  # fmt: skip
    """Mean differences in use of CPU and memory, in points, by values of the column `by`, in the words of `texts`."""
    wide = use.pivot_table(index=[by, "resource", "repetition"], columns=column, values="utilization")
    more = 100 * (wide[better] - wide[than]).groupby(level=[0, 1]).mean()
    said = [f"{more[one, 'cpu']:+.1f} points of CPU and {more[one, 'memory']:+.1f} of memory ({text})"
            for one, text in texts.items()]  # fmt: skip
    return f"PS-DSF uses, compared with DRFH, {' and '.join(said)}."


def gains(use: pd.DataFrame, over: str) -> pd.DataFrame:
    """Relative gain of PS-DSF in utilization over another mechanism on the same clusters, in per cent, by resource.

    Returns
    -------
    DataFrame
        One row per resource: `resource`, `mean`, `half`, `n`.
    """
    wide = use.pivot_table(index=["source", "repetition", "resource"], columns="name", values="utilization")
    there = wide[wide[over] > 0]
    gain = (100 * (there["ps-dsf"] / there[over] - 1)).rename("gain").reset_index()
    return interval(gain, ["resource"], "gain")


def gain_bars(axes: Axes, use: pd.DataFrame) -> None:
    """Draw bars of `gains` over DRFH and TSF, with the paper's `up to 20%` as a line."""
    resources = list(dict.fromkeys(use["resource"]))
    series = []
    for over in ("drfh", "tsf"):
        one = gains(use, over).set_index("resource").reindex(resources)
        series.append((f"over {MECHANISMS[over]}", one["mean"], one["half"]))
    groups(axes, [SHORT.get(name, name) for name in resources], series)
    axes.axhline(0, color="#111111", linewidth=0.6)
    axes.axhline(20, color="#b5152c", linestyle="--", linewidth=1, label="PF: up to 20%")
    axes.yaxis.set_major_formatter("{x:g}%")
    axes.set_ylabel("gain, % of other's use")


def classes(use: pd.DataFrame, most: int) -> list[str]:
    """Names of the `most` classes with the largest numbers of servers, in decreasing order."""
    count = use[use["class"] != "all"].groupby("class", sort=False)["servers"].sum()
    order = np.argsort(-count.to_numpy(), kind="stable")[:most]
    return [str(count.index[k]) for k in order]
