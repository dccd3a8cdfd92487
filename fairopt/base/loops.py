"""Compiled loops: numba makes them at their first call, and keeps them for the processes that follow.

    @compiled
    def total(values): ...

A loop on small arrays runs as it is written at first: milliseconds of Python in place of many seconds of a compiler.
One that has run so for as long as is worth it, or has large arrays, is compiled; numba is imported for that, and not
before.

Compiled code is kept by content: the name of its file has a digest of the function, of the constants that it reads and
of the loops that it calls, wherever these are written. So what has changed is compiled again, and only that. Files are
in `NUMBA_CACHE_DIR`, else in the package's own `__pycache__`, else (a package that nobody may write to) in the user's
folder for caches. `fairopt warmup` compiles what can be foreseen.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import product
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, overload

import numpy as np

from . import clock

Kind = TypeVar("Kind", bound=type)

#: How all loops are compiled: a division by zero is infinite, as in NumPy.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
#: Classes of named tuples that numba does not know yet.
_BUNDLES: list[type] = []
#: Dispatchers are made one at a time.
_MAKING = threading.RLock()
#: Most numbers in an array of a loop that runs as it is written, and in those of all its calls together, which take at
#: most about as long as its compilation. Counted, so that a program that is run again has the same digits.
SMALL, SPARED = 256, 60_000


class _Written(threading.local):
    """Mode of this thread: loops run as written, with those that they call, or all are compiled."""

    running = False
    never = False


_WRITTEN = _Written()


@contextmanager
def compiling() -> Iterator[None]:
    """Compile whatever this thread calls, small or not."""
    before, _WRITTEN.never = _WRITTEN.never, True
    try:
        yield
    finally:
        _WRITTEN.never = before


def _largest(arguments: Any) -> int:
    """Size of the largest array among arguments, bundles included."""
    sizes = (_largest(one) if isinstance(one, tuple) else getattr(one, "size", 0) for one in arguments)
    return max(sizes, default=0)


class Loop:
    """A function that is compiled when it is called, or when a loop that calls it is compiled."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.options = function, options
        self.spent = 0

    def __call__(self, *arguments: Any) -> Any:
        if _WRITTEN.running:
            return self.py_func(*arguments)
        known = "dispatcher" in vars(self) or _WRITTEN.never
        if known or self.spent >= SPARED or (size := _largest(arguments)) > SMALL:
            return self.dispatcher(*arguments)
        self.spent += max(size, 1)
        _WRITTEN.running = True
        try:
            with np.errstate(all="ignore"):
                return self.py_func(*arguments)
        finally:
            _WRITTEN.running = False

    @cached_property
    def dispatcher(self) -> Any:
        """Dispatcher of numba."""
        with _MAKING:
            if "dispatcher" not in vars(self):
                with clock.standing():
                    from . import dispatchers

                    while _BUNDLES:
                        dispatchers.bundle(_BUNDLES.pop())
                    vars(self)["dispatcher"] = dispatchers.dispatcher(self)
            return vars(self)["dispatcher"]

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Target options, from which numba reads whether calls are inlined."""
        return self.options

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments that it is compiled for in this process."""
        return list(self.dispatcher.signatures) if "dispatcher" in vars(self) else []

    @property
    def stem(self) -> str:
        """Prefix of its file names."""
        return Path(self.py_func.__code__.co_filename).stem + "." + re.sub(r"\W+", ".", self.__qualname__)

    @property
    def kept(self) -> bool:
        """True if there are files of it, of whichever processor; numba is not imported."""
        place = os.environ.get("NUMBA_CACHE_DIR")
        here = Path(self.py_func.__code__.co_filename).parent / "__pycache__"
        folders = Path(place).glob("*") if place else [here]
        return any(True for folder in folders for _ in folder.glob(f"{self.stem}-*.nbc"))

    @cached_property
    def reads(self) -> dict[str, Any]:
        """The global names that the function reads, with their values; itself apart."""
        known, names = self.py_func.__globals__, sorted({*_names(self.py_func.__code__)})
        found = {name: known[name] for name in names if name in known and known[name] is not self}
        for module, name in product([one for one in found.values() if isinstance(one, ModuleType)], names):
            if isinstance(one := getattr(module, name, None), Loop):
                found[f"{module.__name__}.{name}"] = one
        return found

    @cached_property
    def content(self) -> str:
        """A digest of what is compiled: this function, constants, and the loops that it calls."""
        options = {name: _value(value) for name, value in self.options.items()}
        found = hashlib.sha256(f"{instructions(self.py_func.__code__)} {options}".encode())
        for name, value in self.reads.items():
            if isinstance(value, Loop):
                value = value.content
            elif isinstance(value, ModuleType | FunctionType | type):
                value = value.__name__
            found.update(f" {name} {_value(value)}".encode())
        return found.hexdigest()[:16]

    @cached_property
    def calls(self) -> dict[str, Loop]:
        """The loops that are compiled with it, itself among them, by name."""
        found = {f"{self.__module__}.{self.__qualname__}": self}
        for value in self.reads.values():
            if isinstance(value, Loop):
                found |= value.calls
        return found

    __module__: str
    __qualname__: str


@overload
def compiled(function: Callable[..., Any]) -> Loop: ...
@overload
def compiled(
    *, fastmath: set[str] = ..., inline: bool = ..., inner: bool = ..., borrows: bool = ...
) -> Callable[[Callable[..., Any]], Loop]: ...
def compiled(
    function: Callable[..., Any] | None = None,
    *,
    fastmath: set[str] | None = None,
    inline: bool = False,
    inner: bool = False,
    borrows: bool = False,
) -> Loop | Callable[[Callable[..., Any]], Loop]:
    """Decorate a function that numba compiles.

    Parameters
    ----------
    fastmath : liberties that it may take with numbers
    borrows : it makes no array and keeps none, so that references are not counted; for loops that hand bundles of
        arrays to each other that costs more than all the rest
    inner : the same, and loops alone call it: there is no way in from Python
    inline : it is written into the loops that call it, and not compiled by itself, a fifth of a second for small ones
    """
    options = _OPTIONS | ({"fastmath": fastmath} if fastmath else {})
    options |= {"_nrt": False} if borrows or inner else {}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} if inner else {}
    options |= {"inline": "always"} if inline else {}
    return (lambda of: Loop(of, options)) if function is None else Loop(function, options)  # type: ignore[arg-type]


def bundle(kind: Kind) -> Kind:
    """Decorate a named tuple of arrays that loops take and hand on, and do not make."""
    _BUNDLES.append(kind)
    return kind


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def instructions(code: CodeType) -> str:
    """Instructions, names and constants but the docstring, on whichever lines they stand."""
    constants = [None if k == 0 and isinstance(one, str) else one for k, one in enumerate(code.co_consts)]
    inside = [instructions(one) if isinstance(one, CodeType) else _value(one) for one in constants]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, inside))


def _value(value: object) -> str:
    """The same text in every process: sets have no order, and long arrays are not printed in full."""
    if hasattr(value, "tobytes"):
        return f"{value!r} {value.tobytes().hex()}"
    return repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
