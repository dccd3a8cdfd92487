"""Origins of cells: the name of a cluster or workload, a digest of its data, and its reconstruction."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..base import files as _files
from ..base import plugins
from ..base.errors import DataError
from ..model._validate import ARGUMENTS
from ..model.cluster import Cluster
from ..model.merging import merge
from ..scheduling.workload import Workload
from ..workloads import load_workload
from ..workloads._job_files import is_file
from ..workloads.sources import CLUSTERS, WORKLOADS, Sources
from . import papers
from .ends import Elsewhere

PAPER = "paper:"


@dataclass(frozen=True)
class Origin:
    """Origin of the cluster or workload of a cell, part of the cell's key.

    `kind` is `paper`, `file`, `trace` or `generator`. `digest` covers the data of the source, for a generator only its
    plug-in, so that a generator in place of a trace, or another part of a trace, yields another cell.
    """

    text: str
    kind: str
    digest: str
    merge: bool
    path: str = field(default="", compare=False)  # not compared, since only the content of a file matters

    @property
    def named(self) -> str:
        """The text with files and folders reduced to their names, without paths of this machine."""
        return _files.unplaced(self.text)

    @property
    def random(self) -> bool:
        """True if the data depend on the seed."""
        return self.kind in ("trace", "generator")

    @property
    def fields(self) -> dict[str, Any]:
        """Fields that enter the key of the cell."""
        return {"text": self.text, "kind": self.kind, "digest": self.digest, "merge": self.merge}


def check(sources: Sources[Any], text: str, folder: Path, options: tuple[str, ...]) -> None:
    """Validate the name and options of a source without access to its files, unlike `of`.

    Raises
    ------
    DataError
        The source is unknown, or its options are invalid.
    """
    if _paper(sources, text) or _file(sources, text, folder):
        if options:
            raise DataError("only traces and generators take options", (options[0],))
        return
    sources.check(text)


def of(sources: Sources[Any], text: str, merged: bool, folder: Path, traces: str | None) -> Origin:
    """Determine the origin of a cluster or workload from its text; paths of files are relative to `folder`.

    Raises
    ------
    DataError
        The source, its file or its trace does not exist.
    """
    if _paper(sources, text):
        cluster = papers.instance(text.removeprefix(PAPER))
        made_of = [(name, np.asarray(getattr(cluster, name)).tolist()) for name in ARGUMENTS
                   if name != "rate" or cluster.rated]  # fmt: skip
        return Origin(text, "paper", hashlib.sha256(repr(made_of).encode()).hexdigest()[:16], merged)
    if path := _file(sources, text, folder):
        if not path.exists():
            raise DataError(f"there is no file {path}")
        return Origin(text, "file", contents(path), merged, str(path.resolve()))
    sources.check(text, traces, there=True)
    trace = sources.folder(text, traces)
    if trace is None:
        return Origin(text, "generator", plugins.digest_of(sources.made_by(text)), merged)
    if not trace.exists():
        raise DataError(f"there is no trace at {trace}")
    return Origin(text, "trace", contents(trace), merged)


def _paper(sources: Sources[Any], text: str) -> bool:
    return sources is CLUSTERS and text.startswith(PAPER)


def _file(sources: Sources[Any], text: str, folder: Path) -> Path | None:
    """Path of the file or folder that a text names, whether or not it exists; None if the text names a source."""
    cluster = text.endswith((".toml", ".json", ".csv")) and CLUSTERS.reads(text) is None
    return folder / text if (cluster if sources is CLUSTERS else is_file(str(folder / text))) else None


def drawn(origin: Origin, seed: int, repetition: int, traces: str | None) -> tuple[Cluster, str]:
    """Draw a cluster, and return it with its description; seed and repetition determine it for all mechanisms.

    Raises `Elsewhere` if the files of the origin have changed, or are others on this machine.
    """
    if origin.kind == "paper":
        found, about = papers.instance(origin.text.removeprefix(PAPER)), origin.text
    elif origin.kind == "file":
        found, about = Cluster.load(_unchanged(origin)), origin.named
    else:
        snapshot = _opened(CLUSTERS, origin, seed, repetition, traces)
        found, about = snapshot.cluster, snapshot.source
    return (merge(found, users=False).cluster if origin.merge else found), about


#: `drawn` with a cache of the last clusters, since consecutive cells share clusters.
cluster = lru_cache(maxsize=4)(drawn)


@lru_cache(maxsize=2)
def workload(origin: Origin, seed: int, repetition: int, traces: str | None) -> Workload:
    """Draw a workload; seed and repetition determine it for all policies.

    Raises `Elsewhere` if the files of the origin have changed, or are others on this machine.
    """
    if origin.kind == "file":
        return load_workload(_unchanged(origin))
    made: Workload = _opened(WORKLOADS, origin, seed, repetition, traces)
    return made


def _opened(sources: Sources[Any], origin: Origin, seed: int, repetition: int, traces: str | None) -> Any:
    # The origin of a generator depends on no file, so that it can be cached for the thousands of cells that request it.
    look = _known if origin.kind == "generator" else _found
    here, make = look(sources is WORKLOADS, origin.text, origin.merge, traces)
    if here != origin:
        raise Elsewhere(f"{origin.text} is a {here.kind} with other files here than where the sweep was started")
    return make(np.random.default_rng([seed, repetition]))


def _found(simulated: bool, text: str, merged: bool, traces: str | None) -> tuple[Origin, Callable[..., Any]]:
    """Origin of a text on this machine, and the function that draws from the source."""
    sources: Sources[Any] = WORKLOADS if simulated else CLUSTERS
    return of(sources, text, merged, Path(), traces), sources.maker(text, traces)


_known = lru_cache(maxsize=256)(_found)


def _unchanged(origin: Origin) -> str:
    if contents(Path(origin.path)) != origin.digest:
        raise Elsewhere(f"{origin.path} has changed since the sweep was started")
    return origin.path


def contents(path: Path) -> str:
    """Digest of a file's content, or of the relative paths and contents of all files in a folder."""
    if not path.is_dir():
        return _digest(str(path))[:16]
    inside = [(Path(folder).relative_to(path).parts, folder, names) for folder, _, names in os.walk(path)]
    files = [([*of, name], os.path.join(folder, name)) for of, folder, names in inside for name in names]
    parts = sorted((names, file) for names, file in files if os.path.isfile(file))
    found = [("/".join(names), _digest(file)) for names, file in parts]
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def _digest(path: str) -> str:
    state = os.stat(path)
    return _digest_of(path, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@cache
def _digest_of(path: str, *_: int) -> str:
    """Digest of a file, cached under its path, inode, size and times, since thousands of cells request it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
