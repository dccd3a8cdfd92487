"""What a view is asked about: a mechanism, an alpha, and edits; and numbers as people type them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import DataError
from ..model import _validate
from ..model._shown import short

#: The most edits of a state.
_MOST_EDITS = 10_000


@dataclass(frozen=True)
class State:
    """What is asked about: a mechanism by its name, an alpha, and edits by their keys."""

    mechanism: str = "alphapf-vds"
    alpha: float = 1.0
    edits: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> State:
        """From JSON: infinity is the text `inf`; errors name the field."""
        if not isinstance(given, dict):
            raise DataError("a state is an object with mechanism, alpha and edits")
        edits = given.get("edits", {})
        if not isinstance(edits, dict) or len(edits) > _MOST_EDITS:
            raise DataError(f"edits must be an object with at most {_MOST_EDITS:,} entries")
        mechanism = given.get("mechanism", cls.mechanism)
        if not isinstance(mechanism, str):
            raise DataError("mechanism must be a name", ("mechanism",))
        return cls(mechanism, alpha(given.get("alpha", cls.alpha)), edits)

    def to_json(self) -> dict[str, Any]:
        """What `of` reads."""
        number = "inf" if math.isinf(self.alpha) else self.alpha
        return {"mechanism": self.mechanism, "alpha": number, "edits": dict(self.edits)}


def alpha(given: Any) -> float:
    """An alpha as a number or as text; the field is `alpha`."""
    try:
        return _validate.alpha(number(given, ("alpha",), "alpha"))
    except DataError as error:
        raise DataError(str(error), ("alpha",)) from None


def number(given: Any, where: tuple[str | int, ...], what: str) -> float:
    """A number as it is or as text, with a comma for a point; infinity is `inf` or `∞`."""
    text = str(given).strip().replace("∞", "inf").replace("\u2212", "-")
    text = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    try:
        if isinstance(given, bool) or not isinstance(given, int | float | str) or "_" in text:
            raise ValueError
        return float(text)
    except (ValueError, OverflowError):
        raise DataError(f"{what} is {short(given)}; write a number, such as 2.5", where) from None
