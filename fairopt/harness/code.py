"""Digests of the code that determines a result: modules of fairopt, and modules of the mechanism.

Digests are part of a cell's key, so that results of other code are never taken for results of the present code.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, ModuleType

from ..base.loops import instructions

PACKAGE = Path(__file__).resolve().parents[1]

#: Packages that determine the schedule of a policy.
SIMULATING = ("model", "scheduling", "workloads")
#: Packages that only display, store or request results, and packages that only some cells use; all other packages
#: determine allocations.
ASIDE = {"app", "base", "harness", "mechanisms", "properties", "scheduling", "study"}
#: Modules that only display or store results.
_SHOWING = ("result/plot.py", "result/_show.py", "result/allocation_file.py")
#: Modules of packages in `ASIDE` that nevertheless determine results and measures, and `base/loops.py`, which
#: determines how loops are compiled.
_ALWAYS = ("harness/origin.py", "harness/solve.py", "harness/stack.py", "harness/simulate.py", "base/loops.py",
           "study/entitlement.py", "study/metrics.py")  # fmt: skip
#: Folders that installers put packages into.
_SITES = {"site-packages", "dist-packages"}
#: Packages and modules that determine measured violations, beside the packages that `solving` lists.
VIOLATIONS = ("properties", "study/solve_many.py")


@cache
def solving() -> tuple[str, ...]:
    """Packages that determine the allocations of mechanisms."""
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    return tuple(sorted(rooms - ASIDE | {"mechanisms/reference"}))


def computing(*rooms: str) -> list[Path]:
    """Files that enter the digest, sorted: those of the given packages or modules, and modules that all cells share."""
    found = (path for room in rooms for path in (PACKAGE / room, *(PACKAGE / room).rglob("*")))
    files = {path for path in found if path.is_file()}
    files -= {PACKAGE / name for name in _SHOWING}
    files |= {path for path in (PACKAGE / "mechanisms").glob("*.py") if _shared(path.stem)}
    files |= {PACKAGE / name for name in _ALWAYS}
    return sorted(path for path in files if "__pycache__" not in path.parts)


@cache
def of_fairopt(*rooms: str) -> str:
    """Digest of the files that `computing` lists for the given packages."""
    found = hashlib.sha256()
    for path in computing(*rooms):
        found.update(
            f"{path.relative_to(PACKAGE).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()} ".encode()
        )
    return found.hexdigest()[:24]


def _shared(mechanism: str) -> bool:
    """True for a module that all mechanisms share, or that computes the price of fairness."""
    return mechanism.startswith(("_", "reference.")) or mechanism in ("utilitarian", "alpha_fair")


@cache
def of(kind: type, *rooms: str) -> str:
    """Digest of packages of fairopt and of the modules of a mechanism or policy, of its base classes and imports.

    Installed packages are excluded: rows state their versions, on which keys do not depend.
    """
    parts = sorted(_of_modules(one.__module__ for one in kind.__mro__))
    if _file(sys.modules.get(kind.__module__)) is None and not _installed(kind.__module__):
        parts.append(_of_bytecode(kind))
    return hashlib.sha256("\n".join([of_fairopt(*rooms), *parts]).encode()).hexdigest()[:24]


def _of_modules(names: Iterable[str]) -> Iterator[str]:
    """Yield name and digest of the modules that are not installed, and, recursively, of the modules they import."""
    todo, seen = [*names], set[str]()
    while todo:
        name = todo.pop()
        path = _file(sys.modules.get(name))
        if name in seen or path is None or _installed(name):
            continue
        seen.add(name)
        text = path.read_bytes()
        yield f"{name} {hashlib.sha256(text).hexdigest()}"
        todo += _imported(ast.parse(text), sys.modules[name].__package__ or "")


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield full names of the modules that a module may import: `from a import b` may refer to a module `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _file(module: ModuleType | None) -> Path | None:
    """Source file of a module, below `PACKAGE` if the module is of fairopt; None if it has no source file."""
    name = getattr(module, "__file__", None)
    if not isinstance(name, str) or not name.endswith(".py") or not Path(name).is_file():
        return None
    inside = getattr(module, "__name__", "").split(".")
    return PACKAGE.joinpath(*inside[1:-1], Path(name).name) if inside[0] == "fairopt" else Path(name)


def _installed(name: str) -> bool:
    """True for modules of Python and of installed packages, and for modules of fairopt covered by `of_fairopt`."""
    room, _, leaf = name.removeprefix("fairopt.").partition(".")
    if name.split(".")[0] == "fairopt":
        return room != "mechanisms" or not leaf or _shared(leaf)
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        return name in sys.builtin_module_names or name in sys.stdlib_module_names
    if not _SITES.isdisjoint(Path(path).parts):  # also packages of another environment that is on `sys.path`
        return True
    places = [sysconfig.get_path(place) for place in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(place and Path(path).is_relative_to(place) for place in places)


def _of_bytecode(kind: type) -> str:
    """Digest of the bytecode of a class without source file; it depends on the version of Python."""
    parts = [kind.__qualname__]
    for name, value in sorted(vars(kind).items()):
        made_by = getattr(getattr(value, "fget", None) or getattr(value, "__func__", None) or value, "__code__", None)
        if isinstance(made_by, CodeType):
            parts.append(f"{name} {instructions(made_by)}")
        elif isinstance(value, int | float | str | tuple) and name not in ("__doc__", "__module__", "__firstlineno__"):
            parts.append(f"{name} {value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
