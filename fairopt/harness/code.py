"""What computes an answer, as a digest: the modules of fairopt that decide it, and the mechanism's own code.

It is part of every cell's key, so that an answer of other code is never taken for one of this code.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import marshal
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Lock
from types import CodeType, ModuleType
from typing import Any

from ..mechanisms import Mechanism
from . import _syntax

PACKAGE = Path(__file__).resolve().parents[1]

#: Python 3.11 may fail where two threads make trees at once.
_PARSING = Lock()

#: Rooms of fairopt whose modules compute answers, and modules of this one; of the mechanisms only what all share.
COMPUTING = (
    "certificates", "core", "engines", "exact", "game", "model", "result", "solving", "workloads",
)  # fmt: skip
_HERE = ("clusters.py", "measures.py", "run.py")
_SHARED = ("_*.py", "utilitarian.py", "alpha_fair.py")  # the price of fairness is measured against the utilitarian
#: Modules of these rooms that only show or store what was computed.
_SHOWING = (
    "result/_plot.py",
    "result/plot.py",
    "result/_show.py",
    "result/_text.py",
    "result/allocation_file.py",
    "model/_shown.py",
    "scheduling/_plot.py",
    "scheduling/_fluid_plot.py",
)


@cache
def of_fairopt() -> str:
    """The digest of fairopt itself: syntax trees of what computes answers, without docstrings. Once per process."""
    return _of_files(computing())


def _of_files(files: list[Path]) -> str:
    """Their syntax trees, and what generators draw from."""
    found = hashlib.sha256()
    with _no_collection():
        for path in files:
            found.update(f"{path.relative_to(PACKAGE).as_posix()} {_of_file(path)}\n".encode())
    for path in sorted((PACKAGE / "workloads" / "data").iterdir()):
        if path.is_file():
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:24]


@cache
def of_scheduling() -> str:
    """The same for what simulates: workloads, policies, simulators, and what a cell of a simulation does."""
    here = PACKAGE / "harness" / "simulations"
    files = [path for room in ("scheduling", "workloads", "model") for path in (PACKAGE / room).rglob("*.py")]
    files += [PACKAGE / "_loops.py", here / "run.py", here / "runners.py", here / "workloads.py"]
    return _of_files(sorted(path for path in files if path.relative_to(PACKAGE).as_posix() not in _SHOWING))


@cache
def of_properties() -> str:
    """The same for what measures violations of properties: these, and what solves many clusters."""
    return _of_files(sorted(path for room in ("properties", "many") for path in (PACKAGE / room).rglob("*.py")))


def of_policy(kind: type) -> str:
    """The digest of what simulates and of a policy, wherever its class is written."""
    return hashlib.sha256("\n".join([of_scheduling(), *_of_classes(kind)]).encode()).hexdigest()[:24]


def of_fluid(kind: type[Mechanism]) -> str:
    """The digest of what simulates and of a mechanism."""
    return hashlib.sha256(f"{of_scheduling()}\n{of(kind)}".encode()).hexdigest()[:24]


def computing() -> list[Path]:
    """The files that count."""
    files = [path for room in COMPUTING for path in (PACKAGE / room).rglob("*.py") if path.parent.name != "jobs"]
    files += [PACKAGE / "harness" / name for name in _HERE]
    files.append(PACKAGE / "_loops.py")  # how loops are compiled
    files += [path for pattern in _SHARED for path in (PACKAGE / "mechanisms").glob(pattern)]
    return sorted(path for path in files if path.relative_to(PACKAGE).as_posix() not in _SHOWING)


@cache
def of(kind: type[Mechanism], properties: bool = False) -> str:
    """The digest of fairopt and of a mechanism: its class and those it inherits from, wherever they are written.

    `properties`: of what measures violations as well.

    Outside fairopt also functions and constants of their modules that they name, and modules that these import, unless
    these are installed packages.
    """
    parts = [of_fairopt(), *_of_classes(kind), *([of_properties()] if properties else [])]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _of_classes(kind: type) -> list[str]:
    """A class and those it inherits from; what all of fairopt share is elsewhere."""
    parts: list[str] = []
    for one in kind.__mro__:
        module = sys.modules.get(one.__module__)
        if one.__module__.split(".")[0] == "fairopt":
            parts += _in_fairopt(one.__module__)
        elif module is None or not _installed(module):
            parts.append(_outside(one, module))
    return parts


def _in_fairopt(name: str) -> list[str]:
    """A mechanism's module, and those of other mechanisms that it imports; what all share is in `of_fairopt`."""
    home, _, leaf = name.rpartition(".")
    path = PACKAGE / "mechanisms" / f"{leaf}.py"
    if home != "fairopt.mechanisms" or leaf.startswith("_") or not path.is_file():
        return []
    others = {other for other in _syntax.imported([_tree(path)], home) if other.startswith(f"{home}.")}
    return [_of_file(path), *(part for other in sorted(others - {name}) for part in _in_fairopt(other))]


def _outside(kind: type, module: ModuleType | None) -> str:
    path = _file(module)
    name = kind.__qualname__.partition(".")[0]
    if path is not None and module is not None:
        try:
            nodes = _syntax.reached(_tree(path), name)
        except (OSError, SyntaxError, ValueError):
            nodes = []
        if nodes:
            return f"{_syntax.digest(nodes)} {_modules(nodes, module.__package__ or '', set())}"
    return _of_bytecode(kind)


def _modules(nodes: list[ast.stmt], package: str, seen: set[str]) -> str:
    """The digests of modules that statements import, and of those that these import: none that is installed."""
    found = []
    for name in sorted(set(_syntax.imported(nodes, package)) - seen):
        seen.add(name)
        module = sys.modules.get(name)
        path = _file(module)
        if module is None or path is None or name.split(".")[0] == "fairopt" or _installed(module):
            continue
        inside = _tree(path).body
        found.append(f"{name} {_of_file(path)} {_modules(inside, module.__package__ or '', seen)}")
    return " ".join(found)


def _of_bytecode(kind: type) -> str:
    """Of a class whose source is nowhere, such as one typed at a prompt: other versions of Python differ here."""
    found = hashlib.sha256(kind.__qualname__.encode())
    for name, value in sorted(vars(kind).items()):
        for inner in (value, getattr(value, "fget", None), getattr(value, "__func__", None)):
            made_by: Any = getattr(inner, "__code__", None)
            if isinstance(made_by, CodeType):
                found.update(f"{name} {_plain(made_by)}".encode())
        if isinstance(value, int | float | str | tuple) and name not in ("__doc__", "__module__", "__firstlineno__"):
            found.update(f"{name} {value!r}".encode())
    return found.hexdigest()[:24]


def _plain(code: CodeType) -> str:
    """Instructions, names and constants; not the lines on which they stand, nor docstrings."""
    constants = [_plain(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    text = constants[1:] if code.co_consts and isinstance(code.co_consts[0], str) else constants
    return hashlib.sha256(marshal.dumps((code.co_code, code.co_names, tuple(text)))).hexdigest()


def _file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name) if isinstance(name, str) and name.endswith(".py") and Path(name).is_file() else None


def _installed(module: ModuleType) -> bool:
    """Does it come with Python or with a package? Versions of these are in the row, not in the key."""
    path = getattr(module, "__file__", None)
    places = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (path is None and module.__name__ != "__main__") or any(
        place and Path(str(path)).is_relative_to(place) for place in places
    )


def _of_file(path: Path) -> str:
    return _syntax.digest([_tree(path)])


def _tree(path: Path) -> ast.Module:
    with _PARSING:
        return ast.parse(path.read_bytes())


@contextmanager
def _no_collection() -> Iterator[None]:
    """Trees are many small objects: looking for garbage among them takes longer than making them."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
