"""Claims of PF on time and convergence (abstract, sections 5.2 and 6), judged by measurements (`Measurements`).

Rounds do not depend on the machine; seconds do, and PF's seconds were measured on another machine. `about` states
whether seconds are CPU time or, in older measurements, wall time, an upper bound on CPU time. PF does not state its
tolerance: 1e-3 is assumed, the largest relative change of any user's tasks by a further response.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from io import StringIO
from typing import Any

import numpy as np

from ...base.libraries import pd
from ...base.shipped import content
from ._claim import REPRODUCED, Claim, Printed

EXPERIMENT = "alpha_convergence"

#: Clusters: `_PF` has PF's locations with virtual machines of Bitbrains, `_MANY` has thousands of users.
_PF, _MANY = "bitbrains", "thousands"
#: Residual at which tasks are accurate to 1e-3.
_CLOSE = 1e-3
#: Factor by which a time may differ from a time that is stated as "around".
_AROUND = math.sqrt(10)


@dataclass(frozen=True)
class Measurements:
    """Aggregates of measurements over draws; alpha is infinite for PS-DSF.

    Attributes
    ----------
    reached : DataFrame
        By cluster, alpha, order, damping (NaN: the default damping of the order) and residual `level`: the number `n`
        of games, the number `there` of games whose residual falls to `level`, medians of `rounds`, `messages` and
        `seconds` until then (infinite if `there < n / 2`), and the ends `rounds low`, ... of 95% confidence intervals
        of the medians.
    solved : DataFrame
        By cluster and alpha, for the engine of equilibria: median `seconds` with the ends of its interval, and means of
        utilization, smallest share, Jain's index and price of fairness with half-widths of intervals (`+- jain`).
    about : dict
        Date, code, machine and subject of the measurements.

    >>> import fairopt as fo
    >>> isinstance(fo.papers.measurements(), fo.papers.Measurements)
    True
    """

    reached: pd.DataFrame
    solved: pd.DataFrame
    about: dict[str, Any]

    def games(
        self, cluster: str, level: float = 1e-3, order: str = "cyclic", damping: float | None = None
    ) -> pd.DataFrame:
        """Rows of `reached` for a cluster, residual `level`, order and damping (None: the default), by alpha."""
        frame = self.reached
        like = frame["damping"].isna() if damping is None else np.isclose(frame["damping"], damping)
        chosen = frame[(frame["cluster"] == cluster) & (frame["order"] == order) & like]
        return chosen[np.isclose(chosen["level"], level)].set_index("alpha").sort_index()

    def equilibria(self, cluster: str) -> pd.DataFrame:
        """Rows of `solved` for a cluster, by alpha."""
        return self.solved[self.solved["cluster"] == cluster].set_index("alpha").sort_index()

    def clusters(self) -> list[str]:
        """Names of the clusters, in the order of the experiment."""
        return list(self.solved["cluster"].unique())


@cache
def measurements() -> Measurements:
    """Read the measurements shipped with fairopt.

    >>> import fairopt as fo
    >>> fo.papers.measurements().clusters()[:3]
    ['small', 'dense', 'sparse']
    """
    read = partial(content, __package__)
    reached, solved = (pd.read_csv(StringIO(read(f"data/{name}.csv"))) for name in ("reached", "solved"))
    return Measurements(reached, solved, read("data/about.json"))


def claims() -> tuple[Claim, ...]:
    """Claims of PF on time and convergence, and further statements on best responses here that PF does not make."""
    slower, others = _slower_at_3(measurements())
    words = {"slower": " and ".join(slower), "others": ", ".join(others)}
    return tuple(_claim(words, **said) for said in content(__package__, "data/pf.toml")["measured"])


def _claim(
    words: dict[str, str], where: str, statement: str, ours: list[Any], correct: bool, printed: str = "",
    states: Sequence[int] = (), agreed: str = REPRODUCED,
) -> Claim:  # fmt: skip
    def judged(data: Measurements) -> tuple[bool, str]:
        found: tuple[bool, str] = globals()[f"_{ours[0]}"](data, *ours[1:])
        return found

    return Claim(35, "PF", where, EXPERIMENT, statement, lambda data: judged(data)[0], correct,
                 Printed(printed, True) if printed else None, numbers=lambda data: judged(data)[1],
                 states=tuple(states), agreed=agreed.format(**words))  # fmt: skip


def _slower_at_3(data: Measurements) -> tuple[list[str], list[str]]:
    """Clusters with significantly more rounds at alpha = 3 than at 1 (disjoint intervals), and the others."""
    found: tuple[list[str], list[str]] = [], []
    for cluster in data.clusters():
        games = data.games(cluster, _CLOSE)
        found[not games["rounds low"][3.0] > games["rounds high"][1.0]].append(cluster)
    return found


def _longer_at_3(data: Measurements) -> tuple[bool, str]:
    games = data.games(_PF, _CLOSE)
    said = f"rounds to 1e-3: {_median(games, 1.0)} at alpha = 1, {_median(games, 3.0)} at 3"
    return bool(games["rounds low"][3.0] > games["rounds high"][1.0]), said


def _never_falls(data: Measurements) -> tuple[bool, str]:
    """True if on no cluster a larger alpha takes significantly fewer rounds (disjoint intervals); text with medians."""
    falls, said = False, []
    for cluster in data.clusters():
        games = data.games(cluster, _CLOSE)
        falls |= bool((games["rounds high"] < games["rounds low"].cummax().shift()).any())
        if 64.0 in games.index:
            most = float(games["rounds"].idxmax())
            said.append(f"{cluster} {_median(games, most)} at {most:g} and {_median(games, 64.0)} at 64")
    return not falls, f"rounds to 1e-3: {'; '.join(said)}"


def _solved_in_a_second(data: Measurements) -> tuple[bool, str]:
    solved = data.equilibria(_MANY)
    slowest = float(solved["seconds"].idxmax())
    shown = ", ".join(f"{_seconds(solved, alpha)} at {alpha:g}" for alpha in (1.0, 3.0))
    said = f"alpha: {shown}; slowest {_seconds(solved, slowest)} at {slowest:g}"
    return bool((solved["seconds"] < 1).all()), said


def _psdsf_around(data: Measurements) -> tuple[bool, str]:
    few, many = (data.equilibria(cluster) for cluster in (_PF, _MANY))
    said = f"{_seconds(few, math.inf)}; with 2,000 users on 60 servers {_seconds(many, math.inf)}"
    return bool(0.03 / _AROUND < few["seconds"][math.inf] < 0.03 * _AROUND), said


def _all_converge(data: Measurements, level: float) -> tuple[bool, str]:
    """True if all undamped games of few users in cyclic or random order attain the level; text with the counts."""
    games = data.reached
    chosen = games["order"].isin(["cyclic", "random"]) & games["damping"].isna() & (games["cluster"] != _MANY)
    at = games[chosen & ((games["level"] / level - 1).abs() < 1e-9)]
    there, every = int(at["there"].sum()), int(at["n"].sum())
    return there == every, f"{there:,} of {every:,} games"


def _jacobi_converges(data: Measurements) -> tuple[bool, str]:
    played = [data.games("small", level, "jacobi", part) for level, part in ((1e-1, 0.8), (_CLOSE, 0.5), (_CLOSE, 0.2))]
    most, half, fifth = (f"{games['there'].sum()} of {games['n'].sum()}" for games in played)
    said = f"{most} games on 20 x 10; half of the way: {half} come to 1e-3, a fifth: {fifth}"
    return bool((played[0]["there"] == played[0]["n"]).all()), said


def _seconds(frame: pd.DataFrame, alpha: float) -> str:
    return f"{_median(frame, alpha, 'seconds')} s"


def _median(frame: pd.DataFrame, alpha: float, name: str = "rounds") -> str:
    """Format a median with its interval, `123 [95, 160]`; the median alone if the interval is unknown."""
    row = frame.loc[alpha]
    middle, low, high = (_text(float(row[key])) for key in (name, f"{name} low", f"{name} high"))
    return middle if math.isnan(row[f"{name} low"]) else f"{middle} [{low}, {high}]"


def _text(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:.0f}" if value >= 10 else f"{value:.2g}"
