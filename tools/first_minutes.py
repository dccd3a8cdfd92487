"""Measure first steps of a new user: CPU seconds and compiled loops, in separate processes with an empty cache.

    python tools/first_minutes.py            # a fresh environment from the wheel: doors, first task, notebooks, docs
    python tools/first_minutes.py --write    # the same, and docs/first-minutes.md made anew

Exit status 1 if a step compiles unnecessarily, fails, or exceeds its limit of seconds. `make test-long` runs it;
tests/test_door.py counts compiled loops of the commands in the present environment.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "first-minutes.md"

_CLUSTER = "import fairopt as fo; c = fo.Cluster([[8, 32], [16, 64], [32, 48]], [[1, 4], [4, 8], [2, 1]]); "
#: Variant of `_CLUSTER` with GPUs on one server, which two of three users do not need.
FILE = """\
kind,name,cpu,memory,gpu
server,s1,8,32,0
server,s2,16,64,4
server,s3,32,64,0
user,a,1,4,0
user,b,4,8,1
user,c,2,1,0
"""
_TASKS = """
import fairopt as fo, numpy as np, pandas as pd
rng, n = np.random.default_rng(0), 2000
tasks = {"user": rng.choice([*"abcd"], n), "duration": rng.exponential(10, n)}
tasks |= {"arrival": np.sort(rng.uniform(0, 500, n)), "cpu": rng.uniform(0.1, 2, n), "memory": rng.uniform(0.1, 4, n)}
servers = pd.DataFrame({"cpu": [8.0] * 10, "memory": [16.0] * 10})
print(fo.simulate(fo.Workload.from_frames(pd.DataFrame(tasks), servers), "best-fit-drfh"))
"""


class Door(NamedTuple):
    """Step: its command line, arguments for Python, limit of CPU seconds, and whether it may compile."""

    typed: str
    words: tuple[str, ...]
    most: float
    compiles: bool = False


def _python(code: str, most: float) -> Door:
    return Door(f"fo.{code}", ("-c", f"{_CLUSTER}print(fo.{code})"), most)


def _command(text: str, most: float, compiles: bool = False) -> Door:
    return Door(f"fairopt {text}", ("-m", "fairopt", *text.split()), most, compiles)


DOORS = (
    *(_python(f"{name}().solve(c)", 2) for name in ("DRF", "DRFH", "TSF", "CEEI")),
    *(_python(f"{name}.solve(c)", 3) for name in ("AlphaPFVDS(3)", "PSDSF()")),
    _python("compare(c)", 5),
    _python("alpha_path(c)", 5),
    _python("best_response(c, 3)", 5),
    Door("fo.simulate, 2,000 tasks", ("-c", _TASKS), 6),
    _command("solve cluster.csv -m ps-dsf", 3),
    _command("explore cluster.csv --out page.html", 5),
    _command("report cluster.csv", 4),
    _command("compare cluster.csv", 4),
)


class Outcome(NamedTuple):
    """Result of a process: CPU seconds, compiled loops, reason of a failure, and output."""

    seconds: float
    loops: int
    failed: str
    said: str


def came(words: tuple[str, ...], python: str = sys.executable, path: Path | None = ROOT) -> Outcome:
    """Run Python with an empty cache in a folder with only cluster.csv; `path` is the location of fairopt."""
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place, "kept")
        kept.mkdir()
        Path(place, "cluster.csv").write_text(FILE, encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "FAIROPT_TRACES")}
        env |= {"NUMBA_CACHE_DIR": str(kept), "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        env |= {} if path is None else {"PYTHONPATH": str(path)}
        with Path(place, "said").open("w+", encoding="utf-8") as said:
            child = subprocess.Popen([python, *words], env=env, cwd=place, stdout=said, stderr=said)
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read()
        failed = f"exit status {child.returncode}: {text.strip()[-300:]}" if status else ""
        return Outcome(used.ru_utime + used.ru_stime, len([*kept.rglob("*.nbc")]), failed, text)


def installed(place: Path) -> str:
    """Python of a fresh environment with the wheel and its dependencies."""
    # Pip would find this checkout there.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(ROOT)],
        [sys.executable, "-m", "venv", str(place / "env")],
    ):
        subprocess.run(words, check=True, env=env)
    (wheel,) = place.glob("*.whl")
    python = str(place / "env" / "bin" / "python")
    extras = f"fairopt[sweep,notebook] @ {wheel.as_uri()}"
    subprocess.run([python, "-m", "pip", "install", "--quiet", extras, "nbclient", "ipykernel"], check=True, env=env)
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    return python


_FIRST_TASK = """
import re, fairopt
from pathlib import Path
docs = Path(fairopt.__file__).parent / "shipped" / "docs"
Path("cluster.csv").write_bytes((docs / "first-task" / "cluster.csv").read_bytes())
exec(re.search("```python\\n(.*?)```", (docs / "first-task.md").read_text(encoding="utf-8"), re.DOTALL)[1])
assert Path("first-task.png").stat().st_size > 10_000
"""
#: Notebooks are checked for content: more than one user, axes with data, and no output on standard error.
_NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient
from fairopt.base import shipped
book = nbformat.read(shipped.folder("notebooks") / sys.argv[1], as_version=4)
check = ("import matplotlib.pyplot as plt, fairopt as fo\\n"
         "assert all(a.has_data() for n in plt.get_fignums() for a in plt.figure(n).axes if a.axison), 'empty axes'\\n"
         "for one in [*globals().values()]:\\n"
         "    if isinstance(one, fo.Cluster | fo.Workload): assert len(one.users) > 1, one")
book.cells.append(nbformat.v4.new_code_cell(check))
NotebookClient(book, timeout=600).execute()
shown = [one for cell in book.cells if cell.cell_type == "code" for one in cell.outputs]
assert not [one for one in shown if one.output_type == "stream" and one.name == "stderr"], "standard error"
"""


def walk(place: Path) -> Iterator[tuple[str, bool]]:
    """Rows of steps, each with its validity: command line, CPU seconds, limit, loops, and failure."""
    python = installed(place)
    rest = [_command("warmup", 50, compiles=True), Door("the first task", ("-c", _FIRST_TASK), 30, compiles=True)]
    rest.append(_command("docs choose", 2))
    for book in sorted((ROOT / "notebooks").glob("*.ipynb")):
        rest.append(Door(f"notebooks/{book.name}", ("-c", _NOTEBOOK, book.name), 120, compiles=True))
    for door in (*DOORS, *rest):
        one = came(door.words, python, None)
        amiss = one.failed or ("compiles" if one.loops and not door.compiles else "")
        amiss = amiss or ("too long" if one.seconds > door.most else "")
        yield f"| `{door.typed}` | {one.seconds:.1f} | {door.most:g} | {one.loops} | {amiss} |", not amiss


def main() -> int:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    rows = ["| first use | CPU s | at most | loops compiled | remark |", "| --- | --- | --- | --- | --- |"]
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        for row, good in walk(Path(place)):
            rows.append(row)
            wrong += not good
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
    if write:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        about = f"Python {platform.python_version()}, {platform.machine()}, {load:.1f} processes a core when it ended."
        text = PAGE.read_text(encoding="utf-8")
        made = "\n".join(["<!-- doors -->", *rows, "", about, "<!-- /doors -->"])
        PAGE.write_text(re.sub(r"<!-- doors -->.*<!-- /doors -->", lambda _: made, text, flags=re.DOTALL), "utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
