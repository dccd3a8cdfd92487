"""What is claimed, as a table of mechanisms and properties."""

from __future__ import annotations

import numpy as np

from .._libraries import pd
from ..mechanisms import REGISTRY
from ..mechanisms._claim import Claim
from ._names import names


def table() -> pd.DataFrame:
    """Claims of all mechanisms (rows) about all properties (columns).

    `yes` and `no`, with what clusters and parameters these are said of; empty where nothing is claimed.
    """
    rows = {
        kind.title: {
            name: "; ".join(_words(claim) for claim in kind.claims if claim.property == name) for name in names()
        }
        for _, kind in sorted(REGISTRY.items())
        if kind.claims
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=names()).rename_axis("mechanism")


def _words(claim: Claim) -> str:
    said = [*claim.conditions, *(_interval(name, ends) for name, ends in claim.parameters.items() if ends)]
    answer = "yes" if claim.holds else "no"
    return f"{answer} ({', '.join(said)})" if said else answer


def _interval(name: str, ends: tuple[float, float]) -> str:
    low, high = ends
    if low == high:
        return f"{name} = {low:g}"
    return f"{name} >= {low:g}" if np.isinf(high) else f"{name} from {low:g} to {high:g}"
