"""`Measurements`: what the experiment `alpha_convergence` gave, as aggregates over its draws that come with fairopt.

The experiment takes an hour, so that claims about time and convergence are judged by these, and not by a run of
seconds. `tools/measurements.py` writes them from a store that holds the experiment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import StringIO
from typing import Any

import numpy as np

from .._libraries import pd

EXPERIMENT = "alpha_convergence"


@dataclass(frozen=True)
class Measurements:
    """Aggregates over draws; alpha is infinite for PS-DSF.

    Attributes
    ----------
    reached : DataFrame
        By cluster, alpha, order, damping (NaN: that of the order) and residual `level`: of `n` games those that got
        `there`, medians of `rounds`, `messages` and `seconds` (infinite where half of the games never do), and the
        ends `rounds low`, ... of the medians' 95% intervals.
    solved : DataFrame
        By cluster and alpha, of the engine for the equilibrium: median `seconds` with the ends of its interval, means
        of utilization, smallest share, Jain's index and price of fairness with half intervals (`+- jain`).
    about : dict
        When, by which code, where, and of what.
    """

    reached: pd.DataFrame
    solved: pd.DataFrame
    about: dict[str, Any]

    def games(
        self, cluster: str, level: float = 1e-3, order: str = "cyclic", damping: float | None = None
    ) -> pd.DataFrame:
        """Games on a cluster, by alpha."""
        frame = self.reached
        like = frame["damping"].isna() if damping is None else np.isclose(frame["damping"], damping)
        chosen = frame[(frame["cluster"] == cluster) & (frame["order"] == order) & like]
        return chosen[np.isclose(chosen["level"], level)].set_index("alpha").sort_index()

    def equilibria(self, cluster: str) -> pd.DataFrame:
        """Equilibria of a cluster, by alpha."""
        return self.solved[self.solved["cluster"] == cluster].set_index("alpha").sort_index()

    def clusters(self) -> list[str]:
        """The clusters of the experiment, in its order."""
        return list(self.solved["cluster"].unique())


@cache
def measurements() -> Measurements:
    """Those that come with fairopt."""
    folder = resources.files(__package__) / "data"
    reached, solved = (pd.read_csv(StringIO((folder / f"{name}.csv").read_text())) for name in ("reached", "solved"))
    return Measurements(reached, solved, json.loads((folder / "about.json").read_text()))
