"""How often the selections of `AlphaPFVDS(select=...)` differ: on random and hunted clusters, in folds, on traces.

    python tools/selections.py --count 2000              # draws per family; appends to results/selections.csv
    python tools/selections.py --traces DIR --count 0    # parts of Bitbrains, Google and Alibaba below DIR
    python tools/selections.py --print                   # the tables of what there is
    python tools/selections.py --enumerate               # are the equilibria inside of its folds all on the curve?

The curve of equilibria of every draw is followed from alpha = 1 to 64 and to 0.1. Each of its jumps is a fold; just
inside of it (0.1% before alpha) there are several equilibria, and all selections are asked there. They are asked at one
random alpha of every draw as well. It may be interrupted and goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tests")]  # of this checkout, whatever is installed

from snapshots import SNAPSHOTS, alibaba, missing  # noqa: E402

import fairopt as fo  # noqa: E402
from fairopt.errors import FairoptError  # noqa: E402
from fairopt.game.curve.curve import Curve, follow  # noqa: E402
from fairopt.game.selection import SELECTIONS  # noqa: E402
from fairopt.model.merging import merge  # noqa: E402
from fairopt.model.problem import Problem  # noqa: E402
from fairopt.workloads import trace_folder  # noqa: E402

Array = NDArray[np.float64]
KEYS = ["family", "seed"]
FIELDS = [*KEYS, "where", "alpha", "equilibria", "apart", "select", "crossing", "index", "off", "seconds"]
#: Ends of the curves, and how far inside of a fold selections are asked.
ENDS, INSIDE = (0.1, 64.0), 1e-3
#: Three equilibria at alpha = 3.
HUNTED = fo.Cluster([[20, 11, 2], [3, 9, 4]], [[1, 9, 8], [3, 8, 1], [16, 8, 1]], weight=[2, 1, 2])
#: Tasks that differ by less than this part are the same.
SAME = 1e-6


def integers(shape: tuple[int, int, int], rng: np.random.Generator) -> fo.Cluster:
    """Small whole numbers and weights of 1 or 2."""
    users, servers, resources = shape
    capacity, demand = rng.integers(1, 21, (servers, resources)), rng.integers(1, 13, (users, resources))
    return fo.Cluster(capacity.astype(float), demand.astype(float), weight=rng.integers(1, 3, users).astype(float))


def lognormal(shape: tuple[int, int, int], rng: np.random.Generator) -> fo.Cluster:
    """No two servers or users alike."""
    users, servers, resources = shape
    return fo.Cluster(rng.lognormal(2, 1, (servers, resources)), rng.lognormal(0, 1, (users, resources)))


SHAPES = ((2, 2, 2), (3, 2, 2), (3, 2, 3), (4, 3, 3), (5, 3, 3))
FAMILIES = {
    f"{draw.__name__} {'x'.join(map(str, shape))}": (draw, shape) for draw in (integers, lognormal) for shape in SHAPES
}


def clusters(count: int) -> Iterator[tuple[str, int, fo.Cluster]]:
    """Draws, family after family in turn."""
    for seed in range(count):
        for name, (draw, shape) in FAMILIES.items():
            yield name, seed, draw(shape, np.random.default_rng([seed, *shape]))


def rows(name: str, seed: int, cluster: fo.Cluster) -> Iterator[dict[str, Any]]:
    """What selections say at a random alpha and inside of every fold."""
    cluster = merge(cluster).cluster
    problem = Problem(cluster, fo.AlphaPFVDS(2.0).criterion(cluster))
    if not len(problem.polytope.users):
        return  # of the chosen users of a trace none can run on the chosen servers
    alpha = float(np.exp(np.random.default_rng(seed).uniform(*np.log(ENDS))))
    for end in ENDS:
        mine = [alpha] if (alpha > 1) == (end > 1) else []
        curve = follow(problem, [*mine, end])
        if mine:
            yield from asked(name, seed, cluster, curve, "random", alpha)
        if not curve.arrived:
            yield {"family": name, "seed": seed, "where": "lost", "alpha": curve.alpha, "select": curve.reason}
        for jump in curve.jumps:
            if farthest(jump.after, jump.before) < 1e-4:
                continue
            inside = jump.alpha * (1 - INSIDE) if end > 1 else jump.alpha * (1 + INSIDE)
            yield from asked(name, seed, cluster, follow(problem, [inside, end]), "fold", inside)


def asked(
    name: str, seed: int, cluster: fo.Cluster, curve: Curve, where: str, alpha: float
) -> Iterator[dict[str, Any]]:
    """A row for each selection at one alpha."""
    known = curve.at(alpha)
    if not known:
        return
    first = known[0].user_tasks
    apart = max(farthest(one.user_tasks, first) for one in known)
    for select in SELECTIONS:
        begun = time.process_time()
        try:
            tasks = fo.AlphaPFVDS(alpha, select).solve(cluster).user_tasks
        except FairoptError as error:
            yield {
                "family": name,
                "seed": seed,
                "where": where,
                "alpha": alpha,
                "select": select,
                "crossing": repr(error),
            }
            continue
        seconds = time.process_time() - begun
        off = [farthest(tasks, one.user_tasks) for one in known]
        at = int(np.argmin(off))
        place = "unknown" if off[at] > SAME else "first" if at == 0 else "last" if at == len(known) - 1 else "middle"
        yield {
            "family": name, "seed": seed, "where": where, "alpha": alpha, "equilibria": len(known), "apart": apart,
            "select": select, "crossing": place, "index": known[at].index, "off": off[0], "seconds": seconds,
        }  # fmt: skip


def farthest(tasks: Array, other: Array) -> float:
    """The largest difference of logarithms, users who can run nothing left out."""
    runs = (tasks > 0) | (other > 0)
    return float(np.abs(np.log(tasks[runs] / other[runs])).max(initial=0.0))


def table(found: pd.DataFrame) -> str:
    """Tables in Markdown: draws and folds by family, and what selections chose inside of folds and at random alphas."""
    draws = found.groupby("family")["seed"].nunique().rename("draws")
    folds = found[(found["where"] == "fold") & (found["equilibria"] > 1)]
    some = folds.groupby("family")["seed"].nunique().rename("with folds").reindex(draws.index, fill_value=0)
    lost = found[found["where"] == "lost"].groupby("family")["seed"].nunique().reindex(draws.index, fill_value=0)
    random = found[(found["where"] == "random") & (found["select"] != "curve")]
    differ = (random["off"] > SAME).groupby(random["family"]).sum().rename("answers that differ at a random alpha")
    parts = [pd.concat([draws, some, lost.rename("curve lost"), differ.astype(int)], axis=1).to_markdown()]
    for where, part in (("inside of folds", folds), ("at random alphas", found[found["where"] == "random"])):
        counts = pd.crosstab(part["select"], part["crossing"]) if len(part) else pd.DataFrame()
        parts.append(f"{where}\n\n{counts.to_markdown()}")
    return "\n\n".join(parts)


def snapshots(folder: Path, count: int) -> Iterator[tuple[str, int, fo.Cluster]]:
    """Small parts of traces: up to five users on up to three types of servers."""
    for name, draw in (SNAPSHOTS | {"alibaba": alibaba}).items():
        if (own := trace_folder(name, folder)) is None:
            sys.stderr.write(f"{missing(name, folder)}\n")
            continue
        for seed in range(count):
            rng = np.random.default_rng(seed)
            yield f"parts of {name}, 5x3", seed, fewer(draw(rng, (5, 3), own), 3, rng)


def fewer(cluster: fo.Cluster, most: int, rng: np.random.Generator) -> fo.Cluster:
    """At most so many of its servers, so that the curve is short enough for `solve` to follow."""
    if len(cluster.servers) <= most:
        return cluster
    chosen = np.sort(rng.choice(len(cluster.servers), most, replace=False))
    return cluster.replace(
        capacity=cluster.capacity[chosen],
        eligible=cluster.eligible[:, chosen],
        servers=[cluster.servers[i] for i in chosen],
    )


def hunted(count: int) -> Iterator[tuple[str, int, fo.Cluster]]:
    """Clusters near one that has three equilibria at alpha = 3 (docs/equilibria.md): capacities changed by 2%."""
    for seed in range(count):
        off = np.random.default_rng(seed).normal(0, 0.02, HUNTED.capacity.shape)
        yield "hunted, 3x2x3", seed, HUNTED.replace(capacity=HUNTED.capacity * np.exp(off))


def enumerated(found: pd.DataFrame) -> str:
    """Inside of every fold of drawn clusters: are all equilibria enumerated, and are they those of the curve?"""
    folds = found[(found["where"] == "fold") & (found["equilibria"] > 1) & found["family"].isin(list(FAMILIES))]
    lines = []
    for (name, seed, alpha), own in folds.groupby(["family", "seed", "alpha"]):
        draw, shape = FAMILIES[name]
        known = fo.game.equilibria(draw(shape, np.random.default_rng([seed, *shape])), alpha, rng=0)
        same = len(known) == int(own["equilibria"].iloc[0])
        same &= abs(float(np.ptp(np.log(known.user_tasks), axis=0).max()) / own["apart"].iloc[0] - 1) < 0.5
        lines.append({"complete": known.complete, "as many as on the curve, as far apart": same})
        if not (same and known.complete):
            sys.stderr.write(f"{name} {seed} at {alpha}: {known.indices}, complete: {known.complete}\n")
    return str(pd.DataFrame(lines).value_counts().to_frame("folds").reset_index().to_markdown(index=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--snapshots", type=int, default=50, help="draws from each trace")
    parser.add_argument("--hunted", type=int, default=100, help="clusters near one with three equilibria")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "selections.csv")
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--enumerate", action="store_true")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done: set[tuple[str, int]] = set()
    if options.out.exists():
        kept = pd.read_csv(options.out)
        done = set(zip(kept["family"], kept["seed"], strict=True))
    if options.enumerate:
        sys.stdout.write(enumerated(pd.read_csv(options.out)) + "\n")
        return
    if not options.print:
        every = [*clusters(options.count), *hunted(options.hunted)]
        every += snapshots(options.traces, options.snapshots) if options.traces else []
        with options.out.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, FIELDS)
            if not done and file.tell() == 0:
                writer.writeheader()
            for name, seed, cluster in tqdm(every, unit="cluster"):
                if (name, seed) not in done:
                    writer.writerows(rows(name, seed, cluster))
                    file.flush()
    sys.stdout.write(table(pd.read_csv(options.out)) + "\n")


if __name__ == "__main__":
    main()
