"""Validation of names of users, servers and resources, and the formatting of names and values in messages."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Collection, Iterable, Sequence
from numbers import Real
from typing import Any

from .errors import DataError

#: Largest number of servers that the entries `count` of a file or an edit may produce.
MOST_SERVERS = 1_000_000
#: Spellings of booleans in files and options.
TRUTHS = dict.fromkeys(("true", "1", "1.0", "yes"), True) | dict.fromkeys(("false", "0", "0.0", "no"), False)


def names(given: Iterable[object] | None, count: int, what: str) -> tuple[str, ...]:
    """Validate `count` distinct names, or generate the defaults user1, user2, ..., server1, ..., resource1, ...

    Raises
    ------
    DataError
        The number of names differs from `count`, a name is invalid or occurs twice, or a resource has the name of a
        column of the users' table.
    """
    if given is None:
        return tuple(f"{what}{index + 1}" for index in range(count))
    result = labels(given, what)
    if len(result) != count:
        raise DataError(f"{count} {what}s need {count} names; got {len(result)}: {', '.join(result[:8])}")
    if what == "resource" and (taken := {"weight", "max_tasks"} & set(result)):
        raise DataError(f"a resource cannot be called {taken.pop()!r}: the users' table has a column of that name")
    return result


def labels(given: Iterable[object], what: str) -> tuple[str, ...]:
    """Convert a sequence of distinct names to strings, in the given order.

    Raises
    ------
    DataError
        The argument is not an ordered collection, or a name is invalid or occurs twice.
    """
    try:
        if isinstance(given, str | bytes | set | frozenset):
            raise TypeError
        given = tuple(given)
    except TypeError:
        raise DataError(f"the names of {what}s are {short(given)}; they must be a list of names, in an order") from None
    known = tuple(name for name in given if type(name) is str)
    if len({*known}) == len(given) and "".join(known).isascii():
        return known  # the general loop would return the same, more slowly
    seen: dict[str, None] = {}
    for index, name in enumerate(given):
        where = (f"{what}s", index, "name")
        text = label(name, what, where)
        if text in seen:
            raise DataError(f"two {what}s are called {text!r}; give each its own name", where)
        seen[text] = None
    return tuple(seen)


def label(name: object, what: str, where: tuple[str | int, ...] = ()) -> str:
    """Convert a name, given as a string or a number, to a string; `DataError` if UTF-8 cannot encode it."""
    if not isinstance(name, str | Real) or name != name:  # NaN marks a missing name
        raise DataError(f"a {what} is called {short(name)}; a name must be text or a number", where)
    try:
        text = str(name)
        text.encode("utf-8")
    except ValueError:  # a lone surrogate, or an integer of thousands of digits
        raise DataError(f"a {what} is called {short(name)}, which cannot be written; change its name", where) from None
    return text


#: Control characters, line separators and marks of text direction.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: object, kept: str = "") -> str:
    """Text on one line, with control characters escaped as in Python literals, except those in `kept`."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else repr(found[0])[1:-1], str(text))


def copies(name: str, count: int) -> list[str]:
    """Names of `count` identical servers: `rack-1`, `rack-2`, ...; the plain name if `count` is 1."""
    return [name] if count == 1 else [f"{name}-{copy + 1}" for copy in range(count)]


def apart(given: Sequence[str], taken: Collection[str], mark: str) -> list[str]:
    """Names made distinct from `taken` by a suffix: `tasks` becomes `tasks (server)`."""
    used, result = {*taken, *given}, []
    for name in given:
        text = name
        while text in taken or (text != name and text in used):
            text += f" ({mark})"
        used.add(text)
        result.append(text)
    return result


def items(text: str) -> list[str]:
    """Split a text at commas outside of brackets, and omit empty parts."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def alike(text: object) -> str:
    """Spelling by which names are compared: `round_robin` equals `round-robin`, and `alpha=2` equals `alpha=2.0`."""
    return re.sub(r"(?<=\d)\.0+(?!\d)", "", str(text).lower().replace("_", "-").replace(" ", ""))


def listed(labels: Sequence[Any], most: int = 3) -> str:
    """Join the first `most` labels with commas, and state the number of the other labels."""
    return ", ".join(map(str, labels[:most])) + (f" and {len(labels) - most} more" if len(labels) > most else "")


def some(labels: Sequence[Any], most: int = 8) -> str:
    """Shorten a list of labels for an error message by `listed`."""
    return listed(labels, most)


def meant(given: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Suggestion of the closest known name, as the end of an error message; empty if none is close."""
    close = difflib.get_close_matches(given, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]}?" if close else ""


class _Short(reprlib.Repr):
    """Representation limited in length and depth, also for integers of thousands of digits, whose `repr` raises."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 60, 60

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 10**20 else "a whole number of more than 20 digits"


def short(value: object) -> str:
    """Representation of a value on one line of about 60 characters; it never raises."""
    return " ".join(line.strip() for line in _Short().repr(value).splitlines())
