"""Start times of crowded workloads under programs of others, as fixtures: only numbers are stored.

    python tools/independent_starts.py accasim --python VENV/bin/python
    python tools/independent_starts.py sdrf --python python2.7 --folder SDRF

AccaSim (PyPI, 1.1.3; MIT) runs first in, first out, on the first node with room: `fifo`. sdrf (github.com/hsadok/sdrf;
Python 2.7, NumPy, sortedcontainers) runs weighted DRF on one pool, where the first task of the user with the lowest
dominant share blocks: `discrete-drf`. Both are started as they are, by `tools/independent/run_NAME.py`.
`tests/scheduling/test_independent.py` holds both engines to what they answer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "tests" / "scheduling" / "independent"
Problem = dict[str, Any]


def fifo(seed: int, tasks: int = 1200) -> Problem:
    """Jobs of one to five cores on 20 nodes of two types, at 1.2 times what they can do; arrivals and ends tie."""
    rng = np.random.default_rng(seed)
    return {
        "servers": [{"cpu": 8, "memory": 64, "count": 12}, {"cpu": 16, "memory": 48, "count": 8}],
        "tasks": {
            "arrival": np.cumsum(rng.integers(0, 9, tasks)).tolist(),
            "duration": rng.integers(20, 900, tasks).tolist(),
            "cpu": rng.integers(1, 6, tasks).tolist(),
            "memory": rng.integers(1, 25, tasks).tolist(),
        },
    }


def pool(seed: int, tasks: int = 2000, load: float = 3.0) -> Problem:
    """Six users of tasks of all sizes on one server of 64 x 128; no two things happen at one time.

    sdrf decides after every single end, we once all ends of an instant are over: where these tie answers may differ.
    Weights are powers of two, so that both round alike.
    """
    rng = np.random.default_rng(seed)
    cpu, memory = rng.integers(1, 9, tasks), rng.integers(1, 17, tasks)
    duration = rng.integers(10**6, 10**8, tasks)
    gap = float((duration * np.maximum(cpu / 64, memory / 128)).mean()) / load
    arrival = np.cumsum(1 + rng.exponential(gap, tasks).astype(np.int64))
    return {
        "servers": [{"cpu": 64, "memory": 128, "count": 1}],
        "users": [1.0, 1.0, 2.0, 0.5, 4.0, 1.0],
        "tasks": {
            "user": rng.integers(0, 6, tasks).tolist(), "arrival": arrival.tolist(), "duration": duration.tolist(),
            "cpu": cpu.tolist(), "memory": memory.tolist(),
        },
    }  # fmt: skip


def asked(program: str, python: str, folder: Path | None, problem: Problem) -> Problem:
    """What a program answers."""
    with tempfile.TemporaryDirectory() as place:
        given, found = Path(place) / "in.json", Path(place) / "out.json"
        given.write_text(json.dumps(problem))
        paths = os.pathsep.join(filter(None, [str(folder) if folder else "", os.environ.get("PYTHONPATH", "")]))
        subprocess.run(
            [python, str(ROOT / "tools" / "independent" / f"run_{program}.py"), str(given), str(found)],
            env=os.environ | {"PYTHONPATH": paths}, check=True, stdout=subprocess.DEVNULL, timeout=600,
        )  # fmt: skip
        answer: Problem = json.loads(found.read_text())
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=("accasim", "sdrf"))
    parser.add_argument("--python", required=True, help="an interpreter that has what the program needs")
    parser.add_argument("--folder", type=Path, help="where sdrf is, as it comes from GitHub")
    parser.add_argument("--version", default="", help="of sdrf: its commit")
    options = parser.parse_args()
    problems = (
        {"fifo": fifo(7)} if options.program == "accasim" else {"load3": pool(3), "load8": pool(8, tasks=1200, load=8)}
    )
    for name, problem in problems.items():
        answer = asked(options.program, options.python, options.folder, problem)
        version = answer.pop("version", options.version)
        answer.pop("seconds", None)
        stored = {"program": options.program, "version": version} | problem | answer
        target = STORE / f"{options.program}-{name}.json"
        target.write_text(json.dumps(stored, separators=(",", ":")) + "\n")
        print(target.relative_to(ROOT), len(answer["start"]), "starts")


if __name__ == "__main__":
    main()
