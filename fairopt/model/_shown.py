"""A value as an error shows it: short, whatever it is."""

from __future__ import annotations

import reprlib


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
