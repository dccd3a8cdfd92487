"""`fairopt warmup`: loops compiled before somebody waits for them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from .. import _clock
from ..errors import FairoptError
from . import _screen
from ._json import print_json


def add(commands: Mapping[str, argparse.ArgumentParser]) -> None:
    """The options of the command."""
    commands["warmup"].add_argument("--json", action="store_true", help="print JSON instead of a sentence")


def warmup(options: argparse.Namespace) -> int:
    """`fairopt warmup`."""
    from .. import _numba
    from ..sweeps import warm

    watch = _clock.Watch()
    warm.everything(progress=_screen.shows_progress(options))
    if not (folders := _numba.folders()):
        raise FairoptError("there is no folder to keep compiled loops in; set NUMBA_CACHE_DIR to one")
    where, made = os.path.commonpath(folders), len(_numba.COMPILED)
    if options.json:
        print_json({"compiled": made, "seconds": watch.loops, "folder": where})
    elif made:
        print(f"{made} loops compiled in {watch.loops:.0f} s, and kept below {where}")
    else:
        print(f"all loops are compiled already, and kept below {where}")
    return 0
