"""Which process compiles a loop: of several that want the same at once one does, and the others wait for its file.

A claim is a file beside that of the loop that holds the number of a process. It counts while that process runs on this
machine, for `PATIENCE` seconds at most: a process of another machine cannot be asked, and is waited for that long.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

#: Seconds after which a claim does not count; between looks at one.
PATIENCE, _LOOK = 60.0, 0.05


def kept_or_claimed(file: Path) -> bool:
    """Is the file there? If not, it is this process's turn to make it, after having waited for another that was."""
    end, claim = time.monotonic() + PATIENCE, _claim(file)
    while not file.is_file():
        try:
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            with suppress(OSError):
                claim.write_text(str(os.getpid()), encoding="ascii")
            return False
        except FileExistsError:
            if not _counts(claim) or time.monotonic() > end:
                claim.unlink(missing_ok=True)
                return file.is_file()  # whoever claimed it may have ended just now
            time.sleep(_LOOK)
        except OSError:  # nobody may write here: each process compiles for itself
            return False
    return True


def given_up(file: Path) -> None:
    """The file is there, or will not be."""
    with suppress(OSError):
        _claim(file).unlink(missing_ok=True)


def _claim(file: Path) -> Path:
    return file.with_suffix(".claim")


def _counts(claim: Path) -> bool:
    """Does the process that made the claim still run, and has it not held it for longer than `PATIENCE`?"""
    try:
        owner = int(claim.read_text(encoding="ascii") or 0)
        late = time.time() - claim.stat().st_mtime > PATIENCE
    except (OSError, ValueError):
        return claim.exists()  # being written, or just gone
    if late or owner == os.getpid():
        return False
    if owner and os.name == "posix":  # elsewhere to ask is to kill
        with suppress(PermissionError):
            try:
                os.kill(owner, 0)
            except ProcessLookupError:
                return False
    return True
