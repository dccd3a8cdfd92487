"""Progress bars: of the terminal, or of a notebook that has widgets."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any


def tqdm(*arguments: Any, **more: Any) -> Any:
    """The bar of a notebook's kernel where it has widgets, else that of the terminal.

    `tqdm.auto` is never asked: it changes the filters of warnings, which hold for other threads too, and bars are shown
    from threads.
    """
    if "ipykernel.zmqshell" in sys.modules and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm as bar
    else:
        from tqdm import tqdm as bar
    return bar(*arguments, **{"file": getattr(sys.stderr, "stream", sys.stderr)} | more)
