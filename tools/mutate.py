"""Break the package in ways that matter, and see that a test fails: a law that nothing can break is no law.

    python tools/mutate.py                    # all of them, one after the other: a table, and 1 if one is not noticed
    python tools/mutate.py "weights ignored"  # some of them

A mutation is a patch of the package in a process of its own, which then runs tests until the first fails: those that
should notice it, and wider ones if they pass. The patches, and the tests of each, are in `mutations.py`, which pytest
loads as a plugin. Without a mutation the same tests must pass, which is run first.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from mutations import MUTATIONS, NAME

ROOT = Path(__file__).resolve().parent.parent
#: Tests that run if those that should notice a mutation pass: all laws.
WIDER = ("tests/laws",)
#: Seconds of a run of tests.
PATIENCE = 120.0


def run(name: str, tests: tuple[str, ...]) -> tuple[str, float]:
    """The first of the tests that fails under a mutation ("" for none), and seconds."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {"PYTHONPATH": paths, NAME: name, "HYPOTHESIS_PROFILE": "first", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "mutations", "-x", "-q", "--no-header", "--tb=line", *tests]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return "", time.perf_counter() - began
    seconds = time.perf_counter() - began
    failed = re.search(r"^FAILED (\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    if done.returncode not in (0, 1) or (done.returncode == 1 and failed is None):
        raise SystemExit(f"pytest did not run ({name or 'no mutation'}):\n{done.stdout}{done.stderr}")
    return failed[1] if failed else "", seconds


def caught(name: str) -> tuple[str, float]:
    """The test that notices a mutation ("" for none), and the seconds that it took to find out."""
    found, seconds = run(name, MUTATIONS[name].tests)
    if not found:
        found, more = run(name, WIDER)
        seconds += more
    return found, seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MUTATION", help=", ".join(MUTATIONS).replace("%", "%%"))
    chosen = parser.parse_args()
    names = chosen.names or list(MUTATIONS)
    if unknown := [name for name in names if name not in MUTATIONS]:
        parser.error(f"no mutation {unknown[0]!r}; there are {', '.join(MUTATIONS)}")
    for tests in dict.fromkeys(MUTATIONS[name].tests for name in names):
        if (found := run("", tests)[0]) != "":
            print(f"without any mutation {found} fails")
            return 1
    rows = []
    for name in names:
        rows.append((name, *caught(name)))
        print(f"{name}: {rows[-1][1] or 'NOT NOTICED'}, {rows[-1][2]:.0f} s", flush=True)
    print("\n| mutation | noticed by | seconds |\n|---|---|---|")
    for name, test, seconds in rows:
        print(f"| {name} | {f'`{test}`' if test else '**nothing**'} | {seconds:.0f} |")
    return 0 if all(test for _, test, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
