"""Digest of the code that computes an answer: modules of fairopt that decide it, and the mechanism's own.

It is part of every cell's key, so that an answer of other code is never taken for one of this code.
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

#: Rooms that decide what a policy makes of a workload.
SIMULATING = ("model", "scheduling", "workloads")
#: Rooms that show, store or ask what others compute, and those that only some cells need; all others solve.
ASIDE = {"app", "base", "harness", "mechanisms", "properties", "scheduling", "study"}
#: Modules that only show or store what was computed.
_SHOWING = ("result/plot.py", "result/_show.py", "result/allocation_file.py")
#: Modules of rooms aside that decide answers and measures; and how loops are compiled.
_ALWAYS = ("harness/origin.py", "harness/solve.py", "harness/stack.py", "harness/simulate.py", "base/loops.py",
           "study/entitlement.py", "study/metrics.py")  # fmt: skip
#: What decides measured violations beside what solves.
VIOLATIONS = ("properties", "study/solve_many.py")


def solving() -> tuple[str, ...]:
    """Rooms that decide a mechanism's answers."""
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    return tuple(sorted(rooms - ASIDE | {"mechanisms/reference"}))


def computing(*rooms: str) -> list[Path]:
    """The files of rooms or modules that count, data of generators among them; of mechanisms only what all share."""
    found = (path for room in rooms for path in (PACKAGE / room, *(PACKAGE / room).rglob("*")))
    files = {path for path in found if path.is_file()}
    files -= {PACKAGE / name for name in _SHOWING}
    files |= {path for path in (PACKAGE / "mechanisms").glob("*.py") if _shared(path.stem)}
    files |= {PACKAGE / name for name in _ALWAYS}
    return sorted(path for path in files if "__pycache__" not in path.parts)


@cache
def of_fairopt(*rooms: str) -> str:
    """The digest of the files that count."""
    found = hashlib.sha256()
    for path in computing(*rooms):
        found.update(
            f"{path.relative_to(PACKAGE).as_posix()} {hashlib.sha256(path.read_bytes()).hexdigest()} ".encode()
        )
    return found.hexdigest()[:24]


def _shared(mechanism: str) -> bool:
    """True for modules of mechanisms that all answers depend on, as the price of fairness does on the utilitarian."""
    return mechanism.startswith(("_", "reference.")) or mechanism in ("utilitarian", "alpha_fair")


@cache
def of(kind: type, *rooms: str) -> str:
    """The digest of rooms of fairopt, and of a mechanism or policy: the modules of its classes, and what they import.

    Of packages that are installed nothing counts: their versions are in the row, not in the key.
    """
    parts = sorted(_of_modules(one.__module__ for one in kind.__mro__))
    if _file(sys.modules.get(kind.__module__)) is None and not _installed(kind.__module__):
        parts.append(_of_bytecode(kind))
    return hashlib.sha256("\n".join([of_fairopt(*rooms), *parts]).encode()).hexdigest()[:24]


def _of_modules(names: Iterable[str]) -> Iterator[str]:
    """Names and digests of modules that are nobody's packages, and of those that these import."""
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
    """Modules that a module imports, by their full names: `from a import b` may mean a module `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _file(module: ModuleType | None) -> Path | None:
    """The source of a module; of fairopt's own that of `PACKAGE`."""
    name = getattr(module, "__file__", None)
    if not isinstance(name, str) or not name.endswith(".py") or not Path(name).is_file():
        return None
    inside = getattr(module, "__name__", "").split(".")
    return PACKAGE.joinpath(*inside[1:-1], Path(name).name) if inside[0] == "fairopt" else Path(name)


def _installed(name: str) -> bool:
    """True for modules of Python, of installed packages, and those of fairopt in `of_fairopt`."""
    room, _, leaf = name.removeprefix("fairopt.").partition(".")
    if name.split(".")[0] == "fairopt":
        return room != "mechanisms" or not leaf or _shared(leaf)
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        return name in sys.builtin_module_names or name in sys.stdlib_module_names
    places = [sysconfig.get_path(place) for place in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(place and Path(path).is_relative_to(place) for place in places)


def _of_bytecode(kind: type) -> str:
    """Digest of a class without source, such as one typed at a prompt; it depends on the version of Python."""
    parts = [kind.__qualname__]
    for name, value in sorted(vars(kind).items()):
        made_by = getattr(getattr(value, "fget", None) or getattr(value, "__func__", None) or value, "__code__", None)
        if isinstance(made_by, CodeType):
            parts.append(f"{name} {instructions(made_by)}")
        elif isinstance(value, int | float | str | tuple) and name not in ("__doc__", "__module__", "__firstlineno__"):
            parts.append(f"{name} {value!r}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
