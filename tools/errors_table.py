"""Errors of certified allocations against proved ones, by mechanism and family, at tolerances 1e-6 and 1e-9.

    python tools/errors_table.py --count 30                       # quick: up to 8 x 8, into results/errors-small.csv
    python tools/errors_table.py --size large --count 30          # up to 60 x 25
    python tools/errors_table.py --traces DIR                     # with snapshots of Bitbrains and Google
    python tools/errors_table.py --count 0                        # the table of what there is, and what misses a goal

Every cluster is solved with `throw=True`. The error is the largest relative error of a user's tasks, against
`tests/reference` (finite alpha; for the game the equilibrium that is reached from the allocation) or against exact
rational solutions (DRFH, TSF). An interrupted run continues where it stopped. `unproved` counts allocations without a
reference, about which nothing is known.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the modules of this checkout take precedence over installed ones

from apart import apart  # noqa: E402
from families import FAMILIES, draw  # noqa: E402
from reference import reference  # noqa: E402

import fairopt as fo  # noqa: E402
from fairopt.certificates import rational  # noqa: E402
from fairopt.errors import FairoptError  # noqa: E402
from fairopt.model._arrays import Array  # noqa: E402
from fairopt.workloads import open_source, trace_folder, traces_root  # noqa: E402

SIZES = {"small": (8, 8), "large": (60, 25)}
#: Snapshots of traces; those of Google at one instant, a third with task limits, on all machines or on a hundred.
SNAPSHOTS = {
    "bitbrains": "bitbrains?vms={users}&servers={servers}",
    "google2011": "google2011?users={users}&at={at}&max_tasks={limited}{machines}",
}
MECHANISMS = {
    str(one): one
    for one in (
        *map(fo.AlphaFair, (0.5, 2.0, 7.0, 50.0)),
        fo.CEEI(scope="servers"),
        *map(fo.AlphaPFVDS, (0.3, 0.5, 2.0, 5.0, 20.0)),
        fo.DRFH(),
        fo.TSF(),
    )
}
TOLERANCES = (1e-6, 1e-9)
GOALS = "Goals: error/(e cond) at most 10, none off, near ties apart at most .1% refused at 1e-6 and 1% at 1e-9."
KEYS = ["mechanism", "family", "seed", "tol"]
FIELDS = [*KEYS, "status", "error", "e", "condition"]
#: CPU seconds of an exact solution, since growing fractions may take hours.
PATIENCE = 30.0
#: Smallest certificate, at the level of rounding.
FLOOR = 1e-15


@lru_cache(maxsize=4)
def snapshot(family: str, seed: int, most: tuple[int, int], traces: Path | None) -> fo.Cluster:
    """Snapshot `seed` of a trace, of at most `most` users and servers (Google's machines: of ten kinds)."""
    rng = np.random.default_rng([seed, *family.encode()])
    users, servers = (int(rng.integers(2, number + 1)) for number in most)
    at, limited, machines = 1000 * rng.integers(6), rng.random() < 1 / 3, rng.choice(["", "&servers=100"])
    source = SNAPSHOTS[family].format(users=users, servers=servers, at=at, limited=limited, machines=machines)
    return fo.merge(open_source(source, traces=traces, rng=rng).cluster).cluster


def exact_tasks(name: str, found: fo.Allocation, hint: bool = True) -> Array | None:
    """Tasks (users,) of the exact solution near `found`; None without a proof.

    `hint` are prices of `found` at which the search starts, and which select the equilibrium if several are close;
    prices of the certificate may lead to another.
    """
    mechanism, cluster = MECHANISMS[name], found.cluster
    criterion = mechanism.criterion(cluster)
    kind, prices = "game" if criterion.scope == "game" else "global", found.log_prices
    if prices is None or not hint:
        prices = mechanism.certify(cluster, found.tasks)[1]  # prices of the certificate

    def exact() -> list[float] | None:
        if np.isinf(criterion.alpha):
            best = rational.leximin(cluster, criterion, criterion.limits(cluster), part=5.0)
            return best and best.tasks.sum(axis=1).astype(float).tolist()
        # Logarithmic prices of whole capacities select the active constraints; the resulting solution is proved.
        full = prices + np.log(np.where(cluster.capacity > 0, cluster.capacity, 1.0))
        near = reference(cluster, criterion.alpha, kind, found.tasks, full)
        return near and near.user_tasks.tolist()

    tasks = apart(exact, PATIENCE)
    return np.array(tasks) if isinstance(tasks, list) else None


def off(tasks: Array, proved: list[Array]) -> float:
    """Largest relative error of a user's tasks, against the nearest exact solution."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return min(float(np.where(tasks == exact, 0.0, abs(tasks - exact) / exact).max()) for exact in proved)


def scale(e: Any, condition: Any) -> Any:
    """Unit of errors: certificate times condition number, if there is one."""
    return np.fmax(e, FLOOR) * np.fmax(condition, 1.0)


def rows(name: str, family: str, seed: int, size: str, traces: Path | None = None) -> list[dict[str, object]]:
    """Errors at each tolerance; the reference is computed once, and in the game again if it is far off."""
    cluster = draw(family, seed, *SIZES[size]) if family in FAMILIES else snapshot(family, seed, SIZES[size], traces)
    found: list[dict[str, object]] = []
    game = "PF" in name
    answers: list[tuple[dict[str, object], Array]] = []
    proved: list[Array] = []
    for tol in TOLERANCES:
        row: dict[str, object] = {"mechanism": name, "family": family, "seed": seed, "tol": tol, "status": "unproved"}
        found.append(row)
        try:
            answer = MECHANISMS[name].solve(cluster, tol=tol)
        except FairoptError as error:
            row["status"] = type(error).__name__
            continue
        row |= {"e": answer.certificate.residual, "condition": answer.certificate.condition}
        for hint in (True, False)[: 1 + game]:
            bound = scale(row["e"], row["condition"])
            if not proved or (game and off(answer.arrays.user_tasks, proved) > bound):
                exact = exact_tasks(name, answer, hint)
                proved += [] if exact is None else [exact]
        answers.append((row, answer.arrays.user_tasks))
    # The exact solution near one allocation also serves for another.
    for row, tasks in answers if proved else ():
        row |= {"status": "solved", "error": off(tasks, proved)}
    return found


def assessed(kept: pd.DataFrame) -> pd.DataFrame:
    """Append `over`, error by e times condition; `wrong`, errors above 1e-5 at good condition; and `refused`."""
    solved, unproved = kept.status == "solved", kept.status == "unproved"
    over = (kept.error / scale(kept.e, kept.condition)).where(solved)
    wrong = solved & (kept.error > 1e-5) & ~(kept.condition >= 100)
    return kept.assign(over=over, wrong=wrong, unproved=unproved, refused=~solved & ~unproved)


def table(kept: pd.DataFrame, by: list[str]) -> str:
    """Worst case of each group, with the fractions refused and unproved."""
    columns = {"solves": ("seed", "size"), "error": ("error", "max"), "error/(e cond)": ("over", "max")}
    columns |= {"off > 1e-5": ("wrong", "sum")} | {name: (name, "mean") for name in ("refused", "unproved")}
    return kept.groupby(by, sort=False).agg(**columns).reset_index().to_markdown(index=False, floatfmt=".2g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="clusters a cell")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--only", default="", metavar="REGEX", help="cells whose MECHANISM/FAMILY has this")
    parser.add_argument("--traces", type=Path, help="the folder of the traces; default: FAIROPT_TRACES")
    asked = parser.parse_args()
    path = ROOT / "results" / f"errors-{asked.size}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        pd.DataFrame(columns=FIELDS).to_csv(path, index=False)
    traces = traces_root(asked.traces)
    absent = [family for family in SNAPSHOTS if trace_folder(family, traces) is None]
    if absent and asked.count:
        sys.stderr.write(f"skipped {', '.join(absent)}: no such trace (name their folder by --traces)\n")
    there = pd.read_csv(path)
    # A cluster is complete when the row of its last tolerance is written.
    last = there[there.tol == TOLERANCES[-1]]
    done = {*zip(last.mechanism, last.family, last.seed, strict=True)}
    families = [*FAMILIES, *SNAPSHOTS]
    cells = [(m, f, s) for s, f, m in product(range(asked.count), families, MECHANISMS)
             if f not in absent and re.search(asked.only, f"{m}/{f}") and (m, f, s) not in done]  # fmt: skip
    for name, family, seed in tqdm(cells, mininterval=10):
        made = pd.DataFrame(rows(name, family, seed, asked.size, traces), columns=there.columns)
        made.to_csv(path, mode="a", header=False, index=False)
    kept = assessed(pd.read_csv(path).drop_duplicates(KEYS, keep="last"))
    ties = np.where(kept.family == "near-ties", "near ties", "all others")
    whole = table(kept.assign(families=ties), ["tol", "families"])
    sys.stdout.write(f"{table(kept, ['family', 'mechanism', 'tol'])}\n\n{whole}\n{GOALS}\n")
    missed = kept[(kept.over > 10) | kept.wrong | kept.refused]
    if len(missed):
        shown = missed[[*KEYS, "status", "error", "e", "condition", "over"]]
        sys.stdout.write(f"\n{shown.to_markdown(index=False, floatfmt='.1e')}\n")


if __name__ == "__main__":
    main()
