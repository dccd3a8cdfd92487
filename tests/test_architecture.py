"""The second test of the house and its rules: who may call a solver, what an import costs, what must be documented."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import fairopt
from fairopt.mechanisms import REGISTRY, get, names

ROOT = Path(fairopt.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
#: The core; presentation and studies have tests of their own.
CORE = ["errors", "model", "exact", "certificates", "result", "engines", "game", "mechanisms"]


def imports_of(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(local name, what it stands for) of every import in a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield alias.asname or alias.name, "cvxpy" if full.endswith("_libraries.cp") else full


def solver_calls(source: str) -> list[int]:
    """Lines that call `.solve` on something made by `cp.Problem`, or call CVXPY's solver interface."""
    tree = ast.parse(source)
    problems = {local for local, full in imports_of(tree) if full in ("cvxpy.Problem",)}
    modules = {local for local, full in imports_of(tree) if full == "cvxpy"}

    def makes_problem(node: ast.AST | None) -> bool:
        if not isinstance(node, ast.Call):
            return False
        made = node.func
        if isinstance(made, ast.Name):
            return made.id in problems
        return (
            isinstance(made, ast.Attribute)
            and made.attr == "Problem"
            and isinstance(made.value, ast.Name)
            and made.value.id in modules
        )

    def names_problem(note: ast.AST | None) -> bool:
        return note is not None and "Problem" in ast.unparse(note).split(".")[-1:] and "cp." in ast.unparse(note)

    def known_in(scope: ast.AST) -> set[str]:
        known: set[str] = set()
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and makes_problem(node.value):
                known |= {ast.unparse(target) for target in node.targets}
            elif isinstance(node, ast.AnnAssign) and (makes_problem(node.value) or names_problem(node.annotation)):
                known.add(ast.unparse(node.target))
            elif isinstance(node, ast.arg) and names_problem(node.annotation):
                known.add(node.arg)
        return known

    # Attributes hold all over the file, plain names only inside their function.
    attributes = {name for name in known_in(tree) if "." in name}
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] or [tree]
    found = set()
    for scope in [*scopes, *tree.body]:
        known = known_in(
            tree if scope in tree.body and not isinstance(scope, ast.FunctionDef | ast.ClassDef) else scope
        )
        if isinstance(scope, ast.ClassDef):
            known = set()
        for node in ast.walk(scope):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("solve", "solve_via_data", "get_problem_data")
                and (makes_problem(node.func.value) or ast.unparse(node.func.value) in known | attributes)
            ):
                found.add(node.lineno)
    return sorted(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_one_file_calls_a_solver(path: Path) -> None:
    calls = solver_calls(path.read_text(encoding="utf-8"))
    assert bool(calls) == (path == ROOT / "engines" / "reference" / "solvers.py"), f"{path.name}: lines {calls}"


@pytest.mark.parametrize(
    "code",
    [
        "import cvxpy as cp\np = cp.Problem(None)\np.solve()",
        "from ..._libraries import cp\np = cp.Problem(None)\np.solve()",
        "import cvxpy\ncvxpy.Problem(None).solve()",
        "from cvxpy import Problem\nself.x = Problem(None)\nself.x.solve(solver='SCS')",
        "import cvxpy as cp\ndef f(p: cp.Problem):\n    return p.solve()",
    ],
)
def test_the_check_finds_calls(code: str) -> None:
    assert solver_calls(code)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_longer_than_600_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


def test_judges_know_no_engine() -> None:
    """Certificates vouch for engines, so they may not lean on them: nor on CVXPY."""
    code = "import fairopt.certificates, sys; assert not {'cvxpy', 'fairopt.engines'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    for path in (ROOT / "certificates").glob("*.py"):
        stands_for = [full for _, full in imports_of(ast.parse(path.read_text(encoding="utf-8")))]
        assert not [full for full in stands_for if "engines" in full or "cvxpy" in full]


@pytest.mark.parametrize("room", ["", ".certificates", ".game", ".harness", ".mechanisms", ".papers", ".report"])
def test_what_a_room_offers_is_there(room: str) -> None:
    there = importlib.import_module(f"fairopt{room}")
    assert not [name for name in getattr(there, "__all__", []) if not hasattr(there, name)]


def core_modules() -> Iterator[ModuleType]:
    for name in CORE:
        module = importlib.import_module(f"fairopt.{name}")
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}."):
            yield importlib.import_module(found.name)


def public(module: ModuleType) -> Iterator[tuple[str, object]]:
    for name, thing in vars(module).items():
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__:
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for method, inside in vars(thing).items():
                    function = inside.fget if isinstance(inside, property) else getattr(inside, "func", inside)
                    if not method.startswith("_") and inspect.isfunction(function):
                        yield f"{module.__name__}.{name}.{method}", getattr(thing, method)


@pytest.mark.parametrize("module", list(core_modules()), ids=lambda module: module.__name__)
def test_public_things_are_documented(module: ModuleType) -> None:
    if module.__name__ not in ("fairopt.game",):
        assert module.__doc__, module.__name__
    # inspect.getdoc inherits: what a base class documents need not be said again.
    undocumented = [name for name, thing in public(module) if not inspect.getdoc(thing)]
    assert not undocumented


@pytest.mark.parametrize("name", names())
def test_mechanisms_say_what_they_are(name: str) -> None:
    kind = type(get(name).variants()[0])
    assert kind.__doc__
    assert "Source:" in kind.__doc__
    assert kind.source
    assert kind.title
    assert fairopt.properties.in_short(kind)


def test_the_front_door() -> None:
    for name in fairopt.__all__:
        assert name in dir(fairopt)
    for name in (
        "Cluster",
        "Allocation",
        "Certificate",
        "Criterion",
        "DRF",
        "PSDSF",
        "metrics",
        "errors",
        "mechanisms",
    ):
        assert getattr(fairopt, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = fairopt.nonsense
    assert not hasattr(fairopt, "Nonsense")
    kinds = {type(get(name).variants()[0]) for name in names()}
    assert all(getattr(fairopt, kind.__name__) is kind for kind in kinds), "a mechanism is missing from the front door"
    assert {kind.__name__ for kind in kinds} <= set(fairopt.__all__)
    everything: dict[str, object] = {}
    exec("from fairopt import *", everything)
    assert set(fairopt.__all__) <= set(everything)


def test_the_front_door_names_no_mechanism() -> None:
    """What is defined in `fairopt/mechanisms` is there without a line anywhere else."""
    source = (ROOT / "__init__.py").read_text(encoding="utf-8").partition('"""\n\nfrom')[2]
    assert not [name for name in names() if type(get(name).variants()[0]).__name__ in source]


def test_mechanisms_of_others_stay_outside() -> None:
    @dataclass(frozen=True)
    class Outside(get("drf").__class__):  # type: ignore[misc]
        """Not of this package."""

        name = "outside"

    try:
        assert not hasattr(fairopt, "Outside")
        assert "Outside" not in dir(fairopt)
    finally:
        del REGISTRY["outside"]
