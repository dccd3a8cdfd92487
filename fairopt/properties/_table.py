"""What is claimed, as a table of mechanisms and properties."""

from __future__ import annotations

import numpy as np

from .._libraries import pd
from ..mechanisms import REGISTRY, Mechanism
from ..mechanisms._claim import Claim
from ._claimed import Claimed, claims
from ._names import names

#: What is said of a mechanism in short, in this order.
_SHORT = {
    "sharing-incentive": "SI",
    "envy-freeness": "EF",
    "pareto-optimality": "PO",
    "strategy-proofness": "SP",
    "bottleneck-fairness": "BF",
    "per-server-bottleneck-fairness": "BF per server",
}


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


def in_short(kind: type[Mechanism]) -> str:
    """The best known properties that a mechanism claims, with conditions, those that it has not, and its remarks.

    `SI, EF (alpha >= 1); not SP`: abbreviations as in README.md. What has a counterexample, but holds under conditions,
    stands there with these alone.
    """
    has: dict[str, list[str]] = {}
    lacks: list[str] = []
    for name, short in _SHORT.items():
        about = [claim for claim in kind.claims if claim.property == name]
        if positive := [claim for claim in about if claim.holds]:
            has.setdefault("; ".join(", ".join(_scope(claim)) for claim in positive), []).append(short)
        elif about:
            lacks.append(f"not {short}")
    said = [", ".join(shorts) + (f" ({scope})" if scope else "") for scope, shorts in has.items()]
    return "; ".join(filter(None, [*said, ", ".join(lacks), kind.properties]))


def _scope(claim: Claim) -> list[str]:
    """Clusters and parameters that a claim is about, in words."""
    ends = claim.parameters.items()
    return [*claim.conditions, *(_interval(name, *each) for name, each in ends if each is not None)]


def _words(claimed: Claimed) -> str:
    mechanism, claim = claimed
    tried = [f"{name} = {getattr(mechanism, name):g}" for name, ends in claim.parameters.items() if ends is not None]
    said = _scope(claim) if claim.holds else [*claim.conditions, *tried]
    answer = "yes" if claim.holds else "no"
    return f"{answer} ({', '.join(said)})" if said else answer


def _interval(name: str, low: float, high: float) -> str:
    if low == high:
        return f"{name} = {low:g}"
    return f"{name} >= {low:g}" if np.isinf(high) else f"{name} from {low:g} to {high:g}"
