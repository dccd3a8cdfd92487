"""Progress bars: of the terminal, or of a notebook that has widgets."""

from __future__ import annotations

import warnings
from typing import Any


def tqdm(*arguments: Any, **more: Any) -> Any:
    """`tqdm.auto.tqdm`, which in a notebook without widgets is the bar of the terminal: no reason for a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm as bar
    return bar(*arguments, **more)
