"""Allocations as text and HTML, with as many digits as are certain according to the certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice
from textwrap import wrap

import numpy as np

from ..base.libraries import pd
from ..base.names import listed
from ..certificates import Certificate
from ..model._arrays import Array, Index
from .arrays import NOTHING, ROUNDING, SOME, Answer

#: Arrays (users,) by column name.
Columns = Mapping[str, Array]

#: Largest number of users, and largest number of resources, that are displayed.
_ROWS = 20


def cut(text: str, most: int) -> str:
    """Truncate a text to one line of at most `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def joined(columns: Sequence[Sequence[str]], most: int | None) -> str:
    """Join columns (header first, cells padded) to a table, divided into parts of at most `most` characters per line.

    The first column is repeated in every part.
    """
    parts = [columns] if most is None else _parts(columns, most)
    return "\n\n".join("\n".join(" ".join(row).rstrip() for row in zip(*part, strict=True)) for part in parts)


def _parts(columns: Sequence[Sequence[str]], most: int) -> list[list[Sequence[str]]]:
    """Divide columns into groups that fit into `most` characters, each with the first column; empty without columns."""
    if not columns:
        return []
    first, *others = columns
    words = " ".join("x" * max(1, len(column[0])) for column in others)
    lines = wrap(words, max(1, most - len(first[0]) - 1), break_long_words=False) or [""]
    left = iter(others)
    return [[first, *islice(left, len(line.split()))] for line in lines]


def text(allocation: Answer, columns: Columns, width: int | None = None) -> str:
    """Text of an allocation: users, utilization, certificate, notes; lines have at most `width` characters if given."""
    used = zip(allocation.cluster.resources, allocation.arrays.utilization.tolist(), strict=True)
    uses = [f"{name} {value:.1%}" for name, value in used if not math.isnan(value)]
    use = ", ".join(uses if len(uses) <= _ROWS else [*uses[:_ROWS], "..."])
    below = [f"utilization: {use}", f"certificate: {_verdict(allocation)}"]
    below += [f"note: {note}" for note in _notes(allocation)]
    if width is not None:
        below = [line for long in below for line in wrap(long, width, subsequent_indent="  ")]
    return "\n".join([_headline(allocation), _table(allocation, columns, width), *below])


def _table(allocation: Answer, columns: Columns, width: int | None) -> str:
    """Table of users; if there are more than 20 users, it has only the first ten and the last ten."""
    users, most = allocation.cluster.users, None if width is None else max(8, width // 3)
    half, count = _ROWS // 2, len(users)
    at = np.arange(count) if count <= _ROWS else np.r_[:half, count - half : count]
    shown = {"user": [users[n] for n in at]} | certain(columns, allocation, at)
    table: list[list[str]] = []
    for name, texts in shown.items():
        cells = [name, *texts] if count <= _ROWS else [name, *texts[:half], "...", *texts[half:]]
        cells = cells if most is None else [cut(text, most) for text in cells]
        size = max(map(len, cells))
        table.append([text.rjust(size) if table else text.ljust(size) for text in cells])
    return joined(table, width)


def html(allocation: Answer, columns: Columns) -> str:
    """HTML of an allocation: users, utilization of the last five servers and overall, certificate, and notes."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(allocation))
    index = pd.Index(allocation.cluster.users, name="user")
    table = pd.DataFrame(certain(columns, allocation), index=index)
    used = pd.concat([allocation.used_parts, allocation.utilization.to_frame("overall").T])
    return (
        f"<p><b>{escape(_headline(allocation))}</b></p>{table.to_html(max_rows=_ROWS)}"
        f"{used.tail(6).to_html(float_format='{:.1%}'.format, na_rep='', max_cols=_ROWS)}"
        f"<p>{escape(_verdict(allocation))}</p><ul>{notes}</ul>"
    )


def _notes(allocation: Answer) -> tuple[str, ...]:
    doubtful = np.flatnonzero(~np.isnan(uncertain(allocation.certificate)))
    if allocation._given or not len(doubtful):
        return allocation.notes
    users = listed([allocation.cluster.users[n] for n in doubtful], 5)
    why = "not certain to three digits, as a small change of the data moves their tasks"
    if allocation.criterion.alpha == 0:
        why = "not proved to be unique, as at alpha = 0 other tasks can be as good"
    note = f"{why}: {users}"
    return (*allocation.notes, note)


def _headline(allocation: Answer) -> str:
    flag = "  ** misses the tolerance **" if allocation.flagged else ""
    cluster = allocation.cluster
    return f"{allocation.mechanism}: {len(cluster.users)} users, {len(cluster.servers)} servers{flag}"


def _verdict(allocation: Answer) -> str:
    certificate = allocation.certificate
    text = f"feasibility {_size(certificate.feasibility)}, {certificate.measure}"
    if certificate.judged:
        text += f" {_size(certificate.optimality)}"
    return text if certificate.gap is None else f"{text}, welfare gap {_size(certificate.gap)}"


def _size(value: float) -> str:
    """Text of a residual; rounding errors, which differ between machines, have the same text."""
    return "< 1e-12" if value < 1e-12 else f"{value:.1e}"


# -- certain digits -------------------------------------------------------------------------------

#: Relative error bound above which a user's tasks have fewer than three certain digits.
_UNCERTAIN = 1e-3
#: Largest number of digits displayed.
_MOST = 6


def off(certificate: Certificate) -> Array | None:
    """First-order bound on the relative error of tasks, (users,): residual (at least 1e-15) times condition number.

    None if condition numbers are unknown.
    """
    known = certificate.conditions
    # Rounding errors are of relative size 1e-15, even if the residual is zero.
    return None if known is None else np.asarray(max(certificate.residual, 1e-15) * known)


def uncertain(certificate: Certificate) -> Array:
    """Error bounds, (users,), of users with fewer than three certain digits, NaN for other users.

    The array is empty if condition numbers are unknown.
    """
    apart = off(certificate)
    return np.zeros(0) if apart is None else np.where(apart > _UNCERTAIN, apart, np.nan)


def certain(
    columns: Mapping[str, Array], allocation: Answer, users: Index | slice = slice(None)
) -> dict[str, list[str]]:
    """Columns of an allocation at these users, as text with the digits that are certain, at most six.

    Tasks that the certificate does not distinguish from 0 (`Arrays.nothing`) print as 0. Tasks on one server (the
    columns after the weight) also print as 0 if their fraction of the user's tasks is less than the residual or the
    error bound (clipped to 1e-3). Numbers without a certain digit print as `?`. Weights have six digits, as have given
    tasks (`Allocation.of`), which have no error.
    """
    certificate, given, nothing = allocation.certificate, allocation._given, allocation.arrays.nothing
    bound, tasks = None if given else off(certificate), columns["tasks"]
    apart = np.zeros(len(tasks)) if bound is None else np.nan_to_num(bound, nan=0.0, posinf=np.inf)
    least = np.maximum(max(0.0 if given else certificate.residual, ROUNDING), np.where(np.isinf(apart), 0.0, apart))
    dust = np.minimum(least, _UNCERTAIN) * tasks
    if not certificate.judged:
        dust = np.maximum(dust, np.minimum(NOTHING * tasks, SOME))
    with np.errstate(divide="ignore"):
        digits = np.clip(np.floor(-np.log10(apart[users])), 0, _MOST).astype(int).tolist()
    text, weight = {}, [*columns].index("weight")
    for place, (name, values) in enumerate(columns.items()):
        sure = [_MOST] * len(digits) if place == weight else digits
        # Columns after the weight are servers.
        kept = np.where((nothing & (place != weight)) | ((values < dust) & (place > weight)), 0.0, values)
        text[name] = ["0" if value == 0 else f"{value:.{k}g}" if k else "?"
                      for value, k in zip(kept[users].tolist(), sure, strict=True)]  # fmt: skip
    return text
