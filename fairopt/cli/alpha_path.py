"""`fairopt path FILE`: a mechanism as its parameter alpha changes."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .. import report
from ..errors import DataError
from ..model import _validate
from ..report import figures
from ..study.alpha_path import ALPHAS, alpha_path
from . import _screen
from ._json import print_json
from ._open import open_cluster
from ._slips import listed

#: The most alphas of one path.
_MOST = 10_000


def path(options: argparse.Namespace) -> int:
    """`fairopt path FILE --mechanism NAME --alphas LOW:HIGH:COUNT`."""
    alphas = values(options.alphas)
    _before(options)
    cluster, source = open_cluster(options.file, options.traces)
    found = alpha_path(
        cluster, alphas, mechanism=options.mechanism, tol=options.tol, progress=_screen.shows_progress(options)
    )
    frame = found.reset_index()
    if options.out:
        report.export(frame, Path(options.out))
    if options.plot:
        figures.write(found.plot(), Path(options.plot))
    if options.json:
        print_json(frame.to_dict(orient="records"))
        return 0
    _screen.say([f"{found.mechanism} on {source or options.file}"])
    print(_screen.table(frame))
    for name in filter(None, (options.out, options.plot)):
        print(f"-> {name}")
    return 0


def _before(options: argparse.Namespace) -> None:
    """What cannot be written is said before anything is solved."""
    if options.out:
        report.exportable(Path(options.out))
    if options.plot:
        figures.drawable(Path(options.plot))


def values(given: Sequence[str] | None) -> list[float]:
    """Alphas from a command line: numbers, `inf`, and `LOW:HIGH:COUNT`, from LOW to HIGH by equal factors."""
    if given is None:
        return list(ALPHAS)
    alphas: list[float] = []
    for text in listed(given) or []:
        parts = text.split(":")
        if len(parts) == 1:
            alphas.append(_validate.alpha(_number(text, text)))
        elif len(parts) == 3:
            low, high = (_number(part, text) for part in parts[:2])
            if not (0 < low < math.inf and 0 < high < math.inf):
                raise DataError(f"--alphas {text}: both ends must be finite and > 0; name 0 and inf by themselves")
            if not (parts[2].isdecimal() and len(parts[2]) < 9 and 1 <= int(parts[2]) <= _MOST):
                raise DataError(f"--alphas {text}: the count must be a whole number from 1 to {_MOST:,}")
            alphas += [float(alpha) for alpha in np.geomspace(low, high, int(parts[2]))]
        else:
            raise DataError(f"--alphas {text}: write numbers, inf, or LOW:HIGH:COUNT such as 0.1:100:40")
    if not alphas:
        raise DataError("--alphas is empty; write numbers, inf, or LOW:HIGH:COUNT such as 0.1:100:40")
    return alphas


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"--alphas {whole}: {text!r} is not a number; write numbers, inf, or LOW:HIGH:COUNT") from None
