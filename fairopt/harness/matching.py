"""Which rows of a store answer the cells of an experiment: those of this code, or on request of other code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._libraries import pd
from ..errors import DataError
from .kinds import AnyCell
from .simulations import runners
from .store import Contents


@dataclass(frozen=True)
class Matched:
    """Cells beside the rows that answer them.

    `rows` are keys in the order of `cells`, None where nothing answers; `failed` of those that have only an error.
    `older` are the cells that no row of this code answers but one of other code does.
    """

    cells: Sequence[AnyCell]
    rows: tuple[str | None, ...]
    failed: tuple[str, ...]
    older: tuple[AnyCell, ...]

    @property
    def answered(self) -> dict[str, AnyCell]:
        """The cell of every row, in the order of cells."""
        return {key: cell for key, cell in zip(self.rows, self.cells, strict=True) if key is not None}

    def warning(self, accepted: bool) -> str:
        """The line about answers of other code; empty if there are none."""
        if not self.older:
            return ""
        text = f"{len(self.older)} of {len(self.cells)} cells were computed by other code"
        return f"{text}, and are taken all the same" if accepted else f"{text} (--accept-older takes them)"


def match(cells: Sequence[AnyCell], contents: Contents, accept_older: bool = False) -> Matched:
    """Find the row of every cell; of several by other code the last; their errors do not count."""
    table = contents.table.select(["key", "question", "status", "finished"]).to_pandas()
    status = dict(zip(table["key"], table["status"], strict=True))
    good = table[table["status"] != "failed"].sort_values("finished", kind="stable")
    by_question = dict(zip(good["question"], good["key"], strict=True))
    rows: list[str | None] = []
    older = []
    for cell in cells:
        other = None if status.get(cell.key, "failed") != "failed" else by_question.get(cell.question)
        if other is not None:
            older.append(cell)
        mine = cell.key if cell.key in status else None
        rows.append(other if accept_older and other is not None else mine)
    failed = tuple(key for key in rows if key is not None and status[key] == "failed")
    return Matched(cells, tuple(rows), failed, tuple(older))


def by_this_code(frame: pd.DataFrame) -> list[bool]:
    """Was each row of a store computed by the code that is here now?"""
    from .. import mechanisms
    from . import code

    if "policy" in frame:
        return [_digest(policy) == made_by for policy, made_by in zip(frame["policy"], frame["code"], strict=True)]
    here = {(name, more): code.of(kind, more) for name, kind in mechanisms.REGISTRY.items() for more in (False, True)}
    more = ['"violations"' in str(options) for options in frame["options"]]
    return [here.get(key) == by for key, by in zip(zip(frame["name"], more, strict=True), frame["code"], strict=True)]


def _digest(policy: str) -> str | None:
    """Of what computes under a policy here; none if it is not here."""
    try:
        return runners.digest(policy)
    except DataError:
        return None
