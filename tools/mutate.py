"""Break the package in ways that matter, and see that a test fails: a law that nothing can break is no law.

    python tools/mutate.py                    # all of them, one after the other: a table, and 1 if one is not noticed
    python tools/mutate.py "weights ignored"  # some of them
    python tools/mutate.py drawn --seed 3     # those that are drawn, or others of them

A mutation is a patch of the package in a process of its own, which then runs tests until the first fails: those that
should notice it, and wider ones if they pass. The patches, and the tests of each, are in `mutations.py`, which pytest
loads as a plugin. Without a mutation the same tests must pass, which is run first. Twenty more, operators and numbers
drawn from the core, the judges and the model (`drawn_mutations.py`), are for all tests of every commit to notice: of
these some change nothing (a tolerance that may as well be twice as large), which is for the reader to judge.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import drawn_mutations
from mutations import MUTATIONS, NAME

ROOT = Path(__file__).resolve().parent.parent
#: Tests that run if those that should notice a mutation pass: all laws.
WIDER = ("tests/laws",)
#: Seconds of a run of tests, and of all tests.
PATIENCE, ALL = 120.0, 3600.0
#: How many are drawn, and by which seed.
COUNT, SEED = 20, 0


def run(name: str, tests: tuple[str, ...], root: Path = ROOT, patience: float = PATIENCE) -> tuple[str, float]:
    """The first of the tests that fails under a mutation ("" for none), and seconds."""
    paths = os.pathsep.join([str(root), str(root / "tools"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {"PYTHONPATH": paths, NAME: name, "HYPOTHESIS_PROFILE": "first", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "mutations", "-x", "-q", "--no-header", "--tb=line", *tests]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=root, env=os.environ | settings, capture_output=True, text=True, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        return "", time.perf_counter() - began
    seconds = time.perf_counter() - began
    failed = re.search(r"^(?:FAILED|ERROR) (\S+.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode != 0 and failed is None:
        if root != ROOT:  # not even imported
            return "all of them", seconds
        raise SystemExit(f"pytest did not run ({name or 'no mutation'}):\n{done.stdout}{done.stderr}")
    return failed[1] if failed else "", seconds


def caught(name: str) -> tuple[str, float]:
    """The test that notices a mutation ("" for none), and the seconds that it took to find out."""
    found, seconds = run(name, MUTATIONS[name].tests)
    if not found:
        found, more = run(name, WIDER)
        seconds += more
    return found, seconds


def caught_in(copy: Path, file: str, text: str) -> tuple[str, float]:
    """The same for a file with other content: tests of its room run first, then all of them."""
    with drawn_mutations.applied(copy / file, text):
        found, seconds = run("", drawn_mutations.ROOMS[Path(file).parts[1]], copy, ALL)
        if not found:
            found, more = run("", ("-n", str(os.cpu_count()), "--dist", "worksteal", "tests"), copy, ALL)
            seconds += more
    return found, seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    help = ", ".join([*MUTATIONS, "drawn"]).replace("%", "%%")
    parser.add_argument("names", nargs="*", metavar="MUTATION", help=help)
    parser.add_argument("--seed", type=int, default=SEED, help="of those that are drawn (default: %(default)s)")
    chosen = parser.parse_args()
    drawn = drawn_mutations.draw(COUNT, chosen.seed)
    known = [*MUTATIONS, *drawn]
    names = [one for name in chosen.names or known for one in (drawn if name == "drawn" else [name])]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no mutation {unknown[0]!r}; there are {', '.join(known)}")
    for tests in dict.fromkeys(MUTATIONS[name].tests for name in names if name in MUTATIONS):
        if (found := run("", tests)[0]) != "":
            print(f"without any mutation {found} fails")
            return 1
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = drawn_mutations.copied(folder) if {*names} & {*drawn} else ROOT
        for name in names:
            rows.append((name, *(caught(name) if name in MUTATIONS else caught_in(copy, *drawn[name]))))
            print(f"{name}: {rows[-1][1] or 'NOT NOTICED'}, {rows[-1][2]:.0f} s", flush=True)
    print("\n| mutation | noticed by | seconds |\n|---|---|---|")
    for name, test, seconds in rows:
        print(f"| {name} | {f'`{test}`' if test else '**nothing**'} | {seconds:.0f} |")
    return 0 if all(test for _, test, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
