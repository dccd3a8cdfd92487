"""A question in a process of its own, which may take so many CPU seconds, and leaves no memory behind."""

from __future__ import annotations

import json
import math
import os
import resource
from collections.abc import Callable
from typing import Any


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
