"""Progress bars of the terminal, or of a notebook with widgets."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any


def tqdm(*arguments: Any, **more: Any) -> Any:
    """Create a progress bar: the widget of a notebook's kernel if widgets are installed, else the bar of the terminal.

    Outside of notebooks nothing is written to a file or a pipe.

    `tqdm.auto` is avoided, since it changes the process-wide filters of warnings while other threads run.
    """
    kernel = "ipykernel.zmqshell" in sys.modules
    if kernel and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as bar
    else:
        from tqdm import tqdm as bar
    if not (kernel or more.get("disable")):
        more["disable"] = None  # no bar unless the output is a terminal
    return bar(*arguments, **{"file": getattr(sys.stderr, "stream", sys.stderr)} | more)
