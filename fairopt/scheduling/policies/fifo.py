"""First in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.errors import DataError
from ._base import Policy


@dataclass(frozen=True)
class FIFO(Policy):
    """Serve tasks by arrival, on the first server with room; ties are broken by user, job and order of the input.

    A task that does not fit blocks later tasks, unless `strict=False`. Jobs with a predecessor are ordered by their
    stated arrival, not by the completion of the predecessor.

    Parameters
    ----------
    gang : bool
        Start the tasks of a job that have equal demands all at once, or not at all.

    Raises
    ------
    DataError
        `gang` is true and `strict` false.

    Source: the default scheduler of Hadoop, with which DRF section 1 begins.
    """

    name = "fifo"
    title = "FIFO"
    source = "folklore"
    queue = "one"

    strict: bool = True
    gang: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gang and not self.strict:
            raise DataError("fifo(gang=True) is strict; use easy, where later jobs may pass the first that waits")

    @property
    def gangs(self) -> int:
        return int(self.gang)
