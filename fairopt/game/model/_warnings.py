"""Floating-point warnings off while an engine works, and on again while its caller looks at what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def suppress_fp_warnings(generator: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Decorate a generator to ignore floating-point warnings in its own steps, and not in its caller's."""

    @wraps(generator)
    def stepped(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = generator(*args, **kwargs)
        while True:
            with np.errstate(all="ignore"):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    return stepped
