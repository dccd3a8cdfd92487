"""A new user's path from a clone to a figure of an own cluster, run: `python tools/first_minutes.py`.

In an empty folder and a new virtual environment, with fairopt from a clone of this repository's last commit. What the
commands print goes into docs/first-minutes.md (`--times-only`: nowhere); how long they took, which is this machine's,
goes to the terminal.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "first-minutes.md"

CLUSTER = """resources = ["cpu", "memory", "gpu"]

[[servers]]
name = "node"
count = 4
capacity = { cpu = 16, memory = 64 }

[[servers]]
name = "gpu"
count = 2
capacity = { cpu = 32, memory = 128, gpu = 4 }

[[users]]
name = "web"
demand = { cpu = 0.5, memory = 1 }
max_tasks = 60

[[users]]
name = "batch"
demand = { cpu = 2, memory = 16 }

[[users]]
name = "training"
demand = { cpu = 4, memory = 16, gpu = 1 }
weight = 2
"""
FIGURE = """import fairopt as fo

cluster = fo.Cluster.load("cluster.toml")
fo.DRFH().solve(cluster).plot().savefig("figure.png")
"""
HEAD = """# From nothing to a figure of a cluster of one's own

What somebody types who has Python 3.11 or later and a cluster, and what they see. `python tools/first_minutes.py` runs
this page in an empty folder and a new environment, writes it anew, and says how long each command took.

The cluster is a file, `cluster.toml` ([all that it can say](cluster-file.md)):

```toml
{cluster}```

and the figure four lines of Python, in a file *figure.py*:

```python
{figure}```

"""
FOOT = """
`figure.png` shows what every server runs, and of which resource nothing is left. `page.html` is the
[explorer](explorer.md): alpha on a slider, in any browser, without a network. `fairopt explore cluster.toml` opens one
with tables to edit.

The first answers of a new installation are slow: their loops are compiled, once. `fairopt warmup` does it before.
"""
#: What is typed, and what is run for it where that differs.
STEPS: tuple[tuple[str, str], ...] = (
    ("python3 -m venv .venv", ""),
    ("git clone --quiet ADDRESS fairopt", f"git clone --quiet --depth 1 {ROOT.as_uri()} fairopt"),
    (".venv/bin/pip install --quiet ./fairopt", ".venv/bin/pip install --quiet --disable-pip-version-check ./fairopt"),
    (".venv/bin/fairopt solve cluster.toml", ""),
    (".venv/bin/python figure.py", ""),
    (".venv/bin/fairopt report cluster.toml --mechanism drfh --out report.md", ""),
    (".venv/bin/fairopt explore cluster.toml --out page.html", ""),
)


def run(folder: Path) -> str:
    """Run all steps; the transcript."""
    (folder / "cluster.toml").write_text(CLUSTER, encoding="utf-8")
    (folder / "figure.py").write_text(FIGURE, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    lines, total = [], 0.0
    for typed, other in STEPS:
        began, spent = time.perf_counter(), _cpu()
        done = subprocess.run(
            (other or typed).split(), cwd=folder, env=kept | {"COLUMNS": "100"}, text=True, capture_output=True
        )
        if done.returncode:
            raise SystemExit(f"{typed}\n{done.stdout}{done.stderr}")
        seconds = time.perf_counter() - began
        total += seconds
        sys.stderr.write(f"{seconds:7.1f} s, {_cpu() - spent:6.1f} s of CPU: {typed}\n")
        lines += [f"$ {typed}", *done.stdout.rstrip().splitlines()]
    sys.stderr.write(f"{total:7.1f} s in all\n")
    missing = [name for name in ("figure.png", "report.md", "page.html") if not (folder / name).stat().st_size]
    if missing:
        raise SystemExit(f"nothing is in {', '.join(missing)}")
    return "\n".join(lines)


def page(transcript: str) -> str:
    """The page of docs/."""
    head = HEAD.format(cluster=CLUSTER, figure=FIGURE)
    return f"{head}```console\n{transcript}\n```\n{FOOT}"


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = run(Path(place))
    if "--times-only" not in sys.argv:
        PAGE.write_text(page(found), encoding="utf-8")
