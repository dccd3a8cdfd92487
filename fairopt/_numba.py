"""What `_loops` asks of numba: dispatchers, files that keep compiled code, and a word where compiling takes long."""

from __future__ import annotations

import gc
import hashlib
import pickle
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, event, serialize, types
from numba.extending import typeof_impl

from . import _claims, _clock, _linking, _progress

#: Of the files: another number where they hold something else.
FORMAT = 3
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


def dispatcher(loop: Any) -> Any:
    """Numba's dispatcher of a `Loop`, with a cache by its content."""
    made = numba.njit(pipeline_class=_linking.steps(loop.content), **loop.options)(loop.py_func)
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
    """A bar over the loops that are compiled together, as soon as the process has lost a second to that."""

    def __init__(self) -> None:
        self._depth, self._done, self._said = 0, 0, False
        self._garbage = gc.get_threshold()
        self._bar: Any = None
        self._lock = threading.Lock()

    def on_start(self, event: Any) -> None:
        if (loop := _LOOPS.get(event.data["dispatcher"].py_func)) is None:
            return
        self._depth += 1
        if self._depth == 1:
            self._done = 0
            self._garbage = gc.get_threshold()
            gc.set_threshold(*_GARBAGE)
            self._later = threading.Timer(max(SILENCE - _clock.compiled(), 0.0), self._show, [loop])
            self._later.daemon = True
            self._later.start()

    def on_end(self, event: Any) -> None:
        if (loop := _LOOPS.get(event.data["dispatcher"].py_func)) is None:
            return
        COMPILED.append(f"{loop.__module__}.{loop.__qualname__}")
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._garbage)
        with self._lock:
            self._done += 1
            if self._bar is not None:  # loops for several types come more than once, and nobody knows before how often
                self._bar.total = max(self._bar.total, self._done + self._depth)
                self._bar.update()
            if self._depth == 0:
                self._later.cancel()
                if self._bar is not None:
                    self._bar.close()
                    self._bar = None

    def _show(self, loop: Any) -> None:
        with self._lock:
            if self._depth and (sys.stderr.isatty() or not self._said):  # a file need not hear it again
                self._said, together = True, sum(not one.signatures for one in loop.calls.values()) + self._done
                self._bar = _progress.tqdm(total=max(together, 1), desc="compiling, once", unit="loop", leave=False,
                                           initial=self._done)  # fmt: skip


class _Kept(caching.FunctionCache):  # type: ignore[misc]
    """Compiled code in files whose names tell what is in them, so that whoever writes at the same time writes the same.

    A name has the function, the types of its arguments with the processor, and the content with numba's version. A file
    begins with the digest of the loop's name, its own and the rest: other bytes end the process where they are run. Of
    processes that want the same one compiles, and the others wait for it (`_claims`).
    """

    def __init__(self, loop: Any) -> None:
        super().__init__(loop.py_func)
        name = Path(loop.py_func.__code__.co_filename).stem + "." + re.sub(r"\W+", ".", loop.__qualname__)
        versions = numba.__version__, FORMAT, self._impl.filename_base.split("-")[-1]
        self._stem, self._content, self._loop = name, _digest(loop.content, *versions), loop
        self._called = f"{loop.__module__}.{loop.__qualname__}"

    def _path(self, signature: Any, codegen: Any) -> str:
        types, processor, (_, closure) = self._index_key(signature, codegen)
        named = [getattr(one, "fields", ()) for one in types]  # of bundles of arrays
        return f"{self._stem}-{_digest(types, named, processor, closure)}-{self._content}.nbc"

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        name = self._path(sig, target_context.codegen())
        if not _claims.kept_or_claimed(Path(self.cache_path, name)):
            return None
        try:
            file = Path(self.cache_path, name).read_bytes()
            seal, code = file[:_SEAL], file[_SEAL:]
            if seal != self._seal(name, code):
                return None
            apart, data = pickle.loads(code)
            found = _linking.rebuilt(target_context, data, [self._library(*one) for one in apart])
        except Exception:  # damaged: it is compiled again, and written anew
            return None
        self._named(found.library, sig)
        return found

    def _library(self, name: str, signature: Any) -> Any:
        """That of a loop that this one calls: loaded, or compiled where its file is gone."""
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
            _claims.given_up(Path(self.cache_path, name))

    def _keep(self, name: str, data: Any) -> None:
        with suppress(OSError):  # a full disk: the next process compiles as well
            code = serialize.dumps(_linking.reduced(data))
            with self._cache_file._open_for_write(Path(self.cache_path, name)) as file:
                file.write(self._seal(name, code) + code)
            for old in Path(self.cache_path).glob(f"{name.rpartition('-')[0]}-*.nbc"):
                if old.name != name:  # of other content
                    old.unlink()


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def folders() -> set[str]:
    """Where the loops of this process are kept; none where there is no folder to write to."""
    return {loop.dispatcher._cache.cache_path for loop in _LOOPS.values() if isinstance(loop.dispatcher._cache, _Kept)}
