"""Text files with data: complete reading, strict parsing, and atomic writing."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import shutil
import tomllib
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from .errors import DataError
from .names import short

Made = TypeVar("Made")
#: Table of TOML, or object of JSON.
Table = dict[str, Any]

#: Pattern of the folders of an absolute path, up to punctuation.
_FOLDERS = re.compile(
    r"(?<![\w./\\])(?:[A-Za-z]:\\(?:[^\\:;,?'\"()\n]+\\)+|/(?=[^\s/])(?:[^/:;,?'\"()\n]*[^/:;,?'\"()\s]/)+)"
)


def unplaced(text: str) -> str:
    """Shorten absolute paths in a text to file names, since it may be published and folders are private."""
    return _FOLDERS.sub("", text)


def read(path: Path, what: str) -> str:
    """Read the text of a file; `what` names its kind in the `DataError` of a failure, such as `cluster file`."""
    with _reaching(f"read the {what}", path):
        if path.is_char_device() or path.is_block_device():  # reading some devices never ends
            raise DataError(f"cannot read the {what} {path}: it is a device; name a file")
        with opened(path) as file:
            return file.read()


@contextmanager
def _reaching(doing: str, path: Path) -> Iterator[None]:
    """Convert errors of reading or writing a file to `DataError`."""
    try:
        yield
    except OSError as error:
        remedy = (
            "; name a file that exists" if isinstance(error, FileNotFoundError) and doing.startswith("read") else ""
        )
        raise DataError(f"cannot {doing} {path}: {error.strerror}{remedy}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None
    except ValueError as error:  # an invalid path, such as a path with a null character
        raise DataError(f"cannot {doing} {str(path)!r}: {error}") from None


def opened(path: Path) -> io.TextIOWrapper:
    """Open a text file in UTF-8, or in UTF-16 if it begins with its byte order mark, as output of PowerShell does."""
    file = io.BufferedReader(io.FileIO(path))
    marked = file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # read once: it may be a pipe
    return io.TextIOWrapper(file, "utf-16" if marked else "utf-8-sig")


def parse_json(text: str, path: Path) -> Any:
    """Parse JSON, or raise `DataError` with the line; a duplicate key is an error, as one value would be lost."""
    return _parsed("JSON", partial(json.loads, object_pairs_hook=_table), text, path)


def parse_toml(text: str, path: Path) -> Table:
    """Parse TOML, or raise `DataError` with the line of the fault."""
    return cast("Table", _parsed("TOML", tomllib.loads, text, path))


def _parsed(form: str, loads: Callable[[str], Any], text: str, path: Path) -> Any:
    try:
        with inside(path):
            return loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        found = re.search(r"line (\d+)", str(error))
        line = found.group(1) if found else len(text.splitlines())
        raise DataError(f"{path}:{line}: not valid {form}: {error}") from None
    except RecursionError:
        raise DataError(f"{path}: not readable {form}: lists or tables are nested too deeply") from None
    except DataError:
        raise
    except ValueError:  # an integer with more digits than Python converts
        raise DataError(f"{path}: not readable {form}: a whole number has thousands of digits") from None


@contextmanager
def inside(prefix: object, *where: str | int) -> Iterator[None]:
    """Prefix the message and `where` of a `DataError` with the file or entry that contains the fault."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{prefix}: {error}", (*where, *error.where)) from None


def read_json(path: str | Path, what: str, make: Callable[[Any], Made]) -> Made:
    """Read a JSON file, and return the object that `make` builds from its content; a `DataError` names the file."""
    path = Path(path)
    document = parse_json(read(path, what), path)
    with inside(path):
        return make(document)


def texts(value: object) -> bool:
    """True for a list of strings."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def has(document: Any, where: Sequence[str | int]) -> bool:
    """True if a document of tables and lists has an entry at the place `where`."""
    try:
        for key in where:
            document = document[key]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def toml_line(text: str, where: Sequence[str | int]) -> int:
    """Line, from 1, of the key or table at a place of valid TOML, or of the nearest enclosing table.

    Parsers of TOML do not report lines. But the lines before the statement that defines the place form a document
    without it, and the same lines with the statement form a document that has it, so that bisection finds the line.
    """
    lines, document = text.split("\n"), tomllib.loads(text)
    while not has(document, where):
        where = where[:-1]

    def whole(count: int) -> tuple[int, Any]:
        """Parse the first `count` lines, or fewer if a statement continues there; return their number and document."""
        for some in range(count, max(count - 1000, 0), -1):
            try:
                return some, tomllib.loads("\n".join(lines[:some]))
            except tomllib.TOMLDecodeError:
                continue
        return 0, {}

    end = bisect_left(range(len(lines) + 1), True, key=lambda count: has(whole(count)[1], where))
    return whole(end - 1)[0] + 1


def folder(path: Path) -> None:
    """Create a folder and its parents, unless it exists; an invalid path raises `DataError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except ValueError as error:  # an invalid path, such as a path with a null character
        raise DataError(f"cannot make the folder {str(path)!r}: {error}") from None


def write(path: Path, content: str | bytes, what: str) -> None:
    """Write a file atomically, by renaming a temporary file, so that an old file survives a failure (`DataError`)."""
    with _reaching(f"write the {what}", path):
        data = content.encode("utf-8") if isinstance(content, str) else content
        target = Path(os.path.realpath(path))  # the target of a link is replaced, not the link
        if target.exists() and not target.is_file():  # a device or a pipe is written to, not replaced
            target.write_bytes(data)
        else:
            _replace(target, data)


def _replace(target: Path, data: bytes) -> None:
    old = target.exists()
    if old:
        open(target, "r+b").close()  # fails if the file is write-protected, which a rename would ignore
    aside = target.with_name(f".{target.name[:100]}.{uuid.uuid4().hex}.tmp")
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if old:
            shutil.copymode(target, aside)
        os.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _table(pairs: list[tuple[str, Any]]) -> Table:
    table: Table = {}
    for key, value in pairs:
        if key in table:
            raise DataError(f"the key {short(key)} occurs twice in one table, {short(dict(pairs))}; keep one of them")
        table[key] = value
    return table
