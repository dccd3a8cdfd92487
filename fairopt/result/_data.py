"""What an answer has derivatives by: kinds of data, and their names in frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._libraries import pd
from ..sensitivity.derivatives import Derivatives
from ._answer import Answer

#: Data by name: field of the cluster, and the levels of their index.
DATA = {
    "alpha": ("alpha", ("parameter",)),
    "weights": ("weight", ("user",)),
    "demands": ("demand", ("user", "resource")),
    "capacities": ("capacity", ("server", "resource")),
    "max_tasks": ("limit", ("user",)),
    "counts": ("count", ("server",)),
}


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """An answer, its derivatives, and the index of each kind of data."""

    answer: Answer
    derivatives: Derivatives = field(repr=False)

    def _there(self, by: str) -> NDArray[np.bool_]:
        """Which data of a kind there are, flat: not limits of who has none, nor zeros."""
        cluster = self.answer.cluster
        if by == "demands":
            return np.asarray(cluster.demand > 0).ravel()
        if by == "capacities":
            return np.asarray(cluster.capacity > 0).ravel()
        if by == "max_tasks":
            return np.isfinite(cluster.max_tasks) & (cluster.max_tasks > 0)
        return np.ones(len(self._index(by)), dtype=bool)

    def _index(self, by: str) -> pd.Index:
        cluster = self.answer.cluster
        of: dict[str, tuple[str, ...]] = {
            "parameter": ("alpha",),
            "user": cluster.users,
            "server": self.derivatives.cluster.servers if by == "counts" else cluster.servers,
            "resource": cluster.resources,
        }
        levels = DATA[by][1]
        if len(levels) == 1:
            return pd.Index(of[levels[0]], name=levels[0])
        return pd.MultiIndex.from_product([of[level] for level in levels], names=levels)

    @cached_property
    def _whole(self) -> pd.MultiIndex:
        """All data: kind, of whom, resource."""
        rows: list[tuple[Any, ...]] = []
        for by in DATA:
            rows += [(by, *each) if isinstance(each, tuple) else (by, each, "") for each in self._index(by)]
        return pd.MultiIndex.from_tuples(rows, names=["by", "of", "resource"])
