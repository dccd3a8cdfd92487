"""The source papers as data: their worked examples as clusters, and their claims, checked.

    from fairopt import papers

    papers.instance("pf-fig1")     # a Cluster
    papers.check()                 # a table: every claim, what is printed, ours, what is right, the verdict

One table per paper, `data/NAME.toml` (`_table` says what it holds), and functions of a paper in `drf`, `pf`, and
`counterexamples`, of small instances of our own. `pf_measured` is what PF says of time and convergence, judged by
measurements that come with the package. Numbers of items are those of the project's catalogue of everything that the
papers state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import chain
from types import MappingProxyType
from typing import Any

from .. import _clock
from .._libraries import pd
from .._progress import tqdm
from ..errors import DataError, FairoptError
from ..model.cluster import Cluster
from . import pf_measured
from ._claim import MEASURED_OTHERWISE, NOT_REPRODUCED, PAPER_IN_ERROR, REPRODUCED, Claim, Instance, Printed, show
from ._table import Paper
from .pf_measured import Measurements, measurements

__all__ = [
    "MEASURED_OTHERWISE",
    "NOT_REPRODUCED",
    "PAPER_IN_ERROR",
    "REPRODUCED",
    "Claim",
    "Instance",
    "Measurements",
    "Printed",
    "check",
    "claims",
    "instance",
    "instances",
    "measurements",
    "show",
]


#: In the order of their claims; those of time and convergence are between the last two.
_PAPERS = tuple(map(Paper, ("lec", "drf", "drfh", "mqdrf", "pf", "counterexamples")))
#: How papers are cited, and what they are, by the keys of their claims.
CITATIONS = {paper.key: paper.citation for paper in _PAPERS}
ABOUT = {paper.key: paper.about for paper in _PAPERS}
COLUMNS = ("item", "paper", "where", "instance", "claim", "printed", "ours", "correct", "verdict", "seconds", "note")


@cache
def _by_name() -> Mapping[str, Instance]:
    return MappingProxyType({one.name: one for paper in _PAPERS for one in paper.instances})


def instances() -> dict[str, Instance]:
    """Every instance by its name: paper, section and one line about it; `build()` makes its cluster."""
    return dict(_by_name())


def instance(name: str) -> Cluster:
    """The cluster of a worked example, by its name.

    Raises
    ------
    DataError
        There is no instance of this name; the message lists the names.
    """
    known = _by_name()
    if name in known:
        return known[name].build()
    close = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise DataError(f"there is no instance {name!r}; {hint}known: {', '.join(known)}")


def claims(paper: str | None = None, item: int | None = None) -> tuple[Claim, ...]:
    """Every claim, or those of one paper or one item of the catalogue, by item.

    Parameters
    ----------
    paper : its short name, such as `DRF`; None for all
    item : its number in the catalogue; None for all

    Raises
    ------
    DataError
        There is no such claim; the message lists papers and items.
    """
    *printed, own = (paper.claims for paper in _PAPERS)
    every = sorted(chain(*printed, pf_measured.claims(), own), key=lambda claim: claim.item)
    found = tuple(claim for claim in every if paper in (None, claim.paper) and item in (None, claim.item))
    if not found:
        papers = ", ".join(dict.fromkeys(claim.paper for claim in every))
        items = ", ".join(str(number) for number in dict.fromkeys(claim.item for claim in every))
        raise DataError(f"there is no claim with paper={paper!r}, item={item!r}; papers: {papers}; items: {items}")
    return found


#: All of them: `check` has an argument that is called like it.
_every = claims


def check(claims: Iterable[Claim] | None = None, progress: bool = False) -> pd.DataFrame:
    """Compute every claim through the mechanisms and compare with what is right and with what the paper prints.

    Parameters
    ----------
    claims : claims, optional
        Default: all of `fairopt.papers.claims()`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    DataFrame
        A row per claim: item, paper, where, instance, claim, printed, ours, correct, verdict, seconds, note. The
        verdict is `reproduced`, `paper in error, correct value ...`, `measured otherwise`, or `NOT REPRODUCED`, with
        the error if any.
    """
    chosen = _every() if claims is None else tuple(claims)
    rows = [_row(claim) for claim in tqdm(chosen, unit="claim", disable=not progress)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _row(claim: Claim) -> dict[str, Any]:
    start = _clock.cpu()
    try:
        subject = instance(claim.instance) if claim.numbers is None else measurements()
        value = claim.ours(subject)
        ours, verdict = show(value), claim.verdict(value)
    except FairoptError as error:
        ours, verdict = "", f"{NOT_REPRODUCED}: {type(error).__name__}: {error}"
    return {
        "item": claim.item,
        "paper": claim.paper,
        "where": claim.where,
        "instance": claim.instance,
        "claim": claim.statement,
        "printed": claim.printed.text if claim.printed else "derived here",
        "ours": ours,
        "correct": show(claim.correct),
        "verdict": verdict,
        "seconds": _clock.cpu() - start,
        "note": claim.note if claim.numbers is None else claim.numbers(measurements()),
    }
