"""Names of users, servers and resources, distinct on every axis; values as errors show them."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Collection, Iterable, Sequence
from numbers import Real
from typing import Any

from .errors import DataError

#: The most servers that counts may make.
MOST_SERVERS = 1_000_000
#: Words of files and options for true and false.
TRUTHS = dict.fromkeys(("true", "1", "1.0", "yes"), True) | dict.fromkeys(("false", "0", "0.0", "no"), False)


def names(given: Iterable[object] | None, count: int, what: str) -> tuple[str, ...]:
    """`count` distinct names; by default 1, 2, ... behind the kind (user1, server1, resource1)."""
    if given is None:
        return tuple(f"{what}{index + 1}" for index in range(count))
    result = labels(given, what)
    if len(result) != count:
        raise DataError(f"{count} {what}s need {count} names; got {len(result)}: {', '.join(result[:8])}")
    if what == "resource" and (taken := {"weight", "max_tasks"} & set(result)):
        raise DataError(f"a resource cannot be called {taken.pop()!r}: the users' table has a column of that name")
    return result


def labels(given: Iterable[object], what: str) -> tuple[str, ...]:
    """Distinct names, in the order given."""
    try:
        if isinstance(given, str | bytes | set | frozenset):
            raise TypeError
        given = tuple(given)
    except TypeError:
        raise DataError(f"the names of {what}s are {short(given)}; they must be a list of names, in an order") from None
    known = tuple(name for name in given if type(name) is str)
    if len({*known}) == len(given) and "".join(known).isascii():
        return known  # what follows finds nothing, in more time
    seen: dict[str, None] = {}
    for index, name in enumerate(given):
        where = (f"{what}s", index, "name")
        text = label(name, what, where)
        if text in seen:
            raise DataError(f"two {what}s are called {text!r}; give each its own name", where)
        seen[text] = None
    return tuple(seen)


def label(name: object, what: str, where: tuple[str | int, ...] = ()) -> str:
    """One name as text: what is given as text or as a number, that UTF-8 can write."""
    if not isinstance(name, str | Real) or name != name:  # NaN is a number that is missing
        raise DataError(f"a {what} is called {short(name)}; a name must be text or a number", where)
    try:
        text = str(name)
        text.encode("utf-8")
    except ValueError:  # half of a surrogate pair, or thousands of digits
        raise DataError(f"a {what} is called {short(name)}, which cannot be written; change its name", where) from None
    return text


#: Characters that move a cursor, begin a line or turn its direction.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: object, kept: str = "") -> str:
    """Text on one line, with control characters, but those `kept`, as Python writes them."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in kept else repr(found[0])[1:-1], str(text))


def copies(name: str, count: int) -> list[str]:
    """The names of `count` identical servers: `rack-1`, `rack-2`, ...; of one its own."""
    return [name] if count == 1 else [f"{name}-{copy + 1}" for copy in range(count)]


def apart(given: Sequence[str], taken: Collection[str], mark: str) -> list[str]:
    """The names given, those that are taken with a mark behind: `tasks` becomes `tasks (server)`."""
    used, result = {*taken, *given}, []
    for name in given:
        text = name
        while text in taken or (text != name and text in used):
            text += f" ({mark})"
        used.add(text)
        result.append(text)
    return result


def listed(labels: Sequence[Any], most: int = 3) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(map(str, labels[:most])) + (f" and {len(labels) - most} more" if len(labels) > most else "")


def some(labels: Sequence[Any], most: int = 8) -> str:
    """The same, for messages."""
    return listed(labels, most)


def meant(given: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The end of a message on a name that nothing has: the nearest of those that there are, if one is near."""
    close = difflib.get_close_matches(given, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {close[0]}?" if close else ""


class _Short(reprlib.Repr):
    """`repr` cut off in length and depth: of whole numbers with thousands of digits too, which have no `repr`."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 60, 60

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if abs(x) < 10**20 else "a whole number of more than 20 digits"


def short(value: object) -> str:
    """The `repr` of a value in about 60 characters, on one line; it never fails."""
    return " ".join(line.strip() for line in _Short().repr(value).splitlines())
