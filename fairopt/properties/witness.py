"""`Witness`: a violation that anybody can check again, and its file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from dataclasses import fields as fields_of
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..mechanisms import one
from ..model import _files
from ..model.cluster import Cluster
from ._base import Deviation, Finding, shown
from ._selection import EVERY, selection
from ._solved import Instance
from ._verify import verified
from ._witness_file import Number, document, fields
from ._words import described

#: Bounds of two machines may differ by this.
_SLACK = 1e-6


@dataclass(frozen=True)
class Witness:
    """A mechanism violates a property on a cluster.

    Attributes
    ----------
    mechanism, property : str
        By their names, with parameters: `alphapf-vds(alpha=2)`.
    cluster : Cluster
        As the mechanism sees it: the pool, of single-pool mechanisms.
    changed : Cluster or None
        What it is compared with: after a lie, without a user, with more capacity.
    users : tuple of str
        Who lies or leaves.
    before, after : tuple of Fraction or float
        Tasks of every user on both; fractions are exact.
    violation : (low, high)
        `1 - has/due` is between these; both are the same fraction where nothing was rounded.
    text : str
        The violation in words.
    route : str
        How it was verified.
    selection : str
        Of which answer this speaks, where a mechanism has several.
    """

    mechanism: str
    property: str
    cluster: Cluster
    changed: Cluster | None
    users: tuple[str, ...]
    before: tuple[Number, ...]
    after: tuple[Number, ...]
    violation: tuple[Number, Number]
    text: str
    route: str
    selection: str = ""

    @cached_property
    def exact(self) -> bool:
        """Was nothing rounded?"""
        return all(isinstance(value, Fraction) for value in self.violation)

    @cached_property
    def instance(self) -> Instance:
        """The cluster, and how it changes."""
        return self.cluster, None if self.changed is None else Deviation(self.changed, self.users)

    @cached_property
    def sentence(self) -> str:
        """The cluster, its change and the violation, in one line."""
        return "; ".join([*described(*self.instance), self.text])

    def replay(self) -> Finding:
        """Solve and verify again, without any search.

        Raises
        ------
        DataError
            The property does not speak of this change, or is not violated: then the message says what was found.
        """
        mechanism = one(self.mechanism)
        again = verified(mechanism, self.property, self.instance)
        if again.route != self.route:
            raise DataError(f"it is verified by {again.route}, not by {self.route} as the witness says")
        (low, high), (least, most) = self.violation, again.violation
        if most < low - _SLACK or least > high + _SLACK:
            raise DataError(f"the violation is {_between(least, most)}, not {_between(low, high)} as the witness says")
        for name, found in (("before", again.case.user_tasks), ("after", again.case.changed_user_tasks)):
            for stated, tasks in zip(getattr(self, name), found, strict=True):
                if abs(stated - tasks) > _SLACK * (1 + abs(tasks)):
                    raise DataError(
                        f"somebody has {shown(tasks)} tasks {name}, not {shown(stated)} as the witness says"
                    )
        if self.selection.startswith(EVERY):
            now = selection(mechanism, self.property, self.instance)
            if not now.startswith(EVERY):
                raise DataError(f"the witness speaks {self.selection}; what is found now: {now}")
        return again.finding

    def document(self) -> dict[str, Any]:
        """What a witness file says, as plain data."""
        return document({one.name: getattr(self, one.name) for one in fields_of(self)})

    @classmethod
    def of(cls, document: Any) -> Witness:
        """A witness from such data; nothing in it is believed before `replay()`.

        Raises
        ------
        DataError
            They are damaged, or are none.
        """
        return cls(**fields(document))

    def save(self, path: str | Path) -> None:
        """Write a witness file (JSON)."""
        text = json.dumps(self.document(), indent=1, allow_nan=False)
        _files.write(Path(path), f"{text}\n", "witness file")

    @classmethod
    def load(cls, path: str | Path) -> Witness:
        """Read a witness file; nothing in it is believed before `replay()`.

        Raises
        ------
        DataError
            The file is damaged, or is none; the message says where.
        """
        path = Path(path)
        text = _files.parse_json(_files.read(path, "witness file"), path)
        try:
            return cls.of(text)
        except DataError as error:
            raise DataError(f"{path}: {error}", error.where) from None

    def __repr__(self) -> str:
        low, high = self.violation
        at = shown(low) if self.exact else f"{float(low + high) / 2:.6g} (+- {float(high - low) / 2:.1g})"
        lines = [f"{self.mechanism} violates {self.property} by {at} ({self.route}): {self.text}"]
        lines += [f"  {line}" for line in described(*self.instance)]
        lines.append(f"  tasks: {', '.join(map(shown, self.before))}")
        if self.changed is not None:
            lines.append(f"  tasks after the change: {', '.join(map(shown, self.after))}")
        return "\n".join([*lines, *([f"  {self.selection}"] if self.selection else [])])


def _between(low: Number, high: Number) -> str:
    return shown(low) if low == high else f"{shown(low)} to {shown(high)}"
