"""Mutation testing: check that some test fails for each deliberate defect of the package.

    python tools/mutate.py                    # all of them, one after the other: a table, and 1 if one is not noticed
    python tools/mutate.py "weights ignored"  # some of them
    python tools/mutate.py drawn --seed 3     # those that are drawn, or others of them

A mutation replaces a text of a file in a copy of the checkout, where tests run until the first failure: first those
that should detect it, then wider ones. `mutations.toml` has the texts and the tests of each. Twenty further ones change
operators and numbers sampled from the core, the certificates and the model, to be detected by the tests of every
commit; some of these may be equivalent to the original (such as a doubled tolerance), which the reader has to judge.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: Timeout of a test run in seconds.
PATIENCE = 3600.0
#: Number of sampled mutations, and the seed.
COUNT, SEED = 20, 0
#: Files that are sampled, and the tests that run first.
ROOMS = {
    "core": ("tests/core", "tests/laws/test_effort.py"),
    "certificates": ("tests/certificates", "tests/test_checker.py", "tests/engines/test_rational.py"),
    "model": ("tests/test_cluster.py", "tests/test_criteria.py", "tests/test_polytope.py", "tests/mechanisms"),
}
#: Replacements of operators; kinds are sampled uniformly, and then their places.
KINDS: tuple[dict[type[ast.AST], tuple[type[ast.AST], ...]], ...] = (
    {ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE)}
    | {ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,)},
    {ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,)},
    {int: (int,), float: (float,)},  # replaced by the next integer, or doubled
)


class Mutation(NamedTuple):
    """Mutation: a file, its new content, the tests that should detect it, and those that run otherwise."""

    file: str
    text: str
    tests: tuple[str, ...]
    wider: tuple[str, ...]


def stated() -> dict[str, Mutation]:
    """Mutations of `mutations.toml`; raise if a text to be replaced does not occur exactly once."""
    made = {}
    for name, one in tomllib.loads((ROOT / "tools" / "mutations.toml").read_text(encoding="utf-8")).items():
        before, *after = (ROOT / one["file"]).read_text(encoding="utf-8").split(one["old"])
        if len(after) != 1:
            raise ValueError(f"{name}: what it replaces stands {len(after)} times in {one['file']}")
        made[name] = Mutation(one["file"], before + one["new"] + after[0], tuple(one["tests"]), ("tests/laws",))
    return made


def drawn(count: int, seed: int) -> dict[str, Mutation]:
    """Sampled changes of operators and numbers, by description."""
    files = [path for room in ROOMS for path in sorted((ROOT / "fairopt" / room).rglob("*.py"))]
    trees = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in files}
    places = [(*place, path) for path, tree in trees.items() for place in _places(tree)]
    rng, found = random.Random(seed), {}
    everything = ("-n", str(os.cpu_count()), "--dist", "worksteal", "tests")
    while len(found) < count:
        chosen = rng.randrange(len(KINDS))
        kind, node, name, path = rng.choice([one for one in places if one[0] == chosen])
        before, old = ast.unparse(node), getattr(node, name)
        setattr(node, name, _replacement(old, KINDS[kind], rng))
        found[f"{path.as_posix()}:{node.lineno}: {before} -> {ast.unparse(node)}"] = Mutation(
            path.as_posix(), ast.unparse(trees[path]), ROOMS[path.parts[1]], everything
        )
        setattr(node, name, old)
    return found


def _places(tree: ast.Module) -> list[tuple[int, ast.AST, str]]:
    """Kind, node and attribute of all operators and numbers."""
    found = []
    for node in ast.walk(tree):
        for name in ("ops", "op", "value"):
            old = getattr(node, name, None)
            old = old[0] if isinstance(old, list) else old
            found += [(k, node, name) for k, kind in enumerate(KINDS) if type(old) in kind]
    return found


def _replacement(old: Any, kind: dict[Any, Any], rng: random.Random) -> Any:
    """Replacement of a number or an operator, or of the first of several operators."""
    if isinstance(old, int):
        return old + 1
    if isinstance(old, float):
        return 2 * old or 1.0
    if isinstance(old, list):
        return [_replacement(old[0], kind, rng), *old[1:]]
    return rng.choice(kind[type(old)])()


def copied(folder: str) -> Path:
    """Copy of the checkout, with its compiled loops."""
    skip = shutil.ignore_patterns(".*", "build", "results", "*.egg-info", "*.pyc")
    return Path(shutil.copytree(ROOT, Path(folder, "copy"), ignore=skip))


def run(tests: tuple[str, ...], root: Path) -> str:
    """First test that fails in a checkout; '' if all pass."""
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    settings = {"PYTHONPATH": path, "HYPOTHESIS_PROFILE": "first", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", *tests]
    try:
        done = subprocess.run(
            command, cwd=root, env=os.environ | settings, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[1] if failed else "all of them, as it is not even imported" if done.returncode else ""


def caught(one: Mutation, copy: Path) -> str:
    """Test that detects a mutation; '' if none does."""
    file = copy / one.file
    before = file.read_text(encoding="utf-8")
    file.write_text(one.text, encoding="utf-8")
    try:
        return run(one.tests, copy) or run(one.wider, copy)
    finally:
        file.write_text(before, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mutations = stated()
    help = ", ".join([*mutations, "drawn"]).replace("%", "%%")
    parser.add_argument("names", nargs="*", metavar="MUTATION", help=help)
    parser.add_argument("--seed", type=int, default=SEED, help="of those that are drawn (default: %(default)s)")
    chosen = parser.parse_args()
    by_chance = drawn(COUNT, chosen.seed)
    known = mutations | by_chance
    names = [one for name in chosen.names or known for one in (by_chance if name == "drawn" else [name])]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no mutation {unknown[0]!r}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(folder)
        for tests in dict.fromkeys(mutations[name].tests for name in names if name in mutations):
            if found := run(tests, copy):
                print(f"without any mutation {found} fails")
                return 1
        print("| mutation | noticed by | seconds |\n|---|---|---|")
        noticed = []
        for name in names:
            began = time.perf_counter()
            noticed.append(caught(known[name], copy))
            by = f"`{noticed[-1]}`" if noticed[-1] else "**nothing**"
            print(f"| {name} | {by} | {time.perf_counter() - began:.0f} |", flush=True)
    return int(not all(noticed))


if __name__ == "__main__":
    sys.exit(main())
