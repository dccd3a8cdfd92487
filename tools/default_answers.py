"""Is what alphaPF-VDS answers by default the first equilibrium on its curve: on the papers' instances, in experiments.

    python tools/default_answers.py                                # appends to results/default-answers.csv
    python tools/default_answers.py --traces DIR --repetitions 3   # with the experiments that are drawn from traces
    python tools/default_answers.py --print                        # the table of what there is

By default an answer is what the engine comes to, of index +1; `curve` is the first on the curve from alpha = 1. `off`
is the largest change in a user's tasks, relative; `expected` is what both certificates allow, their errors times their
conditions. It may be interrupted and goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # of this checkout, whatever is installed

import fairopt as fo  # noqa: E402
from fairopt import papers  # noqa: E402
from fairopt.errors import DataError, FairoptError  # noqa: E402
from fairopt.sweeps import experiment, origin  # noqa: E402

ALPHAS = (0.3, 0.5, 0.9, 2.0, 3.0, 5.0, 8.0, 16.0, 64.0)
KEYS = ["of", "cluster", "repetition", "alpha"]
FIELDS = [*KEYS, "users", "servers", "off", "expected", "index", "note"]
#: What is no more than this is nothing, however small errors are.
ROUNDING = 1e-9
Asked = tuple[str, str, int, float, fo.Cluster]


def of_papers() -> Iterator[Asked]:
    """Every instance at every alpha."""
    for name in papers.instances():
        cluster = papers.instance(name)
        for alpha in ALPHAS:
            yield "papers", name, 0, alpha, cluster


def of_experiments(repetitions: int, most_users: int, traces: Path | None) -> Iterator[Asked]:
    """Every cluster of an experiment, at its own alphas; once for every alpha, whatever else varies."""
    known: set[tuple[object, ...]] = set()
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        plan = experiment.load(path)
        if plan.kind is not experiment.MECHANISMS:
            continue
        try:
            every = experiment.cells_of(plan, None if traces is None else str(traces))
        except DataError as error:
            sys.stderr.write(f"{path.name}: {error}\n")
            continue
        for cell in every:
            mechanism = cell.job.what.made
            alpha = getattr(mechanism, "alpha", np.inf)
            key = (cell.origin, cell.seed, cell.repetition, alpha)
            game = isinstance(mechanism, fo.AlphaPFVDS) and 0 < alpha < np.inf
            if not game or cell.repetition >= repetitions or key in known:
                continue
            known.add(key)
            try:
                cluster = origin.cluster(cell.origin, cell.seed, cell.repetition, traces and str(traces))[0]
            except DataError as error:
                sys.stderr.write(f"{cell.label}: {error}\n")
                continue
            if len(cluster.users) <= most_users:
                yield path.stem, cell.source, cell.repetition, float(alpha), cluster


def row(asked: Asked) -> dict[str, object]:
    """What there is to say of one cluster at one alpha."""
    of, name, repetition, alpha, cluster = asked
    users, servers, _ = cluster.shape
    found: dict[str, object] = dict(zip(FIELDS, (of, name, repetition, alpha, users, servers), strict=False))
    try:
        default, first = (fo.AlphaPFVDS(alpha, select).solve(cluster) for select in ("fast", "curve"))
    except FairoptError as error:
        return found | {"note": f"{type(error).__name__}: {error}"}
    mine, other = default.user_tasks, first.user_tasks
    runs = (mine > 0) | (other > 0)
    off = np.abs(mine[runs] - other[runs]) / np.maximum(mine[runs], other[runs])
    errors = (each.certificate.residual * max(each.certificate.condition, 1.0) for each in (default, first))
    return found | {
        "off": float(off.max(initial=0.0)),
        "expected": sum(errors) + ROUNDING,
        "index": default.index,
        "note": "; ".join(default.notes),
    }


def table(found: pd.DataFrame) -> str:
    """By paper or experiment: solves, how many changed by more than expected, and the largest changes."""
    changed = found["off"] > found["expected"]
    by = found.assign(changed=changed, failed=found["off"].isna(), large=found["off"].where(changed)).groupby("of")
    result = by.agg(
        clusters=("cluster", "nunique"),
        solves=("off", "size"),
        failed=("failed", "sum"),
        changed=("changed", "sum"),
        largest_change=("large", "max"),
        largest_of_all=("off", "max"),
    )
    for column in ("largest_change", "largest_of_all"):
        result[column] = result[column].map(lambda value: "" if np.isnan(value) else f"{value:.1e}")
    return str(result.reset_index().to_markdown(index=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--repetitions", type=int, default=3, help="of experiments, at most")
    parser.add_argument("--users", type=int, default=400, help="larger clusters are left out")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "default-answers.csv")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    if not options.print:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        known = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=FIELDS)
        done = set(zip(*(known[key] for key in KEYS), strict=True))
        with options.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            if not file.tell():
                writer.writeheader()
            every = [*of_papers(), *of_experiments(options.repetitions, options.users, options.traces)]
            for asked in tqdm(every, unit="solve"):
                if asked[:4] not in done:
                    writer.writerow(row(asked))
                    file.flush()
    sys.stdout.write(table(pd.read_csv(options.out)) + "\n")


if __name__ == "__main__":
    main()
