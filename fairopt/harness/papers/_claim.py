"""`Claim`: one statement of a paper, what it prints, what is right, how to compute it; `Instance`: its clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from ...model.cluster import Cluster

Number: TypeAlias = int | float | Fraction
Scalar: TypeAlias = bool | str | Number
Value: TypeAlias = "Scalar | Sequence[Value]"
#: From the cluster, or from `Measurements` where a claim is about what was measured.
Compute: TypeAlias = Callable[[Any], object]

REPRODUCED = "reproduced"
PAPER_IN_ERROR = "paper in error, correct value"
#: Of a time or an observation, which no proof decides: the paper saw one thing on its machines, and we another.
MEASURED_OTHERWISE = "measured otherwise"
NOT_REPRODUCED = "NOT REPRODUCED"


@dataclass(frozen=True)
class Printed:
    """Text that a paper prints, and its values laid out like `Claim.correct`.

    Without a value it is that of the claim. `decimals` is how many decimals were printed, so that 2.5 stands for
    2.45 to 2.55 with one; negative for tens. `None`: the values are meant exactly.
    """

    text: str
    value: Value | None = None
    decimals: int | None = None

    def agrees(self, correct: Value) -> bool:
        """True if `correct` is what was printed, within its rounding."""
        if self.decimals is None:
            return _same(self.value, correct, lambda right: 1e-12 * abs(right))
        half = 0.5 * 10.0**-self.decimals
        return _same(self.value, correct, lambda right: half * (1 + 1e-9))


@dataclass(frozen=True)
class Claim:
    """A statement and the three values that decide about it.

    Attributes
    ----------
    item : int
        Its number among all that was collected from the papers.
    paper, where : str
        Key of the paper, and the section, theorem or figure.
    instance : str
        Name of the cluster, for `fairopt.papers.instance`; of the experiment, where `numbers` is given.
    statement : str
    ours : callable
        Our value, from the cluster through the mechanisms.
    correct : numbers, Fractions, True or False, or nested sequences of them
        Derived by hand; never an earlier output of ours.
    printed : Printed or None
        None: the paper prints nothing, the value is derived here.
    note : str
    rtol : float
        Relative tolerance between `ours` and `correct`, absolute where the latter is 0; 1e-5 for finite alpha.
    numbers : callable or None
        Given, the claim is about what was measured: `ours` says whether it holds of the `Measurements`, and this says
        by which numbers, for the note.
    """

    item: int
    paper: str
    where: str
    instance: str
    statement: str
    ours: Compute
    correct: Value
    printed: Printed | None = None
    note: str = ""
    rtol: float = 1e-6
    numbers: Callable[[Any], str] | None = None

    def __post_init__(self) -> None:
        if self.printed is not None and self.printed.value is None:
            object.__setattr__(self, "printed", replace(self.printed, value=self.correct))

    def verdict(self, ours: object) -> str:
        """`reproduced`, `paper in error, correct value ...` or `NOT REPRODUCED`, given our value.

        `measured otherwise` if the claim is about measurements, and they speak against what is printed.
        """
        if not _same(ours, self.correct, lambda right: self.rtol * (abs(right) or 1.0)):
            return NOT_REPRODUCED
        if self.printed is None or self.printed.agrees(self.correct):
            return REPRODUCED
        if self.numbers is not None:
            return MEASURED_OTHERWISE
        return f"{PAPER_IN_ERROR} {show(self.correct)}"


def show(value: object) -> str:
    """A value as text: `(45/11, 18/11)`, `3.7279`, `yes`."""
    value = _plain(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(show, value))})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: object) -> object:
    """Lists and numbers in place of NumPy's."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _leaves(value: object) -> list[object]:
    value = _plain(value)
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, list | tuple) else [value]


def _same(left: object, right: object, slack: Callable[[float], float]) -> bool:
    """Leaf by leaf: numbers within `slack` of the right one, anything else equal and of the same type."""

    def same(a: object, b: object) -> bool:
        if isinstance(a, Number) and isinstance(b, Number) and bool not in (type(a), type(b)):
            return abs(float(a) - float(b)) <= slack(float(b))
        return type(a) is type(b) and a == b

    ours, theirs = _leaves(left), _leaves(right)
    return 0 < len(ours) == len(theirs) and all(map(same, ours, theirs))


@dataclass(frozen=True)
class Instance:
    """A cluster of a paper: its name here, the paper's key, the section, one line about it, and how to build it."""

    name: str
    paper: str
    where: str
    description: str
    build: Callable[[], Cluster]
