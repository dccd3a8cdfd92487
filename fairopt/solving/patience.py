"""How long an engine may go on that nobody asked for by name."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..engines.base import Solution


def within(seconds: float, offers: Iterator[Solution]) -> Iterator[Solution]:
    """The answers of an engine until it, and who judged them, took so many seconds of the processor.

    At least one, and the last one may be late: an engine is not stopped on its way to an answer.
    """
    end = time.process_time() + seconds
    for offer in offers:
        yield offer
        if time.process_time() > end:
            return
