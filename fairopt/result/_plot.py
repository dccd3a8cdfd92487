"""Pictures: a figure that shows itself in a notebook, and the one of an allocation."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from ._answer import Answer

#: More bars or users than this cannot be told apart: servers are then pooled, and users beyond the largest joined.
_MOST_BARS, _MOST_USERS = 24, 12


class Picture(Figure):
    """A figure of no window: matplotlib shows such a one in a notebook only if pyplot is set up; this one always."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=120)
        return file.getvalue()


def stacked_use(allocation: Answer) -> Figure:
    """Used part of every capacity, stacked by user: one bar per server and resource."""
    cluster = allocation.cluster
    there, servers = cluster.capacity, list(cluster.servers)
    if len(servers) * len(cluster.resources) > _MOST_BARS:
        there, servers = there.sum(axis=0, keepdims=True), ["all servers"]
        used = (allocation.user_tasks[:, None] * cluster.demand)[:, None, :]
    else:
        used = allocation.usage
    part = np.divide(used, there[None], out=np.zeros_like(used), where=there[None] > 0)
    order = np.arange(len(part))
    if len(order) > _MOST_USERS:
        order = np.argsort(-part.sum(axis=(1, 2)), kind="stable")
    labels = [cluster.users[n] for n in order]
    stacked = part[order].reshape(len(order), -1)
    if len(order) > _MOST_USERS:
        rest = stacked[_MOST_USERS - 1 :].sum(axis=0, keepdims=True)
        labels = [*labels[: _MOST_USERS - 1], f"{len(order) - _MOST_USERS + 1} others"]
        stacked = np.vstack([stacked[: _MOST_USERS - 1], rest])
    bars = [
        f"{server}\n{resource}" if len(servers) > 1 else resource
        for server in servers
        for resource in cluster.resources
    ]
    figure = Picture(figsize=(max(3.4, 0.75 * len(bars) + 1.6), 2.8), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["viridis"](np.linspace(0.1, 0.95, len(labels)))
    bottom = np.zeros(len(bars))
    for label, height, colour in zip(labels, stacked, colours, strict=True):
        axes.bar(bars, height, bottom=bottom, label=label, color=colour, edgecolor="white", linewidth=0.5)
        bottom += height
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("used part of capacity")
    axes.set_title(allocation.mechanism, fontsize="medium")
    axes.tick_params(axis="x", labelsize="small")
    figure.legend(loc="outside right upper", fontsize="x-small", frameon=False)
    return figure
