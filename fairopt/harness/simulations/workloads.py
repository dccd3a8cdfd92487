"""What the workload of a cell is: a name that fixes it, and how to make it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from ... import _plugins
from ...errors import DataError
from ...scheduling.workload import Workload
from ...workloads import load_workload, open_workload
from ...workloads._registry import WORKLOADS
from ...workloads.jobs.files import is_file
from .. import _contents
from .._ends import Elsewhere
from ..clusters import Origin


def check(text: str, folder: Path) -> None:
    """Raise what opening the workload would raise of its name alone."""
    if not is_file(str(folder / text)):
        WORKLOADS.check(text)


def origin(text: str, folder: Path, traces: str | None) -> Origin:
    """What a name stands for here, now; files and folders of tables are relative to `folder`.

    Raises
    ------
    DataError
        There is no such workload.
    """
    path = folder / text
    if is_file(str(path)):
        if not path.exists():
            raise DataError(f"there is no workload at {path}")
        digest = _contents.of_folder(path) if path.is_dir() else _contents.of_file(path)
        return Origin(text, "file", digest, False, str(path.resolve()))
    WORKLOADS.check(text, traces, there=True)
    trace = WORKLOADS.folder(text, traces)
    if trace is None:
        return Origin(text, "generator", _plugins.digest_of(WORKLOADS.made_by(text)), False)
    if not trace.is_dir():
        raise DataError(f"there is no trace at {trace}")
    return Origin(text, "trace", _contents.of_folder(trace), False)


@lru_cache(maxsize=2)  # cells of one workload follow each other
def build(source: Origin, seed: int, repetition: int, traces: str | None) -> Workload:
    """The workload: the same seed and repetition draw the same one for every policy."""
    if source.kind == "file":
        here = origin(source.path, Path(), traces)
        if here.digest != source.digest:
            raise Elsewhere(f"the workload {source.path} has changed since the sweep was started")
        return load_workload(source.path)
    if origin(source.text, Path(), traces) != source:
        raise Elsewhere(f"{source.text} stands for other files here than where the sweep was started")
    rng = np.random.default_rng(np.random.SeedSequence([seed, repetition]))
    return open_workload(source.text, traces=traces, rng=rng)
