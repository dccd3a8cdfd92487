"""How large violations of alphaPF-VDS are, by alpha: docs/violations.csv and docs/violations.png.

    python tools/violations.py            # what is missing in the table is searched, row by row; then the figure
    python tools/violations.py --draw     # the figure alone

A row is the largest violation that a search with much climbing found and that was verified: a lower bound on the
largest there is, among clusters of small whole numbers without task counts.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # of this checkout, whatever is installed

from fairopt import AlphaPFVDS, properties  # noqa: E402
from fairopt.properties._search import Scope, SearchOptions, _Hunt  # noqa: E402
from fairopt.properties._tasks import Instance  # noqa: E402
from fairopt.properties._verify import MARGIN, violated  # noqa: E402

TABLE, PICTURE = ROOT / "docs" / "violations.csv", ROOT / "docs" / "violations.png"
ALPHAS = (0.3, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0)
#: More of it climbs, and from more places, than in a search for any violation.
OPTIONS = SearchOptions(elite=24, climbing=0.7)
TRIALS, SEED = 1250, 1


@dataclass(frozen=True)
class Line:
    """What a curve is about."""

    property: str
    conditions: tuple[str, ...]
    label: str
    colour: str
    marker: str


LIES = (
    Line("strategy-proofness", ("no task counts", "one server"), "one server", "#0072b2", "o"),
    Line("strategy-proofness", ("no task counts",), "several servers", "#d55e00", "s"),
)
OTHERS = (
    Line("pareto-optimality", ("no task counts",), "Pareto", "#0072b2", "o"),
    Line("population-monotonicity", ("no task counts",), "population monotonicity", "#009e73", "^"),
    Line("sharing-incentive", ("no task counts",), "sharing incentive", "#d55e00", "s"),
    Line("envy-freeness", ("no task counts",), "envy-freeness", "#cc79a7", "v"),
)


def largest(line: Line, alpha: float, start: list[Instance]) -> tuple[float, list[Instance]]:
    """The largest violation found and verified, 0 for none, and the instances it climbed from last.

    `start` are those of the alpha before, which this one climbs from as well.
    """
    mechanism, prop = AlphaPFVDS(alpha), properties.get(line.property)
    rng = np.random.default_rng([SEED, zlib.crc32(f"{line}{alpha}".encode())])
    hunt = _Hunt(mechanism, prop, Scope(mechanism, prop, line.conditions), OPTIONS, rng)
    some = [one for one in start if one in hunt.scope]
    hunt.elite = [(loss, one) for loss, one in zip(hunt.losses(some), some, strict=True) if loss > -1]
    while hunt.trials < TRIALS:
        hunt.batch(OPTIONS.batch, OPTIONS.climbing)
    last = [one for _, one in hunt.elite]
    for loss, instance in hunt.elite:
        if loss > MARGIN and (found := violated(mechanism, line.property, instance)) is not None:
            return float(found.violation[0]), last
    return 0.0, last


def compute() -> None:
    """Rows that are missing, each written when it is there."""
    made = read()
    for line in (*LIES, *OTHERS):
        start: list[Instance] = []
        for alpha in ALPHAS:
            at = (line.property, ", ".join(line.conditions), alpha)
            if at not in set(made[["property", "conditions", "alpha"]].itertuples(index=False, name=None)):
                loss, start = largest(line, alpha, start)
                row = dict(zip(("property", "conditions", "alpha"), at, strict=True))
                row |= {"violation": round(loss, 6), "trials": TRIALS, "seed": SEED}
                made = pd.concat([made, pd.DataFrame([row])], ignore_index=True)
                made.to_csv(TABLE, index=False, lineterminator="\n")
                sys.stdout.write(f"{at}: {row['violation']:.4f}\n")
                sys.stdout.flush()


def read() -> pd.DataFrame:
    """The table, perhaps empty."""
    columns = ["property", "conditions", "alpha", "violation", "trials", "seed"]
    return pd.read_csv(TABLE) if TABLE.exists() else pd.DataFrame(columns=columns)


def draw() -> Figure:
    """Gains from lies, and other violations, against alpha."""
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    made = read()
    for axes, lines in ((left, LIES), (right, OTHERS)):
        for line in lines:
            some = made[(made["property"] == line.property) & (made["conditions"] == ", ".join(line.conditions))]
            some = some.sort_values("alpha")
            value = some["violation"] / (1 - some["violation"]) if axes is left else some["violation"]
            axes.plot(some["alpha"], value, color=line.colour, marker=line.marker, markersize=4, label=line.label)
        axes.set_xscale("log")
        axes.set_xticks([0.3, 1, 4, 16], ["0.3", "1", "4", "16"])
        axes.set_xlabel("alpha")
        axes.grid(linewidth=0.4, alpha=0.6)
        axes.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    left.set_yscale("log")
    left.set_title("largest gain from a lie found, in parts of the tasks", fontsize="small")
    right.set_title("largest violation found, in parts of what is due", fontsize="small")
    right.set_ylim(-0.03, 1)
    return figure


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--draw", action="store_true", help="compute nothing")
    if not options.parse_args().draw:
        compute()
    draw().savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()
