"""Progress bars: of the terminal, or of a notebook that has widgets."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any


def tqdm(*arguments: Any, **more: Any) -> Any:
    """The bar of a notebook where one may be open and has widgets, else that of the terminal.

    `tqdm.auto` is not asked without widgets: it would warn, and a filter of warnings holds for other threads too.
    """
    if "IPython" in sys.modules and find_spec("ipywidgets") is not None:
        from tqdm.auto import tqdm as bar
    else:
        from tqdm import tqdm as bar
    return bar(*arguments, **more)
