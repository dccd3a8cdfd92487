"""What a question costs, and a process of its own for it: so many CPU seconds at most, and no memory left behind."""

from __future__ import annotations

import json
import math
import os
import resource
from collections.abc import Callable
from typing import Any, TypeVar

from fairopt.base import clock

T = TypeVar("T")

#: CPU seconds below which a question is asked again, and the quicker answer counts.
BRIEF = 0.5


def cost(ask: Callable[[], T]) -> tuple[T, float, float]:
    """What `ask()` returns, the CPU seconds that it takes without compiling, and MiB beyond the peak of before."""
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
    """What `ask()` returns, as JSON keeps it; a text that says why there is no answer."""
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
