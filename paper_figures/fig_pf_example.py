"""PF figures 1 and 2: tasks and utilization of server 2 under PS-DSF, DRFH, TSF and alphaPF-VDS, for four users."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results

from .stacks import diamonds, printed, tasks
from .style import DOUBLE, IN_PAPER, groups, legend, name, new, per_cent

NEEDS = ("pf_example",)
CAPTION = (
    "Tasks of the four users of PF's figure 1 and of its variant under PS-DSF, DRFH, TSF and alpha = 1, and the "
    "use of memory on the variant's server 2, whose CPU all of them use up; diamonds are what the paper prints."
)
_MECHANISMS = ("ps-dsf", "drfh", "tsf", "alphapf-vds(alpha=1.0)")
_PRINTED = {
    "base": {"ps-dsf": "PS-DSF: tasks", "drfh": "DRFH: tasks", "tsf": "TSF: tasks"},
    "variant": {"ps-dsf": "PS-DSF: tasks"},
}
_INSTANCES = {"base": "pf-fig1", "variant": "pf-fig1-variant"}
#: Server 2, named by its capacities; its utilization does not depend on the lost data of the paper.
_SERVER = "8 x 16 x 0"


def caption(results: Results) -> str:
    """Use of memory on the variant's server 2."""
    used = _memory(results.of("pf_example").long("use"))
    said = (f"{label} {100 * used[m]:.0f}%" for label, m in zip(_labels(), _MECHANISMS, strict=True))
    return f"Memory: {', '.join(said)}."


def _labels() -> list[str]:
    return [name(text.partition("(")[0], 1.0 if "(" in text else np.nan) for text in _MECHANISMS]


def _memory(use: pd.DataFrame) -> pd.Series:
    """Utilization of memory on server 2 of the variant, by mechanism."""
    of = use[(use["cluster"] == "variant") & (use["class"] == _SERVER) & (use["resource"] == "RAM")]
    return of.set_index("mechanism")["utilization"]


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Tasks and utilization, with the paper's values as diamonds; the others were derived."""
    found = results.of("pf_example")
    use = found.long("use")
    labels = _labels()
    drawn, table = new(width, 2.3, 1, 3, stack=True, width_ratios=(3, 3, 2))
    for axes, (cluster, statements) in zip(table[0], _PRINTED.items(), strict=False):
        rows = [tasks(found, cluster, mechanism).sum(axis=1) for mechanism in _MECHANISMS]
        groups(axes, [f"user {n}" for n in range(1, 5)], list(zip(labels, rows, [None] * 4, strict=True)))
        for k, mechanism in enumerate(_MECHANISMS):
            if mechanism in statements:
                theirs = printed(_INSTANCES[cluster], statements[mechanism])
                diamonds(axes, np.arange(4) + (k - 1.5) * 0.2, theirs, None if k else IN_PAPER, markersize=2.8)
        axes.set(title="PF figure 1" if cluster == "base" else "Variant (figure 2)", ylabel="tasks")
    last = table[0, 2]
    used = _memory(use)
    shown = [(label, [100 * used[m]], None) for label, m in zip(labels, _MECHANISMS, strict=True)]
    groups(last, ["RAM (all of the CPU is used)"], shown)
    per_cent(last, 102)
    last.set(title="Variant, server 2", ylabel="utilization")
    legend(drawn, table[0, 0])
    return drawn
