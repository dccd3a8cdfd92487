"""`Instance`: a worked example of a paper, built when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..model.cluster import Cluster


@dataclass(frozen=True)
class Instance:
    """A cluster of a paper: its name here, the paper's key, the section, one line about it, and how to build it."""

    name: str
    paper: str
    where: str
    description: str
    build: Callable[[], Cluster]
