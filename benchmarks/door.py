"""What people wait for before anything is computed: `python -m benchmarks.door [--before DIR] [SECTION ...]`.

CPU seconds of new processes, user and system, the least of several: with nothing compiled (cold, once) and with all
compiled that the question needs. `--before` names another checkout, whose figures are beside ours. Sections:

door    importing, the help, the first answer of a process, `fairopt warmup`
stats   what an answer's `stats` say of the first and the second solve of a process: compilation is in `loops` alone
times, warm, path, profile
        one small solve, see `benchmarks.small`
many    solves a second of `solve_many`, `solve` and CVXPY by mechanism and shape, and where `solve_many` stops paying:
        `benchmarks.many`, of this checkout alone
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parents[1]

#: Checkouts by name.
Checkouts = dict[str, Path]

_COMMAND = ("-m", "fairopt.cli")
#: Questions, their words for Python, and what they may take once compiled, in CPU seconds.
QUESTIONS: dict[str, tuple[tuple[str, ...], float | None]] = {
    "python itself": (("-c", "pass"), None),
    "import fairopt": (("-c", "import fairopt"), 0.1),
    "fairopt --help": ((*_COMMAND, "--help"), 0.3),
    "fairopt solve paper:drf-4.1 -m drf": ((*_COMMAND, "solve", "paper:drf-4.1", "-m", "drf"), 1.0),
    **{
        f"fairopt solve paper:pf-fig1 -m '{name}'": ((*_COMMAND, "solve", "paper:pf-fig1", "-m", name), None)
        for name in ("drfh", "ceei", "alphapf-vds(alpha=3)", "ps-dsf")
    },
    "fairopt warmup": ((*_COMMAND, "warmup"), None),
}
_STATS = """
import json, fairopt as fo
cluster = fo.papers.instance("pf-fig1")
for name in ("drf", "drfh", "ceei", "alphapf-vds(alpha=3)", "ps-dsf"):
    (mechanism,) = fo.mechanisms.parse(name)
    stats = [mechanism.solve(cluster).stats for _ in range(2)]
    print(json.dumps({"mechanism": name} | {
        f"{what} of solve {turn}": getattr(one, what)
        for what in ("loops", "total") for turn, one in enumerate(stats, 1)
    }))
"""


@contextmanager
def _kept() -> Iterator[Path]:
    """An empty folder for compiled loops."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _started(checkout: Path, words: tuple[str, ...], kept: Path) -> tuple[float, str]:
    """CPU seconds of a process and of what it started, and what it printed."""
    env = os.environ | {"PYTHONPATH": str(checkout), "NUMBA_CACHE_DIR": str(kept)}
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([sys.executable, *words], env=env, cwd=kept, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            return float("nan"), ""  # a command that the checkout does not have
        out.seek(0)
        return used.ru_utime + used.ru_stime, out.read().decode()


def door(checkouts: Checkouts, repeat: int) -> pd.DataFrame:
    """A row per question: what it may take, and cold and compiled in every checkout."""
    rows = []
    for question, (words, limit) in QUESTIONS.items():
        row: dict[str, object] = {"question": question, "at most": limit}
        for name, checkout in checkouts.items():
            with _kept() as kept:
                row[f"{name}: cold"] = _started(checkout, words, kept)[0]
                row[f"{name}: compiled"] = min(_started(checkout, words, kept)[0] for _ in range(repeat))
        rows.append(row)
        print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()), file=sys.stderr)
    return pd.DataFrame(rows)


def stats(checkouts: Checkouts, repeat: int) -> pd.DataFrame:
    """A row per checkout, cache and mechanism: seconds of loops and in all, of the first solve and of the second."""
    rows = []
    for name, checkout in checkouts.items():
        with _kept() as kept:
            for cache in ("cold", "compiled"):
                for line in _started(checkout, ("-c", _STATS), kept)[1].splitlines():
                    rows.append({"checkout": name, "cache": cache} | json.loads(line))
    return pd.DataFrame(rows)


def small(section: str, checkouts: Checkouts, repeat: int) -> pd.DataFrame:
    """A row per checkout and question of `benchmarks.small`, all compiled."""
    rows = []
    script = str(HERE / "benchmarks" / "small.py")
    for name, checkout in checkouts.items():
        with _kept() as kept:
            for line in _started(checkout, (script, section), kept)[1].splitlines():
                rows.append({"checkout": name} | json.loads(line))
    return pd.DataFrame(rows)


def many(checkouts: Checkouts, repeat: int) -> pd.DataFrame:
    """As `benchmarks.many` has it."""
    from .many import table

    return table()


SECTIONS: dict[str, Callable[[Checkouts, int], pd.DataFrame]] = {
    "door": door,
    "stats": stats,
    **{name: partial(small, name) for name in ("times", "warm", "path", "profile")},
    "many": many,
}


def main() -> None:
    """The sections asked for, a table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--before", type=Path, metavar="DIR", help="another checkout")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs with all compiled; default: 5")
    options = parser.parse_args()
    if unknown := {*options.sections} - {*SECTIONS}:
        parser.error(f"there is no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    checkouts = ({"before": options.before.resolve()} if options.before else {}) | {"now": HERE}
    for name in options.sections or SECTIONS:
        table = SECTIONS[name](checkouts, options.repeat)
        print(f"\n## {name}\n\n{table.to_string(index=False, float_format='{:.3f}'.format, na_rep='')}", flush=True)


if __name__ == "__main__":
    main()
