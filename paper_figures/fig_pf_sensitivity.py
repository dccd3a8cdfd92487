"""Sensitivity of PF section 6 to sizes that it does not state: gains in utilization by size."""

from __future__ import annotations

from matplotlib.figure import Figure

from fairopt.report import Results

from .style import DOUBLE, NARROW, line, new, ordered

NEEDS = ("pf_sensitivity",)
CAPTION = (
    "What PS-DSF gains over DRFH and TSF, and alpha = 1 and 3 over PS-DSF, in points of utilization (mean over "
    "resources), for every choice of the sizes that PF section 6 leaves out; means with 95% intervals, all on one "
    "scale. Sizes decide how large a gain is, not its sign."
)
_PAIRS = (
    ("ps-dsf", "drfh", "PS-DSF over DRFH"),
    ("ps-dsf", "tsf", "PS-DSF over TSF"),
    ("alphapf-vds(alpha=1.0)", "ps-dsf", "α = 1 over PS-DSF"),
    ("alphapf-vds(alpha=3.0)", "ps-dsf", "α = 3 over PS-DSF"),
)


def figure(results: Results, width: float = DOUBLE) -> Figure:
    """Gains in mean utilization on the same clusters in percentage points, with 95% confidence intervals."""
    cells = results.of("pf_sensitivity").cells
    wide = cells.pivot_table(index=["source", "repetition"], columns="mechanism", values="utilization", sort=False)
    sources = list(dict.fromkeys(cells["source"]))
    rows = 1 if width >= NARROW else 2
    drawn, table = new(width, rows * (0.8 + 0.24 * len(sources)), rows, len(_PAIRS) // rows, sharey=True, sharex=True)
    for k, (axes, (of, over, title)) in enumerate(zip(table.flat, _PAIRS, strict=True)):
        gain = (100 * (wide[of] - wide[over])).rename("gain").reset_index()
        found = ordered(gain, "source", "gain", sources)
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


def _text(source: str) -> str:
    options = dict(pair.split("=") for pair in source.partition("?")[2].split("&"))
    disks = ", split disks" if "split_disk" in options else ""
    return f"{options['vms']} / {options['servers']}{disks}"
