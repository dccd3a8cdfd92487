"""Numba's side of `loops`: dispatchers, files that keep compiled code, and a word where compiling takes long.

Numba's own cache does not do, for three reasons. It judges code by the date of the file that a function is in, so that
a changed loop leaves its callers in other files as they were, and writes that there is new code before the code, under
the name of the old one, which whoever reads in between runs: here a file is named by content. Processes that begin
together all compile the same: here one does, and the others wait for its file. And numba copies whatever a function
calls into it, through which the compiler works again at every level: here the code of a large loop stays in its own
file, and those that call it find it by its name, which follows from its content. For the 16 loops of a first game
copies of all took 1.56 times as long.

A claim to compile is a lock on a file beside that of the loop, which ends with the process that holds it. It is waited
for `PATIENCE` seconds; where there are no locks every process compiles for itself.
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

#: Locks of files, where there are any; the claims of this process.
_LOCKS: Any = import_module("fcntl") if os.name == "posix" else None
_CLAIMS: dict[Path, int] = {}
#: Seconds after which a claim does not count; between looks at one.
PATIENCE, _LOOK = 60.0, 0.05
#: A loop of more instructions is not copied: the compiler would hardly write it into its callers.
SMALL = 100
#: Of the files: another number where they hold something else.
FORMAT = 5
#: Bytes of a digest.
_SEAL = hashlib.sha256().digest_size
#: How seldom garbage is looked for while loops are compiled: numba makes many objects that live, a tenth of its time.
_GARBAGE = (50_000, 20, 50)
#: Seconds of silence at most.
SILENCE = 1.0

#: The loops that numba knows, by their functions.
_LOOPS: dict[Any, Any] = {}
#: Those that were compiled in this process, not loaded.
COMPILED: list[str] = []


def kept_or_claimed(file: Path) -> bool:
    """True if the file exists, perhaps after waiting for another process; else this process is to make it."""
    if file.is_file() or file in _CLAIMS or _LOCKS is None:
        return file.is_file()
    end = time.monotonic() + PATIENCE
    try:
        claim = os.open(file.with_suffix(".claim"), os.O_CREAT | os.O_WRONLY)
    except OSError:  # nobody may write here: each process compiles for itself
        return False
    _CLAIMS[file] = claim
    while True:
        try:
            _LOCKS.flock(claim, _LOCKS.LOCK_EX | _LOCKS.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > end:
                break
            time.sleep(_LOOK)
        except OSError:  # a folder without locks
            break
    if found := file.is_file():
        given_up(file)
    return found


def given_up(file: Path) -> None:
    """The file is there, or will not be."""
    if (claim := _CLAIMS.pop(file, None)) is not None:
        with suppress(OSError):
            file.with_suffix(".claim").unlink()
        os.close(claim)


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The machine code of one loop for one signature, as it is compiled; small loops are copied into it."""

    def __init__(self, made_by: Any, name: str) -> None:
        super().__init__(made_by, name)
        self.enable_object_caching()
        self._linking_libraries: list[Any] = []

    def finalize(self) -> None:
        """Link copies of small loops only; `apart` are large ones, which have to be there before it is, and as long."""
        called = list(dict.fromkeys(self._linking_libraries))
        loops = [one for one in called if hasattr(one, "apart")]
        far = [one for one in loops if one.large]
        self.apart = list(dict.fromkeys([*far, *(other for one in loops if not one.large for other in one.apart)]))
        self._linking_libraries = [one for one in called if one not in far]
        super().finalize()
        self.large = _longer(self._final_module, SMALL)
        named = [*self._final_module.functions, *self._final_module.global_variables]
        self.refers = {one.name for one in named if one.is_declaration} & _defined(self.codegen)


def _defined(made_by: Any) -> set[str]:
    """Names of machine code that is there."""
    return set(made_by._engine._defined_symbols)


def _longer(module: Any, most: int) -> bool:
    """True if there are more instructions than those that pass values to and from Python."""
    count = 0
    for function in module.functions:
        if not function.is_declaration and not function.name.startswith("_ZN7cpython"):
            for block in function.blocks:
                count += sum(1 for _ in block.instructions)
                if count > most:
                    return True
    return False


class _Steps(compiler.Compiler):  # type: ignore[misc]
    """numba's steps from a function to a `Library`; its names are the same in every process."""

    content = ""

    def _compile_bytecode(self) -> Any:
        state = self.state
        state.func_id.unique_id = int(self.content, 16)
        state.library = Library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super()._compile_bytecode()


def steps(content: str) -> type[_Steps]:
    """The steps for a loop of this content."""
    return type("Steps", (_Steps,), {"content": content})


class Bundle(types.Type):
    """A named tuple that loops hand to each other by its address.

    Numba hands over a tuple field by field, and copies all of it wherever one is read: of 50 arrays that is half of the
    time of the compiler.
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
def _read(context: Any, builder: Any, bundle: Bundle, address: Any, name: str) -> Any:
    k = bundle.fields.index(name)
    kind = bundle.dtype[k]
    place = cgutils.gep_inbounds(builder, address, 0, k)
    value = context.data_model_manager[kind].load_from_data_pointer(builder, place)
    return imputils.impl_ret_borrowed(context, builder, kind, value)


@unbox(Bundle)  # type: ignore[untyped-decorator]
def _unboxed(bundle: Bundle, value: Any, c: Any) -> Any:
    native, model = c.unbox(bundle.dtype, value), c.context.data_model_manager[bundle.dtype]
    address = cgutils.alloca_once(c.builder, model.get_data_type())
    c.builder.store(model.as_data(c.builder, native.value), address)

    def cleanup() -> None:  # numba gives back what it knows arguments to hold, and an address holds nothing
        if native.cleanup is not None:
            native.cleanup()
        if c.context.enable_nrt:
            c.context.nrt.decref(c.builder, bundle.dtype, native.value)

    return NativeValue(address, is_error=native.is_error, cleanup=cleanup)


def bundle(kind: type) -> None:
    """Tell numba of a class of named tuples that are bundles."""
    typeof_impl.register(kind)(_of_its_fields)


def _of_its_fields(value: Any, _: object) -> Bundle:
    return Bundle(types.NamedTuple([numba.typeof(one) for one in value], type(value)))  # type: ignore[attr-defined]


def dispatcher(loop: Any) -> Any:
    """Numba's dispatcher of a `Loop`, with a cache by its content."""
    made = numba.njit(pipeline_class=steps(loop.content), **loop.options)(loop.py_func)
    if made is loop.py_func:  # NUMBA_DISABLE_JIT
        return made
    if not _LOOPS:
        typeof_impl.register(type(loop))(_of_its_dispatcher)
        event.register("numba:compile", _Telling())
    _LOOPS[loop.py_func] = loop
    with suppress(RuntimeError):  # there is no folder to write to
        made._cache = _Kept(loop)
    return made


def _of_its_dispatcher(loop: Any, _: object) -> Any:
    """The type of a loop that another calls."""
    return types.Dispatcher(loop.dispatcher)


class _Telling(event.Listener):  # type: ignore[misc]
    """Says that loops are compiled, once, as soon as the process has lost a second to that."""

    def __init__(self) -> None:
        self._depth, self._said = 0, False
        self._garbage = gc.get_threshold()

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func not in _LOOPS:
            return
        self._depth += 1
        if self._depth == 1:
            self._garbage = gc.get_threshold()
            gc.set_threshold(*_GARBAGE)
            self._later = threading.Timer(max(SILENCE - clock.compiled(), 0.0), self._say)
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


class _Kept(caching.FunctionCache):  # type: ignore[misc]
    """Compiled code in files whose names tell what is in them, so that whoever writes at the same time writes the same.

    A name has the function, the types of its arguments with the processor, and the content with numba's version. A file
    begins with the digest of the loop's name, its own and the rest: other bytes end the process where they are run. Of
    processes that want the same one compiles, and the others wait for it (`kept_or_claimed`).
    """

    def __init__(self, loop: Any) -> None:
        super().__init__(loop.py_func)
        versions = numba.__version__, FORMAT, self._impl.filename_base.split("-")[-1]
        self._stem, self._content, self._loop = loop.stem, _digest(loop.content, *versions), loop
        self._called = f"{loop.__module__}.{loop.__qualname__}"

    def _path(self, signature: Any, codegen: Any) -> str:
        types, processor, (_, closure) = self._index_key(signature, codegen)
        named = [getattr(one, "fields", ()) for one in types]  # of bundles of arrays
        return f"{self._stem}-{_digest(types, named, processor, closure)}-{self._content}.nbc"

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        name = self._path(sig, target_context.codegen())
        if not kept_or_claimed(Path(self.cache_path, name)):
            return None
        try:
            file = Path(self.cache_path, name).read_bytes()
            seal, code = file[:_SEAL], file[_SEAL:]
            if seal != self._seal(name, code):
                return None
            apart, large, refers, kept = pickle.loads(code)
            apart = [self._library(*one) for one in apart]
            if not refers <= _defined(target_context.codegen()):  # the linker would end the process
                return None
            found = self._impl.rebuild(target_context, kept)
            found.library.apart, found.library.large = apart, large
        except Exception:  # damaged: it is compiled again, and written anew
            return None
        self._named(found.library, sig)
        return found

    def _library(self, name: str, signature: Any) -> Any:
        """Library of a loop that this one calls: loaded, or compiled where its file is gone."""
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
            given_up(Path(self.cache_path, name))

    def _keep(self, name: str, data: Any) -> None:
        with suppress(OSError):  # a full disk: the next process compiles as well
            apart = [(one.loop, one.signature) for one in data.library.apart]
            kept = apart, data.library.large, data.library.refers, self._impl.reduce(data)
            code = serialize.dumps(kept)
            with self._cache_file._open_for_write(Path(self.cache_path, name)) as file:
                file.write(self._seal(name, code) + code)
            for old in Path(self.cache_path).glob(f"{name.rpartition('-')[0]}-*.nbc"):
                if old.name != name:  # of other content
                    old.unlink()


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def folders() -> set[str]:
    """Folders in which this process keeps loops; none if no folder is writable."""
    return {loop.dispatcher._cache.cache_path for loop in _LOOPS.values() if isinstance(loop.dispatcher._cache, _Kept)}
