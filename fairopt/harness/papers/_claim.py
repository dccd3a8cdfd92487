"""`Claim`: a statement of a paper with its printed, correct and computed values; `Instance`: a cluster of a paper."""

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
#: Function of the cluster, or of `Measurements` for claims on measurements.
Compute: TypeAlias = Callable[[Any], object]

REPRODUCED = "reproduced"
#: Beginning of the verdict on a value that is reproduced under an assumption that the paper does not state; the
#: assumption follows.
UNDER = "reproduced under the assumption:"
#: Verdict on a statement that a paper proves: each part agrees with the table of properties, by proof or by
#: counterexample.
PROPERTY = "as in the table of properties"
#: Verdict on a value that no paper prints.
DERIVED = "derived"
PAPER_IN_ERROR = "paper in error, correct value"
#: Verdict on times and observations, which cannot be proved: the paper's measurements differ from measurements here.
MEASURED_OTHERWISE = "not reproduced under any set-up tried"
NOT_REPRODUCED = "NOT REPRODUCED"
#: Verdict on a definition, and beginning of the verdict on a statement that cannot be judged; the reason follows.
DEFINITION, CANNOT = "definition", "cannot be judged here:"
#: Words of `summary` for verdicts, by the beginnings of verdicts; if a statement has several verdicts, the last one in
#: this order counts.
KINDS = {
    DEFINITION: "definitions",
    REPRODUCED: "reproduced",
    UNDER: "under a named assumption",
    PROPERTY: "as in the table of properties",
    CANNOT: "cannot be judged here",
    PAPER_IN_ERROR: "paper in error",
    MEASURED_OTHERWISE: "not reproduced",
    NOT_REPRODUCED: "not reproduced",
}


@dataclass(frozen=True)
class Printed:
    """Text that a paper prints, and its value, in the layout of `Claim.correct`.

    Parameters
    ----------
    text : str
    value : optional
        Default: the correct value of the claim.
    decimals : int, optional
        Number of printed decimals, so that 2.5 with one decimal stands for 2.45 to 2.55; -1 for values rounded to tens.
        None: the value is exact.

    >>> import fairopt as fo
    >>> fo.papers.Printed("4.1", 4.1, decimals=1).agrees(45 / 11)
    True
    """

    text: str
    value: Value | None = None
    decimals: int | None = None

    def agrees(self, correct: Value) -> bool:
        """True if `correct` rounds to the printed value; without `decimals`, if the two are equal up to 1e-12."""
        if self.decimals is None:
            return _same(self.value, correct, lambda right: 1e-12 * abs(right))
        half = 0.5 * 10.0**-self.decimals
        return _same(self.value, correct, lambda right: half * (1 + 1e-9))


@dataclass(frozen=True)
class Claim:
    """Statement of a paper, with the three values that decide its verdict, or with a verdict in words.

    Attributes
    ----------
    item : int
        Index of the worked example, in the order of collection; 0 for other statements.
    paper, where : str
        Key of the paper, and the section, theorem or figure.
    instance : str
        Name of the cluster for `fairopt.papers.instance`, or of the experiment if `numbers` is given.
    statement : str
    ours : callable or None
        Function that computes the value from the cluster, or from None if there is no instance. None: no value is
        computed, and `agreed` is the verdict.
    correct : number, Fraction, bool, or nested sequence of such values
        Value derived by hand, never an earlier output of the package.
    printed : Printed or None
        None: the paper prints no value, and the correct value is derived here.
    note : str
    rtol : float
        Relative tolerance between `ours` and `correct`, absolute if the latter is 0; 1e-5 for finite alpha.
    numbers : callable or None
        For claims on measurements: function of the `Measurements` that returns the decisive numbers as text for the
        note; `ours` is then a function of the `Measurements`, too.
    states : tuple of int
        Indices of the statements that the claim decides: 1 to 242 for the five papers, from 243 on for other sources.
    agreed : str
        Verdict if the printed value is right: `REPRODUCED`, `UNDER` with its assumption, or `PROPERTY`.

    >>> import fairopt as fo
    >>> claim = fo.papers.claims("DRF", 2)[0]
    >>> claim.statement, claim.correct, claim.verdict([3, 2])
    ('DRF: tasks', (3, 2), 'reproduced')
    """

    item: int
    paper: str
    where: str
    instance: str
    statement: str
    ours: Compute | None
    correct: Value
    printed: Printed | None = None
    note: str = ""
    rtol: float = 1e-6
    numbers: Callable[[Any], str] | None = None
    states: tuple[int, ...] = ()
    agreed: str = REPRODUCED

    def __post_init__(self) -> None:
        if self.printed is not None and self.printed.value is None:
            object.__setattr__(self, "printed", replace(self.printed, value=self.correct))

    def verdict(self, ours: object) -> str:
        """Compare a computed value with the correct value and the printed value.

        Returns
        -------
        str
            `reproduced`, if need be under an assumption, or `as in the table of properties`; `derived` if no paper
            prints the value; `paper in error, correct value ...`; `MEASURED_OTHERWISE` for a claim that measurements
            contradict; `NOT REPRODUCED` if the computed value is not the correct one.
        """
        if not _same(ours, self.correct, lambda right: self.rtol * (abs(right) or 1.0)):
            return NOT_REPRODUCED
        if self.printed is None:
            return DERIVED
        if self.printed.agrees(self.correct):
            return self.agreed
        if self.numbers is not None:
            return MEASURED_OTHERWISE
        return f"{PAPER_IN_ERROR} {show(self.correct)}"


def show(value: object) -> str:
    """Format a value: `(45/11, 18/11)`, `3.7279`, `yes`.

    >>> import fairopt as fo
    >>> fo.papers.show((0.5, True, 3.72791234))
    '(0.5, yes, 3.72791)'
    """
    value = _plain(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(show, value))})"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: object) -> object:
    """Convert NumPy's arrays and numbers to lists and Python's numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _leaves(value: object) -> list[object]:
    value = _plain(value)
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, list | tuple) else [value]


def _same(left: object, right: object, slack: Callable[[float], float]) -> bool:
    """True if values agree leaf by leaf, with at least one leaf, and as many on the left as on the right.

    Numbers may differ by at most `slack(right)`; other leaves are equal and of one type.
    """

    def same(a: object, b: object) -> bool:
        if isinstance(a, Number) and isinstance(b, Number) and bool not in (type(a), type(b)):
            return abs(float(a) - float(b)) <= slack(float(b))
        return type(a) is type(b) and a == b

    ours, theirs = _leaves(left), _leaves(right)
    return 0 < len(ours) == len(theirs) and all(map(same, ours, theirs))


@dataclass(frozen=True)
class Instance:
    """Worked example of a paper: name, key of the paper, section, description, and a function that builds its cluster.

    >>> import fairopt as fo
    >>> fo.papers.instances()["pf-fig1"].build().shape
    (4, 2, 3)
    """

    name: str
    paper: str
    where: str
    description: str
    build: Callable[[], Cluster]
