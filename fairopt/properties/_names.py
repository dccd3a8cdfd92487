"""Properties by their names."""

from __future__ import annotations

import difflib

from ..errors import DataError
from ..mechanisms._registry import plain
from ._base import REGISTRY, Property


def names() -> list[str]:
    """Names of all properties, sorted."""
    return sorted(REGISTRY)


def get(name: str | Property) -> Property:
    """A property by its name; case, `-` and `_` do not matter.

    Raises
    ------
    DataError
        There is none of this name; the message has the names that there are.
    """
    if isinstance(name, Property):
        return name
    if isinstance(name, str) and (found := REGISTRY.find(name)) is not None:
        return found()
    known = names()
    close = difflib.get_close_matches(plain(str(name)), {plain(one): one for one in known}, n=1, cutoff=0.6)
    meant = "" if not close else f"; did you mean {next(one for one in known if plain(one) == close[0])}?"
    raise DataError(f"there is no property {name!r}; known: {', '.join(known)}{meant}")
