"""Fairness properties, one per file: checks with a witness, and searches for counterexamples.

    fo.properties.check("envy-freeness", allocation)
    fo.properties.report("drfh", cluster)
    fo.properties.search("tsf", "sharing-incentive", rng=1)

Subclasses of `Property` are registered automatically. See docs/properties.md.
"""

from __future__ import annotations

from ._base import REGISTRY, Case, Deviation, Finding, Property, get, names
from ._check import Check, check, report
from ._possible import Possible, possible
from ._search import SearchOptions, search
from ._table import Claimed, claims, in_short, surveyed, table
from .witness import Witness, verify

__all__ = [
    "REGISTRY",
    "Case",
    "Check",
    "Claimed",
    "Deviation",
    "Finding",
    "Possible",
    "Property",
    "SearchOptions",
    "Witness",
    "check",
    "claims",
    "get",
    "in_short",
    "names",
    "possible",
    "report",
    "search",
    "surveyed",
    "table",
    "verify",
]
