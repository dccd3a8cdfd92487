"""Code as what it does: syntax trees without docstrings, so that these, comments and line breaks change nothing."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator

_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def digest(nodes: Iterable[ast.AST]) -> str:
    """24 hexadecimal digits; the same in every version of Python that reads the code alike."""
    words: list[str] = []
    for node in nodes:
        _write(node, words)
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]


def _write(node: ast.AST, words: list[str]) -> None:
    """Kinds, names and constants in order. Empty fields are left out: later Pythons have more of them."""
    words.append(type(node).__name__)
    for name in node._fields:
        value = getattr(node, name, None)
        if name == "body" and isinstance(node, _WITH_DOCSTRING):
            value = _without_docstring(value)
        if value is None or value == []:
            continue
        words.append(name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                _write(item, words)
            else:
                words.append(repr(item))
    words.append(")")


def _without_docstring(body: list[ast.stmt] | None) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:] if body else []
    return body or []


def definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements of a module that give a name its meaning, by name; `*` for imports of everything."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _bound(statement):
            found.setdefault(name, []).append(statement)
    return found


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement binds in its module: by definition, import or assignment, in branches and loops too."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def reached(tree: ast.Module, name: str) -> list[ast.stmt]:
    """The statements that a name of a module depends on by what they name, in the order of the file."""
    known = definitions(tree)
    wanted, seen = [name, "*"], set()
    chosen: dict[int, ast.stmt] = {}
    while wanted:
        one = wanted.pop()
        if one in seen:
            continue
        seen.add(one)
        for statement in known.get(one, ()):
            chosen[id(statement)] = statement
            wanted += [node.id for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return [statement for statement in tree.body if id(statement) in chosen]


def imported(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    """Modules that statements import, by their full names: `from a import b` may mean a module `a.b`."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
