"""What is claimed, as a table of mechanisms and properties."""

from __future__ import annotations

import numpy as np

from .._libraries import pd
from ..mechanisms import REGISTRY
from ._claimed import Claimed, claims
from ._names import names


def table() -> pd.DataFrame:
    """Claims of all mechanisms (rows) about all properties (columns).

    `yes` with the clusters and parameters that it is said of, `no` with the parameters of the counterexample; empty
    where nothing is claimed.
    """
    cells: dict[str, dict[str, list[str]]] = {}
    for claimed in claims():
        row = cells.setdefault(claimed.mechanism.name, {name: [] for name in names()})
        if (words := _words(claimed)) not in row[claimed.claim.property]:
            row[claimed.claim.property].append(words)
    rows = {
        REGISTRY[name].title: {column: "; ".join(said) for column, said in row.items()} for name, row in cells.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=names()).rename_axis("mechanism")


def _words(claimed: Claimed) -> str:
    mechanism, claim = claimed
    said = list(claim.conditions)
    for name, ends in claim.parameters.items():
        if ends is not None:
            said.append(_interval(name, *ends) if claim.holds else f"{name} = {getattr(mechanism, name):g}")
    answer = "yes" if claim.holds else "no"
    return f"{answer} ({', '.join(said)})" if said else answer


def _interval(name: str, low: float, high: float) -> str:
    if low == high:
        return f"{name} = {low:g}"
    return f"{name} >= {low:g}" if np.isinf(high) else f"{name} from {low:g} to {high:g}"
