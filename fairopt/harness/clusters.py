"""What the cluster of a cell is: a name that fixes it, and how to build it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from .. import _plugins, papers
from ..errors import DataError
from ..model import _files
from ..model._validate import ARGUMENTS
from ..model.cluster import Cluster
from ..model.merging import merge
from ..workloads import open_source, trace_folder
from ..workloads._registry import CLUSTERS
from ..workloads.sources import check_source, made_by
from . import _contents
from ._ends import Elsewhere


@dataclass(frozen=True)
class Origin:
    """Where the cluster of a cell comes from, as part of the cell's key.

    `kind` is `paper`, `file`, `trace` or `generator`, and `digest` what the source holds (of all but a generator), so
    that a generator in place of a trace, or another part of a trace, is another cell.
    """

    text: str
    kind: str
    digest: str
    merge: bool
    path: str = field(default="", compare=False)  # of a file: where it is does not matter, what it holds does

    @property
    def named(self) -> str:
        """The text with files and folders by their names, for what leaves this machine."""
        return _files.unplaced(self.text)

    @property
    def random(self) -> bool:
        """Does it depend on the seed?"""
        return self.kind in ("trace", "generator")


def origin(text: str, merge: bool, folder: Path, traces: str | None) -> Origin:
    """What a source stands for here, now; cluster files are relative to `folder`.

    Raises
    ------
    DataError
        There is no such source.
    """
    if text.startswith("paper:"):
        return Origin(text, "paper", _of_cluster(papers.instance(text.removeprefix("paper:"))), merge)
    if text.endswith((".toml", ".json", ".csv")) and not CLUSTERS.names(text):
        path = folder / text
        if not path.is_file():
            raise DataError(f"there is no cluster file {path}")
        return Origin(text, "file", _contents.of_file(path), merge, str(path.resolve()))
    check_source(text, traces=traces, there=True)
    trace = trace_folder(text, traces)
    if trace is None:
        return Origin(text, "generator", _plugins.digest_of(made_by(text)), merge)
    if not trace.exists():
        raise DataError(f"there is no trace at {trace}")
    digest = _contents.of_folder(trace) if trace.is_dir() else _contents.of_file(trace)
    return Origin(text, "trace", digest, merge)


def _of_cluster(cluster: Cluster) -> str:
    """A digest of all that a cluster is made of."""
    made_of = [(name, np.asarray(getattr(cluster, name)).tolist()) for name in ARGUMENTS]
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


@lru_cache(maxsize=4)  # cells of one cluster follow each other
def build(source: Origin, seed: int, repetition: int, traces: str | None) -> tuple[Cluster, str]:
    """The cluster, and the line about it. The same seed and repetition draw the same cluster for every mechanism."""
    if source.kind == "paper":
        cluster, about = papers.instance(source.text.removeprefix("paper:")), source.text
    elif source.kind == "file":
        if _contents.of_file(Path(source.path)) != source.digest:
            raise Elsewhere(f"the cluster file {source.path} has changed since the sweep was started")
        cluster, about = Cluster.load(source.path), source.named
    else:
        rng = np.random.default_rng(np.random.SeedSequence([seed, repetition]))
        here = origin(source.text, source.merge, Path(), traces)
        if here != source:
            raise Elsewhere(f"{source.text} is a {here.kind} with other files here than where the sweep was started")
        snapshot = open_source(source.text, traces=traces, rng=rng)
        cluster, about = snapshot.cluster, snapshot.source
    return (merge(cluster, users=False).cluster if source.merge else cluster), about
