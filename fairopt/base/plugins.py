"""Plug-ins: files named by the user, and modules of installed packages with the entry point `fairopt.plugins`.

A plug-in is a Python module that defines mechanisms, sources or measures, which register themselves on definition, or a
figure (`NEEDS` and `figure`). docs/plugins.md has an example.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import DataError, FairoptError

GROUP = "fairopt.plugins"


@dataclass(frozen=True)
class Plugin:
    """Loaded file: its path, the digest of its content when it was loaded, and its module."""

    path: Path
    digest: str
    module: ModuleType


_LOADED: dict[Path, Plugin] = {}


def load(file: str | Path) -> Plugin:
    """Import a file as a module, once per content.

    Raises
    ------
    DataError
        The file cannot be read or imported, or registers a name that exists already.
    """
    if not Path(file).is_file():
        raise DataError(f"cannot read the plug-in {str(file)!r}: there is no such file")
    path = Path(file).resolve()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise DataError(f"cannot read the plug-in {file}: {error.strerror}") from None
    if path in _LOADED and _LOADED[path].digest == digest:
        return _LOADED[path]
    name = f"fairopt_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if path.suffix != ".py" or spec is None or spec.loader is None:
        raise DataError(f"the plug-in {file} is no Python file: its name must end in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        why = "" if isinstance(error, FairoptError) else f" cannot be imported: {type(error).__name__}"
        raise DataError(f"the plug-in {file}{why}: {error}") from error
    _LOADED[path] = found = Plugin(path, digest, module)
    return found


def needed(files: Iterable[tuple[str, str]]) -> None:
    """Load the plug-ins of a cell in the process that computes it.

    Raises
    ------
    DataError
        A plug-in is missing, or its content differs from that at the start of the sweep.
    """
    installed()
    for file, digest in files:
        if load(file).digest != digest:
            raise DataError(f"the plug-in {file} has changed since the sweep was started; start it again")


def loaded() -> list[Plugin]:
    """Plug-ins loaded from files in this process."""
    return list(_LOADED.values())


def modules() -> list[ModuleType]:
    """Modules of all plug-ins of this process, from installed packages and from files."""
    return [*installed(), *(plugin.module for plugin in _LOADED.values())]


def distinct(several: str, name: str, *made: Any) -> None:
    """Raise `DataError` if the definitions `made` of one name come from different places; None is ignored."""
    places = dict.fromkeys(f"{one.__module__}.{one.__qualname__}" for one in made if one is not None)
    if len(places) > 1:
        raise DataError(f"two {several} are called {name!r}, {' and '.join(places)}; rename yours")


def digest_of(module: str) -> str:
    """Digest of the file of a plug-in module; '' for other modules."""
    return next((plugin.digest for plugin in _LOADED.values() if plugin.module.__name__ == module), "")


@cache
def installed() -> tuple[ModuleType, ...]:
    """Import the plug-ins of installed packages, once, and return their modules; a failed import is a warning."""
    found: list[ModuleType] = []
    for entry in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            found.append(entry.load())
        except Exception as error:
            warnings.warn(f"the plug-in {entry.value} of an installed package cannot be loaded: {error}", stacklevel=2)
    return tuple(found)
