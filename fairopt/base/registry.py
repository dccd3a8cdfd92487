"""Registries of classes by name, filled lazily from the modules of a package.

A lookup imports the module with the name of the class, and all modules only if the class is not found there. Thus a
user of DRF waits only for the imports of `drf.py`, and no list of modules has to be maintained.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

from . import plugins
from .errors import DataError
from .names import meant, short

Kind = TypeVar("Kind", bound=type)


class Registry(MutableMapping[str, Kind]):
    """Mapping from names to the classes of a package and of plug-ins, which imports modules on demand."""

    def __init__(self, package: str, folder: Path, what: str = "", several: str = "") -> None:
        self._package, self._what, self._several = package, what, several
        self._known: dict[str, Kind] = {}
        names = [module.name for module in pkgutil.iter_modules([str(folder)])]
        self._files = {plain(name): name for name in names if not name.startswith("_")}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._known:
            self._import([plain(name)])
        if name not in self._known:
            self._import(self._files)
        return self._known[name]

    def __setitem__(self, name: str, kind: Kind) -> None:
        self._known[name] = kind

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        self._import(self._files)
        return iter(self._known)

    def __len__(self) -> int:
        self._import(self._files)
        return len(self._known)

    def defined(self, kind: Any) -> None:
        """Register a class if it has a name; a redefinition in one module, as in notebooks, replaces the old class.

        A class with the name of a class of another module raises `DataError`.
        """
        if kind.__dict__.get("name"):
            old: Any = self.taken(kind.name, kind.__module__)
            if old is not None and old.name == kind.name:
                plugins.distinct(self._several, kind.name, old, kind)
            if "title" not in kind.__dict__:
                kind.title = kind.__name__
            self[kind.name] = kind

    def names(self) -> list[str]:
        """Sorted names of all classes, plug-ins included."""
        plugins.installed()
        return sorted(self)

    def named(self, name: object) -> Kind:
        """Return the class with the given registered name or class name; case, `-` and `_` are ignored.

        Raises
        ------
        DataError
            There is no such class; the message suggests the closest name.
        """
        plugins.installed()
        if (found := self.find(str(name))) is not None:
            return found
        known = self.names()
        hint = meant(str(name).lower(), known)
        raise DataError(f"there is no {self._what} {short(name)}; known: {', '.join(known)}{hint}")

    def made(self, name: str, given: dict[str, Any]) -> Any:
        """Instantiate a class by its name, with parameters.

        Raises
        ------
        DataError
            The name or a parameter is unknown, or a value is invalid.
        """
        kind: Any = self.named(name)
        fields = [field.name for field in dataclasses.fields(kind)]
        if unknown := [parameter for parameter in given if parameter not in fields]:
            known = ", ".join(fields) or "none"
            raise DataError(f"{kind.name} does not take {', '.join(unknown)}; its parameters: {known}")
        try:
            return kind(**given)
        except DataError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{kind.name} cannot use these parameters: {error}") from None

    def described(self, text: str) -> tuple[Kind, dict[str, Any]]:
        """Parse a text such as `alpha-fair(share=asset)` into class and parameters; `DataError` if it is invalid."""
        name, inside = parts(text, self._what)
        return self.named(name), {} if inside is None else parameters(text, inside)

    def one(self, given: object, base: type) -> Any:
        """Return an instance unchanged, or instantiate the class that a text describes.

        Raises
        ------
        DataError
            The argument is a class, or neither text nor an instance of `base`, or the text is invalid.
        """
        if isinstance(given, base):
            return given
        if isinstance(given, type) and issubclass(given, base):
            raise DataError(f"{given.__name__} is a class; give an instance of it, {given.__name__}(), or its name")
        if not isinstance(given, str):
            raise DataError(f"{short(given)} is no {self._what}; give a name, or an instance of {base.__name__}")
        kind: Any
        kind, parameters = self.described(given)
        return self.made(kind.name, parameters)

    def taken(self, name: str, module: str | None) -> Kind | None:
        """Find the registered class of a name, or None; a `module` outside of the package first imports the package."""
        if not (module or "").startswith(f"{self._package}."):
            self._import(self._files)
        return self._known.get(name)

    def find(self, name: str) -> Kind | None:
        """Find a class by its registered name or class name, regardless of case, `-` and `_`; None if there is none."""
        if name in self._known:
            return self._known[name]
        for files in ([plain(name)], self._files):
            self._import(files)
            for known, kind in self._known.items():
                if plain(name) in (plain(known), plain(kind.__name__)):
                    return kind
        return None

    def _import(self, files: Iterable[str]) -> None:
        for name in files:
            if name in self._files:
                importlib.import_module(f"{self._package}.{self._files[name]}")


def plain(name: str) -> str:
    """Normal form of a name: lower case, without `-`, `_` and spaces."""
    return re.sub(r"[-_\s]", "", name.lower())


def parts(text: str, what: str) -> tuple[str, str | None]:
    """Split `name(arguments)` into the name and the text of its arguments (None without brackets).

    Another text raises `DataError`, whose message calls it no `what`.
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\((.*)\))?\s*", text)
    if match is None:
        raise DataError(f"{short(text)} is not a {what}; write a name, or name(parameter=value, ...)")
    return match[1], match[2]


def parameters(text: str, inside: str) -> dict[str, Any]:
    """Parse the arguments `parameter=value, ...` of a text; other texts and repeated parameters raise `DataError`."""
    source = f"f({inside})"
    try:
        call: ast.expr | None = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    # The parsed call must span the whole text, since `f(alpha=1)(alpha=2)` is a call of a result, and `f(x=1)#` has a
    # comment.
    whole = isinstance(call, ast.Call) and call.end_col_offset == len(source.encode())
    if not isinstance(call, ast.Call) or not whole or not isinstance(call.func, ast.Name) or call.args:
        raise DataError(f"{short(text)}: the text in brackets must be parameter=value, ...")
    given: dict[str, Any] = {}
    for part in call.keywords:
        if part.arg is None or part.arg in given:
            again = "has **" if part.arg is None else f"gives {part.arg} twice"
            raise DataError(f"{text!r} {again}; write every parameter once, as parameter=value")
        given[part.arg] = _value(part.value)
    return given


def _value(node: ast.expr) -> Any:
    """Evaluate a number, a string, a list or a tuple; bare words such as `best-response` are strings, except `inf`.

    Another expression raises `DataError`.
    """
    if isinstance(node, ast.List | ast.Tuple):
        return (tuple if isinstance(node, ast.Tuple) else list)(map(_value, node.elts))
    try:
        if isinstance(node, ast.Name | ast.BinOp) and re.fullmatch(r"[^\W\d]\w*( - [^\W\d]\w*)*", ast.unparse(node)):
            word = ast.unparse(node).replace(" ", "")
            return float("inf") if word in ("inf", "infinity") else word
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError):
        raise DataError(f"{ast.unparse(node)!r} is not a value: write a number, a word or a list") from None
