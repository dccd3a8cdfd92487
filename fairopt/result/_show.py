"""An allocation as text, and as HTML for notebooks: certain digits only, nothing for what is not there."""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import Protocol

from .._libraries import pd
from ..certificates import Certificate
from . import _digits, metrics
from ._answer import Answer


class Shown(Answer, Protocol):
    """What is shown of an allocation."""

    @property
    def certificate(self) -> Certificate:
        """How good it is."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know."""

    @property
    def flagged(self) -> bool:
        """Does the certificate miss the tolerance?"""

    @property
    def utilization(self) -> pd.DataFrame:
        """Used part of each capacity."""

    def to_frame(self) -> pd.DataFrame:
        """One row per user."""

    def uncertain(self) -> pd.Series:
        """Users of whom few digits are certain."""


def text(allocation: Shown, width: int | None = None) -> str:
    """Users, utilization, certificate, notes; tables that are wider than `width` characters are broken."""
    shown = _digits.shown(allocation.to_frame(), allocation.certificate)
    table = shown.to_string(max_rows=20, line_width=width, max_colwidth=None if width is None else max(8, width // 3))
    there = metrics.utilization(allocation).dropna()
    use = ", ".join(f"{name} {value:.1%}" for name, value in there.items())
    below = [f"utilization: {use}", f"certificate: {_verdict(allocation)}"]
    below += [f"note: {note}" for note in _notes(allocation)]
    if width is not None:
        below = [line for long in below for line in wrap(long, width, subsequent_indent="  ")]
    return "\n".join([_headline(allocation), table, *below])


def html(allocation: Shown) -> str:
    """The same as HTML, with utilization by server."""
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(allocation))
    table = _digits.shown(allocation.to_frame(), allocation.certificate)
    return (
        f"<p><b>{escape(_headline(allocation))}</b></p>{table.to_html(max_rows=20)}"
        f"{allocation.utilization.tail(6).to_html(float_format='{:.1%}'.format, na_rep='')}"
        f"<p>{escape(_verdict(allocation))}</p><ul>{notes}</ul>"
    )


def _notes(allocation: Shown) -> tuple[str, ...]:
    return (*allocation.notes, *_digits.doubts(allocation.uncertain()))


def _headline(allocation: Shown) -> str:
    flag = "  ** misses the tolerance **" if allocation.flagged else ""
    cluster = allocation.cluster
    return f"{allocation.mechanism}: {len(cluster.users)} users, {len(cluster.servers)} servers{flag}"


def _verdict(allocation: Shown) -> str:
    certificate = allocation.certificate
    text = f"feasibility {_size(certificate.feasibility)}, {certificate.measure} {_size(certificate.optimality)}"
    return text if certificate.gap is None else f"{text}, welfare gap {_size(certificate.gap)}"


def _size(value: float) -> str:
    """Rounding errors differ from machine to machine, and mean nothing."""
    return "< 1e-12" if value < 1e-12 else f"{value:.1e}"
