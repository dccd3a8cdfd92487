"""What the papers' experiments with whole tasks gave here: the table of docs/simulation.md, from stored cells.

    python tools/simulation_results.py --store DIR     # rewrite the table between its marks

The cells: `fairopt sweep drf_dynamic drf_policies drfh_dynamic drfh_slots drfh_day`, with the traces.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from fairopt.report import Results, StoredCells, interval

PAGE = Path(__file__).resolve().parent.parent / "docs" / "simulation.md"
BEGIN, END = "<!-- results -->\n", "<!-- /results -->"
BINS, SIZES = (1, 2, 11, 101, 501, np.inf), ("1", "2-10", "11-100", "101-500", "> 500")
SLOTS = "slots"
#: What figures 6 to 8 of DRFH show.
_WHAT = (
    "sooner than slots, by tasks of the job", "users with all done under Best-Fit only",
    "users who do less than in a cloud of their own",
)  # fmt: skip


def drf_dynamic(results: Results) -> list[tuple[str, str, str]]:
    """DRF 7.1: dominant shares after a first wave."""
    shares = results.of("drf_dynamic").long("shares")
    late = shares[shares["time"] >= 30].groupby(["workload", "policy", "user"])["share"].mean()
    rows = []
    said = {"phase1": "about 70%, 75%", "phase2": "equal", "phase3": "nearly equal"}
    for phase, printed in said.items():
        parts = [
            f"{name} {100 * late[phase, text, 'job 1']:.1f}, {100 * late[phase, text, 'job 2']:.1f}"
            for name, text in (("skip", "first-fit-drfh"), ("strict", "first-fit-drfh(strict=True)"),
                               ("Best-Fit, skip", "best-fit-drfh"))
        ]  # fmt: skip
        rows.append((f"DRF 7.1, {phase[:-1]} {phase[-1]}: dominant shares", printed, "; ".join(parts) + " %"))
    return rows


def drf_policies(results: Results) -> list[tuple[str, str, str]]:
    """DRF 7.2: jobs done in ten minutes."""
    jobs = results.of("drf_policies").long("each_job")
    jobs = jobs.assign(kind=jobs["user"].str.partition(" ")[0], done=jobs["response"].notna())
    by = ["workload", "thrashing", "policy", "kind"]
    each = jobs.groupby([*by, "repetition"], sort=False)
    done = each["done"].sum().groupby(level=by, sort=False).mean()
    took = each["response"].mean().groupby(level=by, sort=False).mean()
    rows = []
    for loop, order in (("loop", "a job after the other"), ("queued", "all jobs at once")):
        for factor, words in ((5.0, "short tasks five times slower"), (1.0, "nothing slower")):
            part, seconds = done[loop, factor], took[loop, factor]
            texts = {text: text.replace(", whole=False", "") for text in part.index.unique("policy")}
            parts = [f"{name} {part[text, 'small']:.1f} and {part[text, 'large']:.1f}" for text, name in texts.items()]
            rows.append((f"DRF 7.2, {order}, {words}: small and large jobs", "DRF most of both", "; ".join(parts)))
            if loop == "loop":
                parts = [f"{name} {seconds[text, 'small']:.0f} and {seconds[text, 'large']:.0f}"
                         for text, name in texts.items()]  # fmt: skip
                rows.append((f"DRF 7.2, {order}, {words}: seconds a job", "DRF least", "; ".join(parts)))
    return rows


def drfh_dynamic(results: Results) -> list[tuple[str, str, str]]:
    """DRFH, figure 4."""
    shares = results.of("drfh_dynamic").long("shares")
    some = shares[(shares["workload"] == "likely") & (shares["policy"] == "best-fit-drfh")]

    def at(begin: float, end: float) -> str:
        inside = some[(some["time"] > begin + 40) & (some["time"] < end) & (some["share"] > 0)]
        mean = inside.groupby("user")["share"].mean()
        return ", ".join(f"{100 * value:.1f}" for value in mean)

    said = (("one user", "62%", 0, 200), ("two", "44%", 200, 500), ("three", "26%", 500, 1080))
    return [(f"DRFH figure 4, {who}: dominant shares", printed, f"{at(a, b)} %") for who, printed, a, b in said]


def drfh_slots(results: Results) -> list[tuple[str, str, str]]:
    """DRFH, table II: CPU and memory."""
    use = results.of("drfh_slots").long("use")
    found = interval(use, ["source", "policy", "resource"], "utilization").set_index(["source", "policy", "resource"])
    rows = []
    for source in sorted(use["source"].unique()):
        mean = 100 * found.loc[source]["mean"]
        parts = [f"{text if text != SLOTS else 'slots(n=14)'} {mean[text, 'cpu']:.1f} {mean[text, 'memory']:.1f}"
                 for text in mean.index.unique("policy")]  # fmt: skip
        load = source.rpartition("load=")[2]
        printed = "35.1 23.4, 42.2 27.4, 43.9 28.0, 45.4 24.2, 40.6 20.0"
        rows.append((f"DRFH table II, load {float(load):g}: CPU and memory in use, %", printed, "; ".join(parts)))
    return rows


def drfh_day(results: Results) -> list[tuple[str, str, str]]:
    """DRFH, figures 5 to 8."""
    found = results.of("drfh_day")
    rows = []
    for source, words in _sources(found):
        cells = found.cells[found.cells["source"] == source][["key"]]
        times = found.long("timeline").merge(cells, on="key")
        use = times[times["what"].isin(["use_cpu", "use_memory"])].pivot_table(
            index=["repetition", "time", "what"], columns="policy", values="value"
        )
        both = (use["best-fit-drfh"] >= use["first-fit-drfh"] - 1e-9).groupby(level=["repetition", "time"]).all()
        above = (use["best-fit-drfh"] > use["first-fit-drfh"] + 1e-9).groupby(level=["repetition", "time"]).all()
        text = f"{100 * above.mean():.0f}% of the time on both resources; {100 * both.mean():.0f}% below on neither"
        rows.append((f"DRFH figure 5, {words}: Best-Fit above First-Fit", "always", text))
        six, seven, eight = (f"DRFH figure {k}, {words}: {what}" for k, what in enumerate(_WHAT, 6))
        rows.append((six, "0 for small, most for large", _sooner(found, cells)))
        rows.append((seven, "about 20%", _only(found, cells)))
        of_source = found.cells[found.cells["source"] == source]
        if of_source["policy"].str.startswith("dedicated").any():
            rows.append((eight, "2%, slightly", _worse(found, cells)))
    return rows


def _sources(found: StoredCells) -> list[tuple[str, str]]:
    names = []
    for source in found.cells["source"].unique():
        load = source.rpartition("load=")[2]
        words = (
            f"day at load {float(load):g}" if "load=" in source else f"sample, durations {source.rpartition('=')[2]}"
        )
        names.append((source, words))
    return names


def _sooner(found: StoredCells, cells: pd.DataFrame) -> str:
    jobs = found.long("each_job").merge(cells, on="key")
    size = pd.cut(jobs["tasks"], BINS, right=False, labels=SIZES)
    wide = jobs.assign(size=size).pivot_table(
        index=["repetition", "size", "job"], columns="policy", values="response", observed=True
    )
    wide = wide[["best-fit-drfh", SLOTS]].dropna()
    means = wide.groupby(level="size", observed=False).mean()
    gain = 100 * (1 - means["best-fit-drfh"] / means[SLOTS])
    return ", ".join(f"{name}: {value:.0f}%" for name, value in gain.items() if np.isfinite(value))


def _users(found: StoredCells, cells: pd.DataFrame) -> pd.DataFrame:
    users = found.long("each_user").merge(cells, on="key")
    users["part"] = users["tasks_done"] / users["tasks"]
    wide: pd.DataFrame = users.pivot_table(index=["repetition", "user"], columns="policy", values="part")
    return wide


def _only(found: StoredCells, cells: pd.DataFrame) -> str:
    part = _users(found, cells)
    only = (part["best-fit-drfh"] >= 1) & (part[SLOTS] < 1)
    other = (part["best-fit-drfh"] < 1) & (part[SLOTS] >= 1)
    return f"{100 * only.mean():.1f}%; under slots only {100 * other.mean():.1f}%"


def _worse(found: StoredCells, cells: pd.DataFrame) -> str:
    part = _users(found, cells).dropna(subset=["dedicated:best-fit-drfh"])
    shared, alone = part["best-fit-drfh"], part["dedicated:best-fit-drfh"]
    worse = shared < alone - 1e-12
    lost = (1 - shared[worse] / alone[worse]).max() if worse.any() else 0.0
    return f"{100 * worse.mean():.1f}%, at most {100 * lost:.0f}% fewer; {100 * (shared > alone).mean():.0f}% do more"


#: Who makes rows, and how these begin.
_MAKERS = {
    drf_dynamic: ("DRF 7.1",), drf_policies: ("DRF 7.2",), drfh_dynamic: ("DRFH figure 4",),
    drfh_slots: ("DRFH table II",), drfh_day: tuple(f"DRFH figure {k}" for k in range(5, 9)),
}  # fmt: skip


def main() -> None:
    """Rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", type=Path, help="default: results/store")
    parser.add_argument("--accept-older", action="store_true", help="take what other code computed")
    parser.add_argument("--only", choices=[make.__name__ for make in _MAKERS], help="keep the rows of the others")
    given = parser.parse_args()
    results = Results(given.store, accept_older=given.accept_older)
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    stored, _, after = rest.partition(END)
    table = stored.splitlines(keepends=True)[2:]
    for make, begins in _MAKERS.items():
        if given.only in (None, make.__name__):
            old = [k for k, line in enumerate(table) if line.startswith(tuple(f"| {begin}" for begin in begins))]
            new = [f"| {' | '.join(row)} |\n" for row in make(results)]
            table[old[0] : old[-1] + 1] = new
    PAGE.write_text(f"{before}{BEGIN}| experiment | printed | here |\n|---|---|---|\n{''.join(table)}{END}{after}")


if __name__ == "__main__":
    main()
