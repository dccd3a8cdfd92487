"""Compilation of loops by numba: dispatchers, a cache keyed by content, and a message where compiling takes long.

Numba's own cache is unsuitable for three reasons. First, it validates code by the date of the file that defines the
function: callers in other files keep the old version of a changed loop. It also writes the index, under the name of the
old code, before the code itself, so that a concurrent reader may run the old version. Here the name of a file contains
a digest of the content. Second, processes that start together all compile the same loops: here one process compiles,
and the others wait for its file. Third, numba copies the code of callees into each caller, and compiles the copies at
every level: here the code of a large loop remains in its own file, and is linked by its name, which is derived from its
content. For the 16 loops of a first game, copying takes 1.56 times as long.

The right to compile is a lock on a file beside the file of the loop; it ends with the process that holds it. Other
processes wait for the lock up to `PATIENCE` seconds; on file systems without locks every process compiles for itself.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, cgutils, codegen, compiler, event, imputils, serialize, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from . import clock

#: `_LOCKS`: module of file locks, on POSIX systems. `_CLAIMS`: file descriptors of locks that this process holds, by
#: the file of the loop.
_LOCKS: Any = import_module("fcntl") if os.name == "posix" else None
_CLAIMS: dict[Path, int] = {}
#: Seconds: `PATIENCE` is the longest wait for the lock of another process, `_POLL` the interval between attempts.
PATIENCE, _POLL = 60.0, 0.05
#: Largest number of instructions of a callee that is copied into its callers; compilers rarely inline longer functions.
SMALL = 100
#: Version of the file format.
FORMAT = 5
#: Size of a digest in bytes.
_SEAL = hashlib.sha256().digest_size
#: Thresholds of the garbage collector during compilation: numba creates many long-lived objects, whose traversal takes
#: a tenth of its time.
_GC_THRESHOLDS = (50_000, 20, 50)
#: Seconds of compilation after which a message is printed.
MESSAGE_AFTER = 1.0

#: Loops with a dispatcher, by their Python functions.
_LOOPS: dict[Any, Any] = {}
#: Qualified names of loops that this process compiled, as opposed to loaded.
COMPILED: list[str] = []


def wait_or_claim(file: Path) -> bool:
    """Return True once the file exists, after waiting for another process; False if this process has to compile it."""
    if file.is_file() or file in _CLAIMS or _LOCKS is None:
        return file.is_file()
    end = time.monotonic() + PATIENCE
    try:
        claim = os.open(file.with_suffix(".claim"), os.O_CREAT | os.O_WRONLY)
    except OSError:  # a read-only folder: each process compiles for itself
        return False
    _CLAIMS[file] = claim
    while True:
        try:
            _LOCKS.flock(claim, _LOCKS.LOCK_EX | _LOCKS.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                break
            time.sleep(_POLL)
        except OSError:  # the file system has no locks
            break
    if found := file.is_file():
        release(file)
    return found


def release(file: Path) -> None:
    """Release the lock of a file after it was written, or after writing failed."""
    if (claim := _CLAIMS.pop(file, None)) is not None:
        with suppress(OSError):
            file.with_suffix(".claim").unlink()
        os.close(claim)


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Machine code of one loop for one signature, into which only small callees are copied."""

    def __init__(self, made_by: Any, name: str) -> None:
        super().__init__(made_by, name)
        self.enable_object_caching()
        self._linking_libraries: list[Any] = []

    def finalize(self) -> None:
        """Copy small callees; `apart` lists large callees, to be loaded before this library and kept alive with it."""
        called = list(dict.fromkeys(self._linking_libraries))
        loops = [one for one in called if hasattr(one, "apart")]
        far = [one for one in loops if one.large]
        self.apart = list(dict.fromkeys([*far, *(other for one in loops if not one.large for other in one.apart)]))
        self._linking_libraries = [one for one in called if one not in far]
        super().finalize()
        self.large = _exceeds(self._final_module, SMALL)
        named = [*self._final_module.functions, *self._final_module.global_variables]
        self.refers = {one.name for one in named if one.is_declaration} & _defined(self.codegen)


def _defined(made_by: Any) -> set[str]:
    """Symbols that the engine of this process defines."""
    return set(made_by._engine._defined_symbols)


def _exceeds(module: Any, most: int) -> bool:
    """True if a module has more than `most` instructions, wrappers for calls from Python excluded."""
    count = 0
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith("_ZN7cpython"):
            for block in function.blocks:
                count += sum(1 for _ in block.instructions)
                if count > most:
                    return True
    return False


class _Pipeline(compiler.Compiler):  # type: ignore[misc]
    """Compiler pipeline that yields a `Library`, with symbol names that are the same in every process."""

    content = ""

    def _compile_bytecode(self) -> Any:
        state = self.state
        state.func_id.unique_id = int(self.content, 16)
        state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super()._compile_bytecode()


def compiler_for(content: str) -> type[_Pipeline]:
    """Compiler pipeline for a loop whose content has the given digest."""
    return type("Steps", (_Pipeline,), {"content": content})


class Bundle(types.Type):
    """Type of a named tuple that loops pass by reference.

    Numba passes a tuple field by field, and copies all fields whenever one field is accessed: with 50 arrays this takes
    half of the compilation time.
    """

    def __init__(self, dtype: Any) -> None:
        self.dtype, self.fields = dtype, dtype.fields
        super().__init__(f"{dtype.instance_class.__name__}_{_digest(str(dtype), dtype.fields)}")


register_model(Bundle)(models.PointerModel)


@infer_getattr
class _Field(AttributeTemplate):  # type: ignore[misc]
    key = Bundle

    def generic_resolve(self, bundle: Bundle, name: str) -> Any:
        return bundle.dtype[bundle.fields.index(name)] if name in bundle.fields else None


@lower_getattr_generic(Bundle)  # type: ignore[untyped-decorator]
def _lower_field(context: Any, builder: Any, bundle: Bundle, address: Any, name: str) -> Any:
    k = bundle.fields.index(name)
    kind = bundle.dtype[k]
    place = cgutils.gep_inbounds(builder, address, 0, k)
    value = context.data_model_manager[kind].load_from_data_pointer(builder, place)
    return imputils.impl_ret_borrowed(context, builder, kind, value)


@unbox(Bundle)  # type: ignore[untyped-decorator]
def _unbox_bundle(bundle: Bundle, value: Any, c: Any) -> Any:
    native, model = c.unbox(bundle.dtype, value), c.context.data_model_manager[bundle.dtype]
    address = cgutils.alloca_once(c.builder, model.get_data_type())
    c.builder.store(model.as_data(c.builder, native.value), address)

    def cleanup() -> None:  # Numba releases references of arguments by their type, and a pointer type holds none
        if native.cleanup is not None:
            native.cleanup()
        if c.context.enable_nrt:
            c.context.nrt.decref(c.builder, bundle.dtype, native.value)

    return NativeValue(address, is_error=native.is_error, cleanup=cleanup)


def bundle(kind: type) -> None:
    """Register a class of named tuples to be passed by reference."""
    typeof_impl.register(kind)(_typeof_bundle)


def _typeof_bundle(value: Any, _: object) -> Bundle:
    return Bundle(types.NamedTuple([numba.typeof(one) for one in value], type(value)))  # type: ignore[attr-defined]


def dispatcher(loop: Any) -> Any:
    """Build the dispatcher of a `Loop`, with a cache keyed by its content; the Python function if numba is disabled."""
    made = numba.njit(pipeline_class=compiler_for(loop.content), **loop.options)(loop.py_func)
    if made is loop.py_func:  # numba is disabled by the environment variable NUMBA_DISABLE_JIT
        return made
    if not _LOOPS:
        typeof_impl.register(type(loop))(_typeof_loop)
        event.register("numba:compile", _Announcement())
    _LOOPS[loop.py_func] = loop
    with suppress(RuntimeError):  # no folder for the cache is writable
        made._cache = _Cache(loop)
    return made


def _typeof_loop(loop: Any, _: object) -> Any:
    """Numba type of a loop, for loops that call it."""
    return types.Dispatcher(loop.dispatcher)


class _Announcement(event.Listener):  # type: ignore[misc]
    """Listener that prints one message as soon as the process has spent `MESSAGE_AFTER` seconds on compilation."""

    def __init__(self) -> None:
        self._depth, self._said = 0, False
        self._garbage = gc.get_threshold()

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func not in _LOOPS:
            return
        self._depth += 1
        if self._depth == 1:
            self._garbage = gc.get_threshold()
            gc.set_threshold(*_GC_THRESHOLDS)
            self._later = threading.Timer(max(MESSAGE_AFTER - clock.compiled(), 0.0), self._say)
            self._later.daemon = True
            self._later.start()

    def on_end(self, event: Any) -> None:
        if (loop := _LOOPS.get(event.data["dispatcher"].py_func)) is None:
            return
        COMPILED.append(f"{loop.__module__}.{loop.__qualname__}")
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._garbage)
            self._later.cancel()

    def _say(self) -> None:
        if self._depth and not self._said:
            self._said = True
            sys.stderr.write("compiling, once: later processes load it (fairopt warmup compiles all beforehand)\n")


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """Cache of compiled code in files named by content, so that concurrent writers of a file write the same bytes.

    The name of a file comprises the function, a digest of the argument types and the processor, and a digest of the
    loop's content and numba's version. A file begins with a digest of the loop's name, the file's name and the other
    bytes, since running corrupted machine code would crash the process. One process compiles a missing file, and the
    others wait for it (`wait_or_claim`).
    """

    def __init__(self, loop: Any) -> None:
        super().__init__(loop.py_func)
        versions = numba.__version__, FORMAT, self._impl.filename_base.split("-")[-1]
        self._stem, self._content, self._loop = loop.stem, _digest(loop.content, *versions), loop
        self._called = f"{loop.__module__}.{loop.__qualname__}"

    def _path(self, signature: Any, codegen: Any) -> str:
        types, processor, (_, closure) = self._index_key(signature, codegen)
        named = [getattr(one, "fields", ()) for one in types]  # Named tuples are distinguished by their fields.
        return f"{self._stem}-{_digest(types, named, processor, closure)}-{self._content}.nbc"

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        name = self._path(sig, target_context.codegen())
        if not wait_or_claim(Path(self.cache_path, name)):
            return None
        try:
            file = Path(self.cache_path, name).read_bytes()
            seal, code = file[:_SEAL], file[_SEAL:]
            if seal != self._seal(name, code):
                return None
            apart, large, refers, kept = pickle.loads(code)
            apart = [self._library(*one) for one in apart]
            # An undefined symbol would make the linker abort the process.
            if not refers <= _defined(target_context.codegen()):
                return None
            found = self._impl.rebuild(target_context, kept)
            found.library.apart, found.library.large = apart, large
        except Exception:  # a damaged file is replaced
            return None
        self._named(found.library, sig)
        return found

    def _library(self, name: str, signature: Any) -> Any:
        """Library of a callee, loaded from its file, or compiled if there is no file."""
        called = self._loop.calls[name].dispatcher
        called.compile(signature)
        return called.overloads[signature].library

    def _seal(self, name: str, code: bytes) -> bytes:
        return hashlib.sha256(f"{self._called} {name} ".encode() + code).digest()

    def _named(self, library: Any, signature: Any) -> None:
        library.loop, library.signature = self._called, signature

    def _save_overload(self, sig: Any, data: Any) -> None:
        name = self._path(sig, data.codegen)
        self._named(data.library, sig)
        try:
            if self._impl.check_cachable(data):
                self._keep(name, data)
        finally:
            release(Path(self.cache_path, name))

    def _keep(self, name: str, data: Any) -> None:
        with suppress(OSError):  # without space on the disk, the next process compiles again
            apart = [(one.loop, one.signature) for one in data.library.apart]
            kept = apart, data.library.large, data.library.refers, self._impl.reduce(data)
            code = serialize.dumps(kept)
            with self._cache_file._open_for_write(Path(self.cache_path, name)) as file:
                file.write(self._seal(name, code) + code)
            for old in Path(self.cache_path).glob(f"{name.rpartition('-')[0]}-*.nbc"):
                if old.name != name:  # outdated versions of this file are deleted
                    old.unlink()


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def folders() -> set[str]:
    """Folders of compiled loops of this process; empty if no folder is writable."""
    return {loop.dispatcher._cache.cache_path for loop in _LOOPS.values() if isinstance(loop.dispatcher._cache, _Cache)}
