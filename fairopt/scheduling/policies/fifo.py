"""First in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from ._base import Policy


@dataclass(frozen=True)
class FIFO(Policy):
    """Tasks by arrival, on the first server with room; those that arrive together by user, job and place.

    Strict: the first that does not fit blocks those behind it. `strict=False` lets them pass. A job that comes after
    another is ordered by the arrival that its table states, not by when it came.

    Source: the default of Hadoop, which DRF section 1 begins with.
    """

    name = "fifo"
    title = "FIFO"
    source = "folklore"
    queue = "one"

    strict: bool = True
