"""Sensitivity of PF section 6 to sizes that it does not state: gains in utilization by size."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, line, new, ordered

NEEDS = ("pf_sensitivity",)
CAPTION = (
    "What PS-DSF gains over DRFH, and alpha = 1 over PS-DSF, in points of utilization (mean over "
    "resources), for every choice of the sizes that PF section 6 leaves out; means with 95% intervals, all on one "
    "scale."
)
_PAIRS = (
    ("ps-dsf", "drfh", "PS-DSF over DRFH"),
    ("alphapf-vds(alpha=1.0)", "ps-dsf", "α = 1 over PS-DSF"),
)


def caption(results: Results) -> str:
    """In how many of the choices the intervals of each gain are above 0, and below."""
    said = []
    for of, over, title in _PAIRS:
        found = _gain(results.of("pf_sensitivity").cells, of, over)
        above, below = ((sign * found["mean"] > found["half"]).sum() for sign in (1, -1))
        said.append(f"{title} gains in {above} of {len(found)} and loses in {below}")
    return f"By their intervals {'; '.join(said)}."


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Gains in mean utilization on the same clusters in percentage points, with 95% confidence intervals."""
    cells = results.of("pf_sensitivity").cells
    sources = list(dict.fromkeys(cells["source"]))
    drawn, table = new(width, 0.8 + 0.24 * len(sources), 1, len(_PAIRS), sharey=True, sharex=True)
    for k, (axes, (of, over, title)) in enumerate(zip(table.flat, _PAIRS, strict=True)):
        found = _gain(cells, of, over)
        look = {**line(k), "linestyle": "none"}
        axes.errorbar(found["mean"], range(len(sources)), xerr=found["half"].fillna(0), capsize=2, **look)
        axes.axvline(0, color="#111111", linewidth=0.6)
        axes.set_title(title)
        axes.margins(y=0.12)
    for axes in table[:, 0]:
        axes.set_yticks(range(len(sources)), [_text(source) for source in sources])
        axes.set_ylabel("machines / servers")
    table[0, 0].invert_yaxis()
    drawn.supxlabel("gain in utilization, points", fontsize=8)
    return drawn


def _gain(cells: pd.DataFrame, of: str, over: str) -> pd.DataFrame:
    """Gain in points by source: `mean` and `half`."""
    wide = cells.pivot_table(index=["source", "repetition"], columns="mechanism", values="utilization", sort=False)
    gain = (100 * (wide[of] - wide[over])).rename("gain").reset_index()
    return ordered(gain, "source", "gain", dict.fromkeys(cells["source"]))


def _text(source: str) -> str:
    options = dict(pair.split("=") for pair in source.partition("?")[2].split("&"))
    disks = ", split disks" if "split_disk" in options else ""
    return f"{options['vms']} / {options['servers']}{disks}"
