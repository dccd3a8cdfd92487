"""Stacked bars of users' shares of resources, with the paper's values as diamonds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from fairopt import Cluster, papers
from fairopt.report import Results, StoredCells

from .style import IN_PAPER, SINGLE, bar, groups, legend, name, new, per_cent, user

Numbers = NDArray[np.float64]
#: Smallest share that has a diamond.
_SMALLEST = 0.03


@dataclass(frozen=True)
class Case:
    """Group of bars: label of the group, labels of the bars, and shares `parts`, (bars, users).

    `printed` are the shares, (bars, users), that follow from the paper's tasks, or None.
    """

    label: str
    bars: tuple[str, ...]
    parts: Numbers
    printed: Numbers | None = None


def printed(instance: str, statement: str) -> Numbers:
    """Values that a paper states for an instance, from `fairopt.papers`, as numbers with users as the last axis."""
    for claim in papers.claims():
        if claim.instance == instance and claim.statement == statement and claim.printed is not None:
            return np.asarray(claim.printed.value, dtype=float)
    raise KeyError(f"no paper prints {statement!r} about {instance}")


def correct(instance: str, statement: str) -> float:
    """Correct value of a claim about an instance that is one number."""
    values = [one.correct for one in papers.claims() if (one.instance, one.statement) == (instance, statement)]
    return float(np.asarray(values, dtype=float).item())


def tasks(found: StoredCells, cluster: str, mechanism: str) -> Numbers:
    """Stored tasks (users, servers) of a mechanism on a cluster of the experiment."""
    table = found.long("allocated")
    of = table[(table["cluster"] == cluster) & (table["mechanism"] == mechanism)]
    wide = of.pivot(index="user", columns="server", values="tasks")
    return np.asarray(wide.loc[of["user"].unique(), of["server"].unique()], dtype=float)


def said(found: StoredCells, cluster: str, mechanism: str) -> str:
    """Tasks by user, for a caption: `3.23 and 48.4`."""
    *others, last = (f"{value:.3g}" for value in tasks(found, cluster, mechanism).sum(axis=1))
    return f"{', '.join(others)} and {last}"


def has(found: StoredCells, mechanism: str) -> bool:
    """True if the mechanism is in this version of the experiment, since tiny versions omit some mechanisms."""
    return mechanism in set(found.cells["mechanism"])


def pooled(cluster: Cluster, label: str, ours: Numbers, theirs: Numbers | None = None) -> Case:
    """Shares of a pool by `ours`, tasks (users, servers) or (users,), and by `theirs`, the paper's tasks (users,)."""
    total = cluster.capacity.sum(axis=0)

    def parts(done: Numbers) -> Numbers:
        return np.asarray((done.reshape(len(cluster.users), -1).sum(axis=1)[:, None] * cluster.demand / total).T)

    bars = tuple(re.sub(r"^(?:r|resource )(\d+)$", r"res. \1", name) for name in cluster.resources)
    return Case(label, bars, parts(ours), None if theirs is None else parts(theirs))


def diamonds(axes: Axes, x: ArrayLike, y: ArrayLike, label: str | None = IN_PAPER, **look: Any) -> None:
    """Draw the paper's values as diamonds."""
    axes.plot(x, y, linestyle="none", marker="D", color="white", markeredgecolor="#b5152c", markeredgewidth=0.9,
              label=label, zorder=3, clip_on=False, **look)  # fmt: skip


#: Pair of functions that a module of a figure defines: `caption(results)`, and `figure(results, width)`.
Made = tuple[Callable[[Results], str], Callable[..., Figure]]


def under(found: StoredCells, cluster: str, mechanisms: Iterable[str]) -> str:
    """Tasks of both users under each mechanism, as a sentence without its end."""
    each = [f"{said(found, cluster, one)} under {name(one)}" for one in mechanisms if has(found, one)]
    return f"Tasks of both users: {', '.join(each)}"


def bars(
    axes: Axes, found: StoredCells, mechanism: str, pair: Sequence[tuple[str, str, str]], users: Sequence[str]
) -> None:
    """Bars of tasks before and after a change; a user who has left has no tasks. Bundles are converted to tasks."""
    rows = [np.resize(np.append(tasks(found, cluster, mechanism).sum(axis=1), 0.0), len(users)) for cluster, *_ in pair]
    groups(axes, users, [(label, row, None) for (_, label, _), row in zip(pair, rows, strict=True)])
    for k, (cluster, _, statement) in enumerate(pair):
        if statement:
            theirs, demand = printed(f"drf-{cluster}", statement), papers.instance(f"drf-{cluster}").demand
            row = theirs if theirs.ndim == 1 else theirs[:, -1] / demand[:, -1]
            diamonds(axes, np.arange(len(row)) + (k - 0.5) * 0.4, row, None if k else IN_PAPER)


def before_after(
    about: str, users: Sequence[str], cases: Mapping[str, Sequence[tuple[str, str, str]]],
    panel: Callable[..., None] = bars, *, titles: Sequence[str] = ("", ""), label: str = "tasks", usual: float = SINGLE,
    height: float = 2.2, **layout: Any,
) -> Made:  # fmt: skip
    """Figure of a change of a pool, with a `panel` for each mechanism, and its caption, which begins with `about`.

    `cases` has by mechanism the cluster before and after the change, its label, and the statement of the paper, or ''.
    """

    def caption(results: Results) -> str:
        found = results.of("drf_figures")
        each = [f"under {name(one)} {' become '.join(said(found, case, one) for case, *_ in pair)}"
                for one, pair in cases.items() if has(found, one)]  # fmt: skip
        return f"{about}: {'; '.join(each)}."

    def figure(results: Results, width: float = usual) -> Figure:
        found = results.of("drf_figures")
        here = [one for one in zip(cases.items(), titles, strict=True) if has(found, one[0][0])]
        drawn, table = new(width, height, 1, len(here), **layout)
        for axes, ((mechanism, pair), title) in zip(table[0], here, strict=True):
            panel(axes, found, mechanism, pair, users)
            axes.set_title(name(mechanism) + title)
        table[0, 0].set_ylabel(label)
        legend(drawn, table[0, 0])
        return drawn

    return caption, figure


def of_pool(
    cluster: str, instance: str, users: Sequence[str], statements: Mapping[str, str], end: str = "", half: bool = False
) -> Made:
    """Figure of users' shares of a pool under mechanisms, with the paper's values by `statements`, and its caption."""

    def caption(results: Results) -> str:
        return f"{under(results.of('drf_figures'), cluster, statements)}{end}."

    def figure(results: Results, width: float = SINGLE) -> Figure:
        found, pool = results.of("drf_figures"), papers.instance(instance)
        cases = [
            pooled(pool, name(one), tasks(found, cluster, one), printed(instance, text) if text else None)
            for one, text in statements.items()
            if has(found, one)
        ]
        drawn, table = new(width, 2.2)
        draw(table[0, 0], cases, users, half)
        table[0, 0].set_ylabel("part of the pool")
        legend(drawn, table[0, 0])
        return drawn

    return caption, figure


def draw(axes: Axes, cases: Sequence[Case], users: Sequence[str], half: bool = False) -> None:
    """Bars with the paper's values as diamonds at the top of each user's share; `half` adds a line at one half."""
    left = 0.0
    middles: list[float] = []
    places: list[float] = []
    names: list[str] = []
    for case in cases:
        x = left + np.arange(len(case.bars))
        bottom = np.zeros(len(x))
        for n, text in enumerate(users[: case.parts.shape[1]]):
            look = bar(n) | {"facecolor": user(n), "label": text if case is cases[0] else None}
            axes.bar(x, 100 * case.parts[:, n], 0.82, bottom=bottom, **look)
            bottom = bottom + 100 * case.parts[:, n]
        if case.printed is not None:
            tops = 100 * case.printed.cumsum(axis=1)
            tops[case.printed < _SMALLEST] = np.nan  # the diamond would overlap the diamond below
            diamonds(axes, np.repeat(x, tops.shape[1]), tops.ravel())
        middles.append(float(x.mean()))
        places += x.tolist()
        names += case.bars
        left = float(x[-1]) + 1.7
    if half:
        axes.axhline(50, color="#b5152c", linestyle="--", linewidth=0.9, label="half of the pool")
    axes.set_xticks(places, names, rotation=0)
    axes.set_xticks(middles, [case.label for case in cases], minor=True)
    axes.tick_params(axis="x", which="minor", length=0, pad=17, labelsize=8)
    axes.grid(False, axis="x")
    per_cent(axes, 102)
