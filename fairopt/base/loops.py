"""Numerical loops, interpreted on small arrays and compiled by numba otherwise, with a persistent cache.

    @compiled
    def total(values): ...

A call on small arrays runs in the interpreter at first: milliseconds of Python instead of many seconds of compilation.
A loop is compiled once its interpreted calls have cost about as much as its compilation, or when it receives a large
array; only then is numba imported.

Compiled code is cached by content: the name of a file includes a digest of the function, of the constants that it reads
and of the loops that it calls, in whichever module. A change therefore recompiles exactly the loops that depend on it.
Files are in `NUMBA_CACHE_DIR`, else in the package's own `__pycache__`, else (in a read-only installation) in the
user's cache folder. `fairopt warmup` compiles all foreseeable loops.
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

#: Options of numba for all loops: division by zero yields infinity, as in NumPy.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
#: Classes of named tuples still to be registered with numba.
_BUNDLES: list[type] = []
#: Lock for the construction of dispatchers.
_LOCK = threading.RLock()
#: `SMALL`: largest array size for an interpreted call. `BUDGET`: largest sum of array sizes over all interpreted calls
#: of a loop, which then have taken about as long as the compilation of the loop. Sizes are counted rather than time, so
#: that repeated runs of a program agree in all digits.
SMALL, BUDGET = 256, 60_000


class _Mode(threading.local):
    """Mode of a thread: callees are interpreted with their caller (`running`), or no loop is interpreted (`never`)."""

    running = False
    never = False


_MODE = _Mode()


@contextmanager
def compiling() -> Iterator[None]:
    """Compile all loops that this thread calls, whatever the size of their arrays."""
    before, _MODE.never = _MODE.never, True
    try:
        yield
    finally:
        _MODE.never = before


def _largest(arguments: Any) -> int:
    """Size of the largest array among the arguments, including the fields of named tuples; 0 without arrays."""
    sizes = (_largest(one) if isinstance(one, tuple) else getattr(one, "size", 0) for one in arguments)
    return max(sizes, default=0)


class Loop:
    """Function with an interpreted and a compiled form, the latter built on demand."""

    def __init__(self, function: FunctionType, options: dict[str, Any], visited: float = 1.0) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.options, self.visited = function, options, visited
        self.spent = 0

    def __call__(self, *arguments: Any) -> Any:
        if _MODE.running:
            return self.py_func(*arguments)
        known = "dispatcher" in vars(self) or _MODE.never
        if known or self.spent >= BUDGET or (size := int(_largest(arguments) * self.visited)) > SMALL:
            return self.dispatcher(*arguments)
        self.spent += max(size, 1)
        _MODE.running = True
        try:
            with np.errstate(all="ignore"):
                return self.py_func(*arguments)
        finally:
            _MODE.running = False

    @cached_property
    def dispatcher(self) -> Any:
        """Dispatcher of numba, built at the first access."""
        with _LOCK:
            if "dispatcher" not in vars(self):
                with clock.standing():
                    from . import dispatchers

                    while _BUNDLES:
                        dispatchers.bundle(_BUNDLES.pop())
                    vars(self)["dispatcher"] = dispatchers.dispatcher(self)
            return vars(self)["dispatcher"]

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Options that numba reads to decide whether calls are inlined."""
        return self.options

    @property
    def signatures(self) -> list[Any]:
        """Argument types for which this process has compiled or loaded the loop; empty before the first such call."""
        return list(self.dispatcher.signatures) if "dispatcher" in vars(self) else []

    @property
    def stem(self) -> str:
        """Prefix of the names of the loop's cache files."""
        return Path(self.py_func.__code__.co_filename).stem + "." + re.sub(r"\W+", ".", self.__qualname__)

    @property
    def kept(self) -> bool:
        """True if the cache has files of this loop, for any processor; numba is not imported."""
        place = os.environ.get("NUMBA_CACHE_DIR")
        here = Path(self.py_func.__code__.co_filename).parent / "__pycache__"
        folders = Path(place).glob("*") if place else [here]
        return any(True for folder in folders for _ in folder.glob(f"{self.stem}-*.nbc"))

    @cached_property
    def reads(self) -> dict[str, Any]:
        """Values by name of the globals, and of the loops in other modules, that the function reads; without itself."""
        known, names = self.py_func.__globals__, sorted({*_names(self.py_func.__code__)})
        found = {name: known[name] for name in names if name in known and known[name] is not self}
        for module, name in product([one for one in found.values() if isinstance(one, ModuleType)], names):
            if isinstance(one := getattr(module, name, None), Loop):
                found[f"{module.__name__}.{name}"] = one
        return found

    @cached_property
    def content(self) -> str:
        """Digest of everything that determines the compiled code: function, constants, options, and callees."""
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
        """Loops by qualified name that are compiled together with this loop, which is included."""
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
    *, fastmath: set[str] = ..., inline: bool = ..., inner: bool = ..., borrows: bool = ..., visited: float = ...
) -> Callable[[Callable[..., Any]], Loop]: ...
def compiled(
    function: Callable[..., Any] | None = None,
    *,
    fastmath: set[str] | None = None,
    inline: bool = False,
    inner: bool = False,
    borrows: bool = False,
    visited: float = 1.0,
) -> Loop | Callable[[Callable[..., Any]], Loop]:
    """Decorate a numerical loop, to be compiled by numba when that saves time.

    Parameters
    ----------
    fastmath : set of str, optional
        Flags of LLVM for floating-point optimisations.
    inline : bool
        Inline the function into its callers instead of compiling it separately, which takes 0.2 s for small functions.
    inner : bool
        Imply `borrows`, and build no wrapper for calls from Python, for functions that only other loops call.
    borrows : bool
        Disable reference counting, for functions that neither allocate arrays nor keep references to them. Counting
        would dominate the cost of passing named tuples of arrays between loops.
    visited : float
        Fraction of the elements of the largest array argument that a call visits.
    """
    options = _OPTIONS | ({"fastmath": fastmath} if fastmath else {})
    options |= {"_nrt": False} if borrows or inner else {}
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} if inner else {}
    options |= {"inline": "always"} if inline else {}
    return (lambda of: Loop(of, options, visited)) if function is None else Loop(function, options, visited)  # type: ignore[arg-type]


def bundle(kind: Kind) -> Kind:
    """Decorate a class of named tuples of arrays that loops receive and pass on by reference, and do not construct."""
    _BUNDLES.append(kind)
    return kind


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def instructions(code: CodeType) -> str:
    """Canonical text of the bytecode, names and constants, independent of the docstring and of line numbers."""
    constants = [None if k == 0 and isinstance(one, str) else one for k, one in enumerate(code.co_consts)]
    inside = [instructions(one) if isinstance(one, CodeType) else _value(one) for one in constants]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, inside))


def _value(value: object) -> str:
    """Text of a constant that is the same in every process: sets are sorted, and arrays written in full."""
    if hasattr(value, "tobytes"):
        return f"{value!r} {value.tobytes().hex()}"
    return repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
