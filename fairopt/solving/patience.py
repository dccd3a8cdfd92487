"""Time limits of engines that were not asked for by name."""

from __future__ import annotations

from collections.abc import Iterator

from .. import _clock
from ..engines.base import Solution


def within(seconds: float, offers: Iterator[Solution]) -> Iterator[Solution]:
    """The answers of an engine until it, and who judged them, took `seconds` of the processor.

    The compilation of loops does not count: what an engine may do must not depend on who was there first.
    At least one, and the last one may be late: an engine is not stopped on its way to an answer.
    """
    end = _clock.cpu() + seconds
    for offer in offers:
        yield offer
        if _clock.cpu() > end:
            return
