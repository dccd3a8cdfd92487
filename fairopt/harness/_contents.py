"""Digests of what files hold. Each is computed once: it is kept beside path, size and time of the last change."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

#: A file that changed so recently may change again without a new time, in seconds; its digest is not kept.
_SETTLED = 2.0

_Kept = dict[str, tuple[int, int, str]]


def kept_in() -> Path:
    """The file of kept digests, in the user's folder for what can be computed again."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "fairopt" / "digests.json"


def of_file(path: Path) -> str:
    """The digest of one file's bytes."""
    return _digests([path])[path][:16]


def of_folder(folder: Path) -> str:
    """The digest of names and contents of the files below a folder, wherever that is."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    found = [(path.relative_to(folder).as_posix(), digest) for path, digest in _digests(files).items()]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _digests(paths: Iterable[Path]) -> dict[Path, str]:
    kept, new, found = _read(), {}, {}
    now = time.time_ns()
    for path in paths:
        state, name = path.stat(), str(path.resolve())
        stamp = (state.st_size, state.st_mtime_ns)
        known = kept.get(name)
        if known is not None and tuple(known[:2]) == stamp:
            found[path] = known[2]
            continue
        with open(path, "rb") as file:
            found[path] = hashlib.file_digest(file, "sha256").hexdigest()
        if now - state.st_mtime_ns > _SETTLED * 1e9:
            new[name] = (*stamp, found[path])
    if new:
        _write(new)
    return found


def _read() -> _Kept:
    """What was kept; nothing if that cannot be read, as it can be computed again."""
    try:
        data = json.loads(kept_in().read_text(encoding="utf-8"))
        return {str(name): (int(size), int(changed), str(digest)) for name, (size, changed, digest) in data.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _write(new: _Kept) -> None:
    target = kept_in()
    aside = target.with_name(f".{uuid.uuid4().hex}.tmp")
    with suppress(OSError):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            aside.write_text(json.dumps(_read() | new), encoding="utf-8")
            os.replace(aside, target)
        finally:
            aside.unlink(missing_ok=True)
