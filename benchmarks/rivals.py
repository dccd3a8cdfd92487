"""Ours against other solvers on the frozen instances of `fairopt bench export`: seconds apart, errors, failures.

    fairopt bench export --out instances
    python -m benchmarks.rivals instances --out rivals.csv      # adds a row per instance and rival; may be interrupted
    python -m benchmarks.rivals --table rivals.csv --page docs/rivals.md
    python -m benchmarks.rivals instances --only drf-example-ceei --rivals fairopt CLARABEL

Rivals are stated in `benchmarks/rival_programs.py` without fairopt; what is not installed is skipped, and said. CPU
seconds of one thread and process, after a first small instance. `error` is the largest relative error of any user's
tasks against the certified answer. Nothing here is a dependency of fairopt: `pip install qoco ecos cvxopt piqp`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import wrap
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 - threads are chosen first
import pandas as pd  # noqa: E402

from benchmarks.rival_programs import Instance, Late, Linear, Seconds, Stated, Wrong, clock, play  # noqa: E402

_TIGHT_LINEAR = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
#: Rivals: what is installed for them, and what they are told when asked for all the digits they have.
RIVALS: dict[str, tuple[str, dict[str, Any]]] = {
    "fairopt": ("fairopt", {}),
    "CLARABEL": ("clarabel", {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}),
    "QOCO": ("qoco", {"abstol": 1e-10, "reltol": 1e-10, "max_iters": 500}),
    "ECOS": ("ecos", {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10, "max_iters": 500}),
    "SCS": ("scs", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}),
    "CVXOPT": ("cvxopt", {"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10, "max_iters": 200}),
    "HIGHS": ("highspy", {"highs_options": _TIGHT_LINEAR}),
    "linprog": ("scipy", _TIGHT_LINEAR),
    "PIQP": ("piqp", {"eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 500}),
    "OSQP": ("osqp", {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iter": 100_000}),
}  # fmt: skip
#: They solve linear programs only (OSQP and PIQP: quadratic ones), so questions of finite alpha are not for them.
LINEAR = ("HIGHS", "linprog", "PIQP", "OSQP")
QUESTIONS = {
    "ceei": "CEEI: proportional fairness of a pool",
    "alpha3": "alpha-fair welfare, alpha = 3",
    "drfh": "DRFH: lexicographic max-min",
    "game3": "alphaPF-VDS, alpha = 3: an equilibrium of servers",
    "psdsf": "PS-DSF: the equilibrium at alpha = infinity",
}
#: An answer this far off is called wrong.
WRONG = 1e-3
#: Runs shorter than SHORT seconds are repeated REPEATS times, and the shortest time counts.
SHORT, REPEATS = 1.0, 3
#: A solver that was late on PATIENCE instances of a question is not asked it again; instances are in order of size.
PATIENCE = 2


def installed() -> dict[str, str]:
    """The version of every rival that is here."""
    import cvxpy as cp

    found = {}
    for name, (package, _) in RIVALS.items():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            continue
        if name not in ("fairopt", "linprog") and name not in cp.installed_solvers():
            del found[name]
    return found


def run(rival: str, instance: Instance, folder: Path, limit: float, tight: bool) -> dict[str, Any]:
    """One rival on one instance: seconds apart, error, and how it ended."""
    seconds = Seconds(limit)
    row = row_of(instance, rival) | {"tight": tight}
    try:
        tasks = ours(folder / instance.name, seconds) if rival == "fairopt" else other(rival, instance, seconds, tight)
    except Late:
        ended, error = f"not in {limit:g} s", np.nan
    except Wrong as failure:
        ended, error = str(failure), np.nan
    else:
        error = float(np.max(np.abs(tasks - instance.tasks) / np.where(instance.tasks > 0, instance.tasks, 1.0)))
        ended = "wrong" if error > WRONG else "answer"
    total = clock() - seconds.begun
    parts = {name: getattr(seconds, name) for name in ("build", "compile", "solve")}
    return row | parts | {"total": total, "solves": seconds.solves, "error": error, "ended": ended}


def row_of(instance: Instance, rival: str) -> dict[str, Any]:
    """What stands in every row."""
    names = ("build", "compile", "solve", "total", "error")
    return {"instance": instance.name, "rival": rival, "solves": 0} | dict.fromkeys(names, np.nan)


def shortest(rival: str, instance: Instance, folder: Path, limit: float, tight: bool) -> dict[str, Any]:
    """`run`, and again where that was short: a process that has just begun touches its memory for the first time."""
    best = run(rival, instance, folder, limit, tight)
    for _ in range(REPEATS if best["total"] < SHORT else 0):
        best = min(best, run(rival, instance, folder, limit, tight), key=lambda one: one["total"])
    return best


def guarded(rival: str, instance: Instance, folder: Path, limit: float, tight: bool) -> dict[str, Any]:
    """`shortest` in a process of its own, which ends soon after the limit: some solvers know none."""
    if rival == "fairopt":
        return shortest(rival, instance, folder, limit, tight)
    here, there = multiprocessing.Pipe(duplex=False)
    most = int(limit + (REPEATS + 1) * SHORT) + 1

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        there.send(shortest(rival, instance, folder, limit, tight))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    there.close()
    try:
        return dict(here.recv())
    except EOFError:
        process.join()
        signals = (-signal.SIGXCPU, -signal.SIGKILL)
        ended = f"not in {limit:g} s" if process.exitcode in signals else f"ended with {process.exitcode}"
        return row_of(instance, rival) | {"tight": tight, "ended": ended}
    finally:
        process.join()


def other(rival: str, instance: Instance, seconds: Seconds, tight: bool) -> np.ndarray:
    """What a solver comes to, as it is by default or asked for all its digits."""
    options = RIVALS[rival][1] if tight else {}
    if rival == "linprog":
        return play(instance, lambda part: Linear(part, options, seconds), seconds)
    return play(instance, lambda part: Stated(part, instance.alpha, rival, options, seconds), seconds)


def ours(folder: Path, seconds: Seconds) -> np.ndarray:
    """What fairopt comes to, from the cluster alone; its seconds contain the certificate."""
    import fairopt as fo
    from fairopt.report.instances import QUESTIONS as MECHANISMS

    stored = fo.Allocation.load(folder / "answer.json")
    mechanism = fo.mechanisms.one(MECHANISMS[folder.name.rpartition("-")[2]])
    cluster = stored.cluster.replace()
    seconds.begun = clock()
    found = mechanism.solve(cluster)
    stats = found.stats
    seconds.build, seconds.solve, seconds.solves = stats.build, stats.solve + stats.certify, 1
    return found.user_tasks


def fits(rival: str, instance: Instance) -> bool:
    """Can the solver state the question at all?"""
    return np.isinf(instance.alpha) or rival not in LINEAR


def measured(
    folder: Path, only: list[str] | None, rivals: list[str], limit: float, done: set[tuple[str, str, bool]]
) -> Iterator[dict[str, Any]]:
    """Rows, instance by instance; what is `done` is left out."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    rows = [row for row in index["instances"] if only is None or row["name"] in only]
    ways = [(rival, tight) for rival in rivals for tight in ((False,) if rival == "fairopt" else (False, True))]
    warm: set[tuple[str, str]] = set()
    late: dict[tuple[str, str, bool], int] = {}
    for row in rows:
        instance = Instance.read(folder, row)
        question = row["name"].rpartition("-")[2]
        late_now = ""
        small = next(one for one in index["instances"] if one["name"].endswith(f"-{question}"))
        for rival, tight in ways:
            if not fits(rival, instance) or (instance.name, rival, tight) in done:
                continue
            if (question, rival) not in warm:  # what a process does once: imports, compiled loops
                run(rival, Instance.read(folder, small), folder, limit, tight)
                warm.add((question, rival))
            if late.get((question, rival, tight), 0) >= PATIENCE or (tight and late_now == rival):
                yield row_of(instance, rival) | {"tight": tight, "ended": f"not in {limit:g} s, as before: not tried"}
                continue
            best = guarded(rival, instance, folder, limit, tight)
            if best["ended"].startswith("not in"):
                late_now, late[question, rival, tight] = rival, late.get((question, rival, tight), 0) + 1
            yield best


def table(rows: pd.DataFrame, question: str) -> pd.DataFrame:
    """A line per rival: how many it answered, medians of its seconds, its largest error, its ratio to ours."""
    asked = rows[rows["instance"].str.endswith(f"-{question}")]
    ours = asked[asked["rival"] == "fairopt"].set_index("instance")["total"]
    lines = []
    for (rival, tight), group in asked.groupby(["rival", "tight"], sort=False):
        good = group[group["ended"] == "answer"]
        late = int(group["ended"].str.startswith("not in").sum())
        wrong = int((group["ended"] == "wrong").sum())
        ratio = good["total"].to_numpy() / ours.reindex(good["instance"]).to_numpy()
        median = good[["build", "compile", "solve", "total"]].median()
        lines.append(
            {
                "solver": f"{rival}{', tight' if tight else ''}",
                "answers": f"{len(good)} of {len(group)}",
                "wrong": wrong,
                "failed": len(group) - len(good) - wrong - late,
                "late": late,
                "largest error": f"{good['error'].max():.1e}" if len(good) else "",
                **{name: milliseconds(median[name]) for name in ("build", "compile", "solve", "total")},
                "ratio to ours": f"{np.exp(np.log(ratio).mean()):.2g}"
                if len(good) and np.isfinite(ratio).all()
                else "",
            }
        )
    return pd.DataFrame(lines)


def milliseconds(seconds: float) -> str:
    """Two significant digits, or what there is to say."""
    return "" if np.isnan(seconds) else f"{1e3 * seconds:.2g}" if seconds < 0.1 else f"{1e3 * seconds:,.0f}"


def section(rows: pd.DataFrame) -> str:
    """The tables in Markdown, with the machine and the versions that the rows name."""
    said = wrap(f"Measured with {rows['versions'].iloc[-1]}.", 120)
    for question, title in QUESTIONS.items():
        made = table(rows, question)
        if len(made):
            said += ["", f"## {title}", "", str(made.to_markdown(index=False, disable_numparse=True))]
    return "\n".join(said)


def put(page: Path, rows: pd.DataFrame) -> None:
    """The tables between `<!-- rivals -->` and `<!-- /rivals -->` of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- rivals -->\n")
    after = rest.partition("<!-- /rivals -->")[2]
    page.write_text(f"{before}<!-- rivals -->\n{section(rows)}\n<!-- /rivals -->{after}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Measure, or make the tables of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="what `fairopt bench export` wrote")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these instances")
    parser.add_argument("--rivals", nargs="+", choices=list(RIVALS), help="only these; default: all that are installed")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds for one instance; default: %(default)g")
    parser.add_argument("--out", type=Path, help="rows, as CSV; rows that are there stay")
    parser.add_argument("--table", type=Path, metavar="CSV", help="no measuring: the tables of these rows")
    parser.add_argument("--page", type=Path, help="put the tables between the marks of this page")
    options = parser.parse_args(arguments)
    if options.table is None:
        if options.folder is None:
            parser.error("name the folder that `fairopt bench export` wrote")
        here = installed()
        chosen = [name for name in options.rivals or RIVALS if name in here]
        for name in options.rivals or RIVALS:
            if name not in here:
                print(f"{name}: not installed, skipped", file=sys.stderr)
        named = ", ".join(f"{RIVALS[name][0]} {here[name]}" for name in chosen)
        named += f", CVXPY {version('cvxpy')}, Python {platform.python_version()}"
        old = pd.read_csv(options.out) if options.out and options.out.exists() else pd.DataFrame()
        done = {(one.instance, one.rival, bool(one.tight)) for one in old.itertuples()} if len(old) else set()
        found = []
        for row in measured(options.folder, options.only, chosen, options.limit, done):
            found.append(row | {"versions": named})
            print(f"{row['instance']:24} {row['rival']:9} {'tight' if row['tight'] else '':5} {row['total']:8.3f} s  "
                  f"error {row['error']:.1e}  {row['ended']}", flush=True)  # fmt: skip
            if options.out:
                pd.concat([old, pd.DataFrame(found)]).to_csv(options.out, index=False, float_format="%.4g")
        rows = pd.concat([old, pd.DataFrame(found)])
    else:
        rows = pd.read_csv(options.table)
    if options.page:
        put(options.page, rows)
    elif len(rows):
        print(section(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
