"""Benchmark of all engines on one corpus: solutions, certificates, seconds and memory, before and after a change.

    python tools/ruler.py run OLD          # about 4,000 problems, twenty minutes of one core; goes on where it was
    python tools/ruler.py compare OLD NEW  # what is certified, which answers moved, ratios of seconds
    python tools/ruler.py compare OLD OLD  # one run

Results are `results/ruler/NAME.*.jsonl`, one row per problem, with tasks of users in 12 digits. A problem is called
FAMILY/SIZE/SEED/MECHANISM, and solved in a separate process, whose memory is measured. Times are CPU seconds without
compilation; solves below half a second are repeated, and the minimum counts.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402 - threads are chosen first
import json  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402
import warnings  # noqa: E402
import zlib  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from functools import lru_cache  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from tqdm import tqdm  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the modules of this checkout take precedence over installed ones

import families  # noqa: E402
import made_up  # noqa: E402
from apart import apart, cost  # noqa: E402

import fairopt as fo  # noqa: E402
from benchmarks.families import FAMILIES as LARGER  # noqa: E402
from fairopt import papers, workloads  # noqa: E402
from fairopt.errors import FairoptError  # noqa: E402

#: Largest number of (user, server) pairs with condition numbers, and limit of CPU seconds.
CHEAP, LIMIT = 2_500, 12.0
#: Mechanisms for all alphas, and those solved on most clusters.
ALPHAS = [
    f"{name}(alpha={alpha:g})"
    for name in ("alphapf-vds", "alpha-fair")
    for alpha in (0.2, 0.5, 1, 3, 8, 16, 64, 200, 500, np.inf)
]
USUAL = [
    "drf",
    "drfh",
    "tsf",
    "asset-fairness(scope=servers)",
    "task-maxmin",
    "cmmf",
    "ceei(scope=servers)",
    "alpha-fair(alpha=0.5)",
    "alpha-fair(alpha=3)",
    "alpha-fair(alpha=50)",
    "alphapf-vds(alpha=0.5)",
    "alphapf-vds(alpha=1)",
    "alphapf-vds(alpha=3)",
    "alphapf-vds(alpha=8)",
    "ps-dsf",
    "bottleneck-fairness",
    "concave-utility",
]
MECHANISMS = {spec: fo.mechanisms.one(spec) for spec in [*USUAL, *ALPHAS, "utilitarian"]}
#: Mechanisms of which each cluster is solved with one.
EITHER = ("bottleneck-fairness", "concave-utility")
#: Mechanisms at 200 x 2,000 and for as many servers as users, where the others take minutes.
FEW = ("drfh", "ceei(scope=servers)", "alpha-fair(alpha=3)", "alphapf-vds(alpha=3)", "ps-dsf")
#: Mechanisms of families, by the beginning of their names.
ALONE = {"pinned": ("drfh", "tsf"), "far-larger": ("utilitarian",), "every-alpha": ALPHAS, "as-many": FEW,
         "tied-dense": ("alpha-fair(alpha=16)", "alpha-fair(alpha=64)")}  # fmt: skip
#: Clusters by family, users, servers (for `tests/families.py` upper bounds), count, and source.
SOURCES = [
    *(
        f"{family} {size} drawn"
        for size in ("3 2 2", "8 5 5", "20 10 3", "60 25 1")
        for family in (*families.FAMILIES, *families.STYLES)
    ),
    *(f"larger-{family} {size} larger" for size in ("60 25 1", "200 50 1") for family in LARGER),
    *"""\
larger-lognormal 1000 200 1 larger
larger-zeros 1000 200 1 larger
three-servers 100 20 4 lognormal?users=100&servers=20&density=.15
three-servers 300 60 2 lognormal?users=300&servers=60&density=.05
three-servers 1000 200 1 lognormal?users=1000&servers=200&density=.015
as-many 500 500 1 lognormal?users=500&servers=500&density=.006
as-many 300 900 1 lognormal?users=300&servers=900&density=.0033
as-many 2000 2000 1 lognormal?users=2000&servers=2000&density=.0015
few-users 3 100 3 lognormal?users=3&servers=100
few-users 10 300 2 lognormal?users=10&servers=300
few-users 10 1000 1 lognormal?users=10&servers=1000
few-users 10 3000 1 lognormal?users=10&servers=3000
few-users 200 2000 1 lognormal?users=200&servers=2000
limited 30 2 4 lognormal?users=30&servers=2
limited 200 2 2 lognormal?users=200&servers=2
limited 1000 4 1 lognormal?users=1000&servers=4
limited 5000 4 1 lognormal?users=5000&servers=4
counted 100 30 4 lognormal?users=100&servers=30
counted 200 60 2 lognormal?users=200&servers=60
counted 500 100 1 lognormal?users=500&servers=100
pinned 300 300 1 lognormal?users=300&servers=300
far-larger 46 19 3 lognormal?users=46&servers=19
google-like 100 1000 2 google-like?users=100&servers=1000
google-like 1000 12583 1 google-like?users=1000&servers=12583
google-like 2000 12583 1 google-like?users=2000&servers=12583
google-like 5000 12583 1 google-like?users=5000&servers=12583
google-limited 100 1000 2 google-like?users=100&servers=1000&max_tasks=true
google-limited 1000 12583 1 google-like?users=1000&servers=12583&max_tasks=true
google-limited 2000 12583 1 google-like?users=2000&servers=12583&max_tasks=true
google-limited 5000 12583 1 google-like?users=5000&servers=12583&max_tasks=true
alibaba-like 100 100 2 alibaba-like?users=100&servers=100
alibaba-like 1000 1500 1 alibaba-like?users=1000&servers=1500
alibaba-like 5000 1500 1 alibaba-like?users=5000&servers=1500
alibaba-limited 100 100 2 alibaba-like?users=100&servers=100&max_tasks=true
alibaba-limited 1000 1500 1 alibaba-like?users=1000&servers=1500&max_tasks=true
alibaba-limited 5000 1500 1 alibaba-like?users=5000&servers=1500&max_tasks=true
bitbrains-like 30 6 3 bitbrains-like?vms=30&servers=6
bitbrains-like 100 20 2 bitbrains-like?vms=100&servers=20
every-alpha-dense 200 50 2 lognormal?users=200&servers=50
every-alpha-dense 300 100 2 lognormal?users=300&servers=100
every-alpha-dense 500 100 1 lognormal?users=500&servers=100
every-alpha-dense 1000 200 1 lognormal?users=1000&servers=200
tied-dense-4 1000 200 1 lognormal?users=1000&servers=200&seed=4
tied-dense-4000 1000 200 1 lognormal?users=1000&servers=200&seed=4000
every-alpha-placed 2000 500 1 lognormal?users=2000&servers=500&density=.006
every-alpha-bitbrains 300 30 1 bitbrains-like?vms=300&servers=30
every-alpha-google 500 12583 1 google-like?users=500&servers=12583
kubernetes-like 54 39 2 kubernetes-like?nodes=40&pods=400
slurm-like 145 60 2 slurm-like?nodes=60""".splitlines(),
]
Row = dict[str, Any]
FIELDS = ("name", "status", "message", "algorithm", "condition", "cpu", "MiB", "data", "x")
LISTED = ["off", "condition", "cpu", "cpu now", "status", "status now", "algorithm", "algorithm now", "message",
          "message now"]  # fmt: skip


workloads.generator("kubernetes-like", "made up")(made_up.kubernetes_like)
workloads.generator("slurm-like", "made up")(made_up.slurm_like)


class Problem(NamedTuple):
    """Problem: a mechanism on the cluster `where`, FAMILY/SIZE/SEED."""

    where: str
    source: str
    mechanism: str

    @property
    def name(self) -> str:
        return f"{self.where}/{self.mechanism}"


@lru_cache(maxsize=1)
def draw(where: str, source: str) -> fo.Cluster:
    """Cluster of a name; in the families `limited` and `counted` half of the users have task limits."""
    family, size, seed = where.split("/")
    if family == "papers":
        return papers.instance(size)
    (n, k), rng = map(int, size.split("x")), np.random.default_rng([int(seed), *where.encode()])
    if source == "drawn":
        return families.draw(family, int(seed), n, k, min(k, 4))
    if source == "larger":
        return LARGER[family.removeprefix("larger-")](n, k, rng)
    found = workloads.open_source(source, rng=rng).cluster
    if family == "pinned":  # servers of nearly equal size
        capacity = found.capacity[0] * (1 + 6e-6 * rng.random((k, 1)))
        return found.replace(capacity=capacity, eligible=np.eye(n, dtype=bool))
    if family == "far-larger":
        return found.replace(
            capacity=found.capacity * np.where(np.arange(k) == 0, 10 ** rng.uniform(3, 9), 1.0)[:, None]
        )
    if family == "counted":  # limits near the common level of a pool
        whole, unit = found.capacity.sum(axis=0), found.demand / found.dominant_share_per_task[:, None]
        level = (whole / unit.sum(axis=0)).min() / found.dominant_share_per_task
        return found.replace(max_tasks=np.where(rng.random(n) < 0.5, rng.uniform(0.3, 0.95, n) * level, np.inf))
    if family != "limited":
        return found
    part = np.where(rng.random(n) < 0.5, 10 ** rng.uniform(-1, 1, n), np.inf)  # relative to the user's equal share
    return found.replace(max_tasks=part * found.gamma.sum(axis=1) / n)


def corpus() -> Iterator[Problem]:
    """All problems, grouped by cluster."""
    clusters = [(f"papers/{name}/0", "") for name in papers.instances()]
    for family, n, k, count, source in map(str.split, SOURCES):
        clusters += [(f"{family}/{n}x{k}/{seed}", source) for seed in range(int(count))]
    for where, source in clusters:
        own = next((asked for name, asked in ALONE.items() if where.startswith(name)), USUAL)
        for mechanism in FEW if "/200x2000/" in where else own:
            if mechanism != EITHER[zlib.crc32(where.encode()) % 2]:
                yield Problem(where, source, mechanism)


def of_one_resource(cluster: fo.Cluster) -> fo.Cluster:
    """Cluster reduced to the most demanded resource and the users that demand it."""
    need = cluster.demand > 0
    r = need.sum(axis=0).argmax()
    return cluster.select(np.array(cluster.users)[need[:, r]].tolist(), None, [cluster.resources[r]])


def solved(mechanism: fo.mechanisms.Mechanism, cluster: fo.Cluster) -> tuple[Row, fo.Allocation | None]:
    """Result of one solve."""
    try:
        return {"status": "certified", "message": ""}, mechanism.solve(cluster, 1e-6)
    except Exception as error:  # all failures are counted with their type
        status, message = "refused" if isinstance(error, FairoptError) else "broken", f"{type(error).__name__}: {error}"
        return {"status": status, "message": " ".join(message.split())[:400]}, None


def measured(problem: Problem, cluster: fo.Cluster) -> Row:
    """Row of a problem, with the tasks `x` of users; run in a separate process to measure its memory."""
    mechanism = MECHANISMS[problem.mechanism]
    if problem.mechanism == "cmmf":
        cluster = of_one_resource(cluster)
    (row, found), row["cpu"], row["MiB"] = cost(lambda: solved(mechanism, cluster))
    # Rounded, since exp and log differ between machines in the last digit.
    data = (cluster.capacity, cluster.demand, cluster.weight, cluster.max_tasks)
    row["data"] = zlib.crc32(cluster.eligible.tobytes(), zlib.crc32(b"".join(a.astype("f4").tobytes() for a in data)))
    if found is not None:
        row["algorithm"] = f"{found.stats.engine}: {found.stats.solver}"
        if cluster.eligible.size <= CHEAP:
            row["condition"] = found.certificate.condition
        row["x"] = [float(f"{x:.12g}") for x in found.arrays.user_tasks]
    return row


def kept(path: Path) -> dict[str, Row]:
    """Rows of a run so far, by problem."""
    parts = (part.read_text(encoding="utf-8") for part in path.parent.glob(f"{path.name}.*.jsonl"))
    # Incomplete last lines are ignored.
    found = (json.loads(line) for text in parts for line in text.splitlines() if line.endswith("}"))
    return {row["name"]: row for row in found}


def run(path: Path, problems: list[Problem]) -> None:
    """Solve problems without a row, and append each row at once; several processes may share a run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = kept(path)
    todo = [one for one in problems if one.name not in done]
    warnings.simplefilter("ignore")
    for mechanism in MECHANISMS.values():  # compiled loops are loaded before the process forks
        solved(mechanism, families.draw("limits", 0, 8, 5, 2))
    tqdm.monitor_interval = 0  # threads are unsafe in forked processes
    with open(f"{path}.{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
        for problem in tqdm(todo, mininterval=10):
            cluster = draw(problem.where, problem.source)
            row = apart(lambda problem=problem, cluster=cluster: measured(problem, cluster), LIMIT)
            if isinstance(row, str):
                row = {"status": "no answer", "message": row, "cpu": LIMIT}
            file.write(json.dumps(row | {"name": problem.name}) + "\n")
            file.flush()


def off(old: object, new: object) -> float:
    """Largest relative difference of a user's tasks; NaN unless both runs solved the same problem."""
    if not (isinstance(old, list) and isinstance(new, list) and len(old) == len(new)):
        return np.nan
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(abs(np.subtract(old, new)) / np.maximum(old, new), initial=0.0))


def compare(old: Path, new: Path) -> str:
    """Compare two runs on their common problems: tables, and lists of problems uncertified or with changed tasks."""
    before, after = (pd.DataFrame(kept(path).values(), columns=FIELDS).set_index("name") for path in (old, new))
    both = before.join(after.add_suffix(" now"), how="inner")
    both["off"] = list(map(off, both["x"], both["x now"]))
    both["then"], both["now"] = both["status"] == "certified", both["status now"] == "certified"
    both["ratio"] = (both["cpu now"] / both["cpu"]).where(both["then"] & both["now"])
    both["worst ratio"], both["> 1e-6"], both["> 1e-4"] = both["ratio"], both["off"] > 1e-6, both["off"] > 1e-4
    both["problems"] = 1
    summed = dict.fromkeys(["problems", "then", "now", "> 1e-6", "> 1e-4", "cpu", "cpu now"], "sum")
    summed |= {"off": "max", "MiB": "max", "MiB now": "max", "ratio": "median", "worst ratio": "max"}
    text = [f"{len(before)} and {len(after)} problems, {len(both)} in both."]
    for k in (0, 3, 4):
        table = both.groupby([f"{name}/all".split("/")[k] for name in both.index]).agg(summed)
        table["ratio of sums"] = table["cpu now"] / table["cpu"]
        text.append(table.to_markdown(floatfmt=".4g"))
    for title, which in {
        "Not certified then or now": ~(both["then"] & both["now"]),
        "Moved by over 1e-4": both["> 1e-4"],
        "Slower by over 1.3, and .02 s or more": (both["ratio"] > 1.3) & (both["cpu now"] > 0.02),
        "Not the same cluster": (both["data"] - both["data now"]).abs() > 0,
    }.items():
        text += [
            f"{title}: {which.sum()}",
            both.loc[which, LISTED].dropna(axis=1, how="all").to_markdown(floatfmt=".4g"),
        ]
    return "\n\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "compare"))
    parser.add_argument("names", nargs="+", metavar="NAME", help="of a run; two to compare. They may be paths")
    parser.add_argument("--only", default="", metavar="REGEX", help="problems whose names have this")
    asked = parser.parse_args()
    paths = [ROOT / "results" / "ruler" / name for name in asked.names]
    if asked.what == "run":
        run(paths[0], [one for one in corpus() if re.search(asked.only, one.name)])
    sys.stdout.write(compare(paths[0], paths[-1]))


if __name__ == "__main__":
    main()
