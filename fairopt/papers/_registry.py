"""All instances and all claims of the papers, found by name."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import DataError
from ..model.cluster import Cluster
from . import _properties, counterexamples, drf, drfh, lec, mqdrf, pf, pf_measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._claim import Claim
    from ._instance import Instance

_SOURCES = (lec, drf, drfh, mqdrf, pf, pf_measured, _properties, counterexamples)


@cache
def _by_name() -> Mapping[str, Instance]:
    return MappingProxyType({one.name: one for source in _SOURCES for one in source.INSTANCES})


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
    every = sorted((claim for source in _SOURCES for claim in source.claims()), key=lambda claim: claim.item)
    found = tuple(claim for claim in every if paper in (None, claim.paper) and item in (None, claim.item))
    if not found:
        papers = ", ".join(dict.fromkeys(claim.paper for claim in every))
        items = ", ".join(str(number) for number in dict.fromkeys(claim.item for claim in every))
        raise DataError(f"there is no claim with paper={paper!r}, item={item!r}; papers: {papers}; items: {items}")
    return found
