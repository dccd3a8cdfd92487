"""Fairness properties, one per file: checks with a witness, and searches for counterexamples.

    fo.properties.check("envy-freeness", allocation)
    fo.properties.report("drfh", cluster)
    fo.properties.search("tsf", "sharing-incentive", rng=1)

Subclasses of `Property` are registered automatically. See docs/properties.md.
"""

from __future__ import annotations

from ._base import REGISTRY, Case, Deviation, Finding, Property, get, names
from ._check import Check, check, report
from ._search import SearchOptions, search
from ._survey import frame, read, survey, surveyed
from ._table import Claimed, claims, in_short, matrix, table
from .witness import Witness, verify

__all__ = [
    "REGISTRY",
    "Case",
    "Check",
    "Claimed",
    "Deviation",
    "Finding",
    "Property",
    "SearchOptions",
    "Witness",
    "check",
    "claims",
    "frame",
    "get",
    "in_short",
    "matrix",
    "names",
    "read",
    "report",
    "search",
    "survey",
    "surveyed",
    "table",
    "verify",
]
