"""DRFH figures 2 and 3: 6 tasks per user under DRF in each server, 10 under DRFH; the paper's values as diamonds."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt import papers
from fairopt.report import Results

from .stacks import draw, pooled, printed, tasks, under
from .style import DOUBLE, legend, new

NEEDS = ("drfh_figures",)
CAPTION = (
    "Parts of two servers by user under DRF in every server (DRFH figure 2) and under DRFH (figure 3), with the "
    "tasks of both users; diamonds are what the paper prints, but for parts too small for one."
)
#: Tasks on each server in the paper.
_PRINTED = {
    "per-server-drf": "DRF per server: tasks on server 1, on server 2",
    "drfh": "DRFH: a server for each",
}
_TITLES = {"per-server-drf": "Figure 2: DRF in every server", "drfh": "Figure 3: DRFH"}


def caption(results: Results) -> str:
    """Tasks of both users under each mechanism."""
    return f"{under(results.of('drfh_figures'), 'figure1', _PRINTED)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Shares of each server by user."""
    found, cluster = results.of("drfh_figures"), papers.instance("drfh-fig1")

    drawn, table = new(width, 2.3, 1, 2, stack=True, sharey=True)
    for axes, (mechanism, statement) in zip(table[0], _PRINTED.items(), strict=True):
        ours, theirs = tasks(found, "figure1", mechanism), printed("drfh-fig1", statement).T
        cases = [
            pooled(
                cluster.select(servers=[server]),
                f"{server}: {ours[0, i]:g} + {ours[1, i]:g} tasks",
                ours[:, i],
                theirs[:, i],
            )
            for i, server in enumerate(cluster.servers)
        ]
        draw(axes, cases, cluster.users)
        axes.set_title(_TITLES[mechanism])
    table[0, 0].set_ylabel("part of the server")
    legend(drawn, table[0, 0])
    return drawn
