"""Measurement of CPU time and memory, and computation in a separate process with a limit of CPU time."""

from __future__ import annotations

import json
import math
import os
import resource
from collections.abc import Callable
from typing import Any, TypeVar

from fairopt.base import clock

T = TypeVar("T")

#: CPU seconds below which a measurement is repeated, and the minimum counts.
BRIEF = 0.5


def cost(ask: Callable[[], T]) -> tuple[T, float, float]:
    """Result of `ask()`, its CPU seconds without compilation, and the rise of peak memory in MiB."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, clock.cpu()
    found = ask()
    seconds = clock.cpu() - begun
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if seconds < BRIEF:
        begun = clock.cpu()
        ask()
        seconds = min(seconds, clock.cpu() - begun)
    return found, seconds, more


def apart(ask: Callable[[], Any], seconds: float) -> Any:
    """Result of `ask()` in a separate process, converted to JSON; or a text on why there is none."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
        try:
            found = ask()
        except BaseException as error:
            found = f"{type(error).__name__}: {str(error)[:80]}"
        with os.fdopen(write, "w") as stream:
            json.dump(found, stream)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text) if text else f"no answer in {seconds:g} CPU s"
