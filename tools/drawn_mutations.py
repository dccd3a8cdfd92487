"""Mutations that `mutate.py` draws: an operator or a number of the package changed, in a copy of the checkout."""

from __future__ import annotations

import ast
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where they are drawn from, and the tests that run first.
ROOMS = {
    "core": ("tests/core", "tests/laws/test_effort.py"),
    "certificates": ("tests/certificates", "tests/test_checker.py", "tests/engines/test_rational.py"),
    "model": ("tests/test_cluster.py", "tests/test_criteria.py", "tests/test_polytope.py", "tests/mechanisms"),
}
#: What an operator may be mistaken for; kinds are equally likely, and so are the places of each.
KINDS: tuple[dict[type[ast.AST], tuple[type[ast.AST], ...]], ...] = (
    {ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE)}
    | {ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,)},
    {ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,)},
    {int: (int,), float: (float,)},  # the next integer, twice the number
)


def _places(tree: ast.Module) -> list[tuple[int, ast.AST, str]]:
    """Of each operator and number its kind, its node, and the node's attribute."""
    found = []
    for node in ast.walk(tree):
        for name in ("ops", "op", "value"):
            old = getattr(node, name, None)
            old = old[0] if isinstance(old, list) else old
            found += [(k, node, name) for k, kind in enumerate(KINDS) if type(old) in kind]
    return found


def _change(node: ast.AST, name: str, rng: random.Random) -> None:
    """In place."""
    old = getattr(node, name)
    if name == "value":
        node.value = old + 1 if isinstance(old, int) else 2 * old or 1.0
    elif name == "ops":
        node.ops[0] = rng.choice(KINDS[0][type(old[0])])()
    else:
        node.op = rng.choice(KINDS[1][type(old)])()


def draw(count: int, seed: int) -> dict[str, tuple[str, str]]:
    """By what is changed: the file, and what it is to hold."""
    files = [path for room in ROOMS for path in sorted((ROOT / "fairopt" / room).rglob("*.py"))]
    places = [(kind, path, k) for path in files for k, (kind, *_) in enumerate(_places(ast.parse(path.read_text())))]
    rng, found = random.Random(seed), {}
    while len(found) < count:
        chosen = rng.randrange(len(KINDS))
        _, path, k = rng.choice([one for one in places if one[0] == chosen])
        tree = ast.parse(path.read_text())
        _, node, name = _places(tree)[k]
        before = ast.unparse(node)
        _change(node, name, rng)
        file = path.relative_to(ROOT).as_posix()
        found[f"{file}:{node.lineno}: {before} -> {ast.unparse(node)}"] = file, ast.unparse(tree)
    return found


def copied(folder: str) -> Path:
    """A copy of the checkout, with its compiled loops."""
    skip = shutil.ignore_patterns(".*", "build", "results", "*.egg-info", "*.pyc")
    return Path(shutil.copytree(ROOT, Path(folder, "copy"), ignore=skip))


@contextmanager
def applied(file: Path, text: str) -> Iterator[None]:
    """The file with other content, until the end."""
    before = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(before)
