"""`Trace`: how the distributed game went, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._libraries import pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Trace:
    """Rounds of best responses.

    Attributes
    ----------
    frame : one row per round
        `residual`: largest change that a best response would still make, relative to the user's tasks;
        `exploitability`: as certificates define it, at the prices that servers last announced; `utilization`: used
        part of all capacity, averaged over resources; `seconds` of the processor and `messages` so far.
    reason : why it stopped, and what to change
    order : in which servers responded
    """

    frame: pd.DataFrame
    reason: str
    order: str = "cyclic"

    @property
    def rounds(self) -> int:
        """Rounds in all."""
        return len(self.frame)

    def rounds_to(self, residual: float) -> int | None:
        """The first round from which on the residual stays at or below this; `None` if it does not."""
        above = self.frame.index[self.frame["residual"] > residual]
        first = 1 if not len(above) else int(above[-1]) + 1
        return first if first <= len(self.frame) else None

    def plot(self) -> Figure:
        """Residual and exploitability over rounds, on a logarithmic scale."""
        from ._plot import Picture

        figure = Picture(figsize=(5, 3.2), layout="constrained")
        axes = figure.subplots()
        for column, style in (("residual", "-"), ("exploitability", "--")):
            shown = self.frame[column].where(self.frame[column] > 0)
            axes.semilogy(self.frame.index, shown, style, label=column)
        axes.set_xlabel("round")
        axes.set_ylabel("relative, in tasks")
        axes.legend(frameon=False)
        return figure

    def __repr__(self) -> str:
        if not len(self.frame):
            return f"Trace(no rounds; {self.reason})"
        last = self.frame.iloc[-1]
        return f"Trace({self.rounds} rounds, residual {last['residual']:.1e}; {self.reason})"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self))}</p>{self.frame.tail()._repr_html_()}"
