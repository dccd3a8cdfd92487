"""Statements about simulated and measured results: a statistic of stored cells, the values that agree, and verdicts.

A statement is judged for each combination of the assumptions that its paper leaves open, by the 95% interval of the
mean of a statistic over draws. Intervals are shipped in `data/judged-PAPER.csv`, which `research/verdicts.py` writes,
so that verdicts need no simulation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import StringIO
from typing import Any

import numpy as np

from ...base.libraries import pd
from ...base.shipped import content
from ._claim import CANNOT, MEASURED_OTHERWISE, REPRODUCED, UNDER, show

#: Outcomes of a combination of assumptions: the interval is within the bounds (`AGREES`), outside (`DIFFERS`), or
#: contains a bound (`UNDECIDED`).
AGREES, DIFFERS, UNDECIDED = "comes out", "does not", "undecided"

#: Relative slack of bounds for rounding errors of statistics.
_ROUNDING = 1e-9
#: Largest number of values of an option that a verdict lists; otherwise it states only how many there are.
_FEW = 3


@dataclass(frozen=True)
class Assumption:
    """Option of a set-up that a paper decides or leaves open, and the meanings of its values.

    Attributes
    ----------
    name : str
        Option of the source, parameter of the policy, or column of the cells or of a statistic.
    paper : str
        Sentence of the paper that decides the option; `not said` if there is no such sentence.
    means : mapping
        Words for each value, given as text, in a verdict.
    default : str
        Value of cells that do not state the option; '' for a column that the statistic adds.
    decided : str
        Value that the sentence prescribes, so that verdicts disregard other values; '' if the option is open.
    """

    name: str
    paper: str
    means: Mapping[str, str] = field(hash=False)
    default: str = ""
    decided: str = ""

    def said(self, values: Iterable[str]) -> str:
        """Words of the values, joined by " or "; `name=value` if `means` lacks a value, omitted if its words are ''."""
        return " or ".join(filter(None, (self.means.get(value, f"{self.name}={value}") for value in values)))


@dataclass(frozen=True)
class Judged:
    """Statement of a paper, a statistic of stored cells, and the bounds within which the statistic agrees.

    Attributes
    ----------
    states, where, statement, printed
        The attributes of `Claim`.
    experiment : str
        Experiment whose cells the statistic reads.
    statistic : mapping
        Arguments of `statistics.compared`, or the `name` of another function of `statistics`, and its arguments.
    low, high : float
        Bounds between which the statistic agrees with the paper.
    assumptions : tuple of Assumption
    only : mapping
        Columns of cells, each with the value or values of the cells that the statistic reads.
    note : str

    >>> import fairopt as fo
    >>> one = fo.papers.judged("DRFH")[0]
    >>> one.statement, one.outcome(mean=44.2, half=0.1), one.outcome(mean=44.2, half=0.5)
    ('two users have dominant shares of 44%', 'comes out', 'undecided')
    """

    paper: str
    states: tuple[int, ...]
    where: str
    statement: str
    printed: str
    experiment: str
    statistic: Mapping[str, Any] = field(hash=False)
    low: float
    high: float
    assumptions: tuple[Assumption, ...]
    only: Mapping[str, str | Sequence[str]] = field(default_factory=dict, hash=False)
    note: str = ""

    def outcome(self, mean: float, half: float) -> str:
        """Outcome of the interval with this mean and half-width; `UNDECIDED` if the half-width is NaN or infinite."""
        low, high = (bound - way * _ROUNDING * max(1.0, abs(bound)) for bound, way in ((self.low, 1), (self.high, -1)))
        if low <= mean - half and mean + half <= high:
            return AGREES
        return DIFFERS if mean + half < low or mean - half > high else UNDECIDED

    def judge(self, setups: pd.DataFrame) -> pd.DataFrame:
        """Frame of set-ups with the additional column `outcome`, from the columns `mean` and `half`."""
        pairs = zip(setups["mean"], setups["half"], strict=True)
        return setups.assign(outcome=[self.outcome(mean, half) for mean, half in pairs])

    def verdict(self, setups: pd.DataFrame) -> str:
        """Verdict on the statement, from a frame of set-ups: columns of assumptions, `mean`, `half`, `n`, `outcome`.

        The verdict is `REPRODUCED` if all set-ups agree, `UNDER` with the agreeing assumptions if some agree, `CANNOT`
        if none agrees and some are undecided, or there are no set-ups, and otherwise `MEASURED_OTHERWISE` with the
        values tried.
        """
        axes = [one for one in self.assumptions if one.name in setups]
        setups = self.as_said(setups)
        agrees = setups[setups["outcome"] == AGREES]
        if len(agrees) == len(setups) > 0:
            return REPRODUCED
        if len(agrees):
            return f"{UNDER} {described(setups, agrees, axes)}"
        if (setups["outcome"] == UNDECIDED).any() or setups.empty:
            return f"{CANNOT} not decided by {_draws(setups)}"
        return f"{MEASURED_OTHERWISE}{_tried(setups, axes)}"

    def as_said(self, setups: pd.DataFrame) -> pd.DataFrame:
        """Set-ups with the decided value of every option; a decided value that no set-up has is disregarded."""
        for one in self.assumptions:
            if one.name in setups and one.decided and (setups[one.name] == one.decided).any():
                setups = setups[setups[one.name] == one.decided]
        return setups

    def numbers(self, setups: pd.DataFrame) -> str:
        """Text of the interval, or the range of means of several set-ups, by outcome, with bounds, draws and note."""
        parts, setups = [], self.as_said(setups)
        for outcome in (AGREES, UNDECIDED, DIFFERS):
            of = setups[setups["outcome"] == outcome]
            if len(of) == 1:
                parts.append(f"{outcome}: {interval_said(of['mean'].iloc[0], of['half'].iloc[0])}")
            elif len(of):
                ends = dict.fromkeys(_short(value) for value in (of["mean"].min(), of["mean"].max()))
                parts.append(f"{outcome} in {len(of)} set-ups: {' to '.join(ends)}")
        bounds = f"agrees {_bounds(self.low, self.high)}"
        return "; ".join([*parts, bounds, *filter(None, [_draws(setups), self.note])])


def described(setups: pd.DataFrame, agrees: pd.DataFrame, axes: Sequence[Assumption]) -> str:
    """Describe the combinations that agree by a product of sets of values, and state how many agree.

    The product begins with all values of each option that occur in an agreeing combination. The value whose
    combinations most often disagree is removed repeatedly until all combinations in the product agree. Options whose
    set follows from the sets of other options are not named.
    """
    varying = [one for one in axes if setups[one.name].nunique() > 1]
    rows = [tuple(row) for row in setups[[one.name for one in varying]].to_numpy().tolist()]
    agreed = dict(zip(rows, setups.index.isin(agrees.index), strict=True))
    best = [dict.fromkeys(row[k] for row in rows if agreed[row]) for k in range(len(varying))]

    def inside(axes: Iterable[int]) -> list[tuple[str, ...]]:
        return [row for row in rows if all(row[k] in best[k] for k in axes)]

    while (here := inside(range(len(varying)))) and not all(map(agreed.__getitem__, here)):
        parts = {(k, value): np.mean([agreed[row] for row in here if row[k] == value] or [0.0])
                 for k, of in enumerate(best) if len(of) > 1 for value in of}  # fmt: skip
        k, value = min(parts, key=lambda one: float(parts[one]))
        del best[k][value]
    deciding = list(range(len(varying)))
    for k in reversed(range(len(varying))):
        others = [one for one in deciding if one != k]
        if inside(others) == inside(deciding):
            deciding = others
    said = [varying[k].said(best[k]) for k in deciding]
    part = "" if len(inside(deciding)) == len(agrees) else f" ({len(agrees)} of {len(setups)} combinations agree)"
    return f"{', '.join(filter(None, said))}{part}"


def _tried(setups: pd.DataFrame, axes: Sequence[Assumption]) -> str:
    """Values of the options that were tried, in brackets; '' if no option varies."""
    varying = {one: list(dict.fromkeys(setups[one.name])) for one in axes if setups[one.name].nunique() > 1}
    parts = [one.said(of) if len(of) <= _FEW else f"{len(of)} values of {one.name}" for one, of in varying.items()]
    return f" ({'; '.join(filter(None, parts))})" if varying else ""


def _draws(setups: pd.DataFrame) -> str:
    if setups.empty:
        return "no draws"
    least, most = int(setups["n"].min()), int(setups["n"].max())
    return f"{least}{f' to {most}' * (least < most)} draw{'s' * (most > 1)}"


def interval_said(mean: float, half: float) -> str:
    """Mean with the half-width of its interval, `12.3 +- 0.4`; the mean alone if the half-width is 0 or unknown."""
    known = math.isfinite(half) and half > 1e-9 * abs(mean)
    return f"{_short(mean)} +- {_short(half)}" if known else _short(mean)


def _short(value: float) -> str:
    """Three significant digits of a value; `never` for an infinite one, the time of what is not reached."""
    return "never" if math.isinf(value) else show(float(f"{value:.3g}"))


def _bounds(low: float, high: float) -> str:
    if math.isinf(high):
        return f"from {show(low)} on"
    return f"up to {show(high)}" if math.isinf(low) else f"from {show(low)} to {show(high)}"


@cache
def shipped(paper: str) -> dict[str, pd.DataFrame]:
    """Frames of the shipped intervals of a paper by statement: `mean`, `half`, `n`, and options of the set-up.

    The result is empty if no file of the paper is shipped.
    """
    try:
        every = pd.read_csv(StringIO(content(__package__, f"data/judged-{paper.lower()}.csv")))
    except FileNotFoundError:
        return {}
    return {
        str(statement): of[["mean", "half", "n"]].join(
            pd.DataFrame([json.loads(text) for text in of["setup"]], of.index, dtype=object)
        )
        for statement, of in every.groupby("statement", sort=False)
    }


def setups(judged: Judged) -> pd.DataFrame:
    """Frame with a row per set-up of a statement, from the shipped intervals, as `Judged.verdict` expects it.

    The columns are `mean` and `half`, the half-width of the 95% interval of the statistic, `n`, the number of draws,
    the options of the set-up, and `outcome`. Without shipped intervals the frame has no rows.
    """
    nothing = pd.DataFrame(columns=["mean", "half", "n"])
    return judged.judge(shipped(judged.paper).get(judged.statement, nothing))
