"""Mechanisms by name. A file of their package is imported for the mechanism that it is named after, or for all of them.

So whoever asks for DRF waits for `drf.py` and what that needs, and no file has to be listed anywhere.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)


class Registry(MutableMapping[str, Kind]):
    """A dict of all classes of a package by their names, those of plug-ins included; it fills itself when it has to."""

    def __init__(self, package: str, folder: Path) -> None:
        self._package = package
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

    def taken(self, name: str, module: str) -> Kind | None:
        """Which has this name already, when a module defines another: all of this package come before plug-ins."""
        if not module.startswith(f"{self._package}."):
            self._import(self._files)
        return self._known.get(name)

    def find(self, name: str) -> Kind | None:
        """By name, or by that of the class, in which case, `-` and `_` do not matter."""
        for files in ([plain(name)], self._files):
            self._import(files)
            plainly = {plain(kind.__name__): kind for kind in self._known.values()}
            plainly |= {plain(known): kind for known, kind in self._known.items()}
            if plain(name) in plainly:
                return plainly[plain(name)]
        return None

    def _import(self, files: Iterable[str]) -> None:
        for name in files:
            if name in self._files:
                importlib.import_module(f"{self._package}.{self._files[name]}")


def plain(name: str) -> str:
    """A name in small letters, without `-` and `_`."""
    return re.sub(r"[-_\s]", "", name.lower())
