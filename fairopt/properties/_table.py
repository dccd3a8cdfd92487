"""Lists and tables of the claims of mechanisms about properties."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import mechanisms
from ..base.errors import DataError
from ..base.libraries import pd
from ..mechanisms import REGISTRY, Mechanism
from ..mechanisms._claim import Claim
from ._base import names


class Claimed(NamedTuple):
    """Claim, with a mechanism whose parameters it covers.

    >>> import fairopt as fo
    >>> first = fo.properties.claims(holds=True)[0]
    >>> isinstance(first, fo.properties.Claimed), first.claim.about(first.mechanism)
    (True, True)
    """

    mechanism: Mechanism
    claim: Claim


def claims(holds: bool | None = None) -> list[Claimed]:
    """List the claims of all mechanisms, each with every mechanism of `variants` and `trials` that it covers.

    A negative claim is listed only with the first of these mechanisms, as one counterexample suffices. `holds` selects
    positive or negative claims. Default: all.

    Raises
    ------
    DataError
        A claim covers none of the mechanism's `variants` and `trials`, and hence could not be tested.

    >>> import fairopt as fo
    >>> {one.claim.property for one in fo.properties.claims(holds=True) if str(one.mechanism) == "MQDRF"} >= {
    ...     "strategy-proofness", "dynamic-envy-freeness"}
    True
    """
    found: list[Claimed] = []
    for name, kind in sorted(REGISTRY.items()):
        for claim in kind.claims:
            tried = [one for one in dict.fromkeys((*kind.variants(), *kind.trials())) if claim.about(one)]
            if not tried:
                raise DataError(f"{name} claims {claim.property} for parameters that none of its variants has")
            found += [Claimed(one, claim) for one in (tried if claim.holds else tried[:1])]
    return [one for one in found if holds in (None, one.claim.holds)]


#: Default values of alpha at which searches examine the game.
ALPHAS = (0.3, 0.5, 1.0, 2.0, 4.0, 16.0)


def surveyed() -> list[Mechanism]:
    """List the mechanisms of this package with claims: their default variants, and the game at `ALPHAS`.

    Mechanisms without claims, such as `ConcaveUtility`, are left out.

    >>> import fairopt as fo
    >>> [str(one) for one in fo.properties.surveyed()][:3]
    ['alpha-fair(alpha=2)', 'alphaPF-VDS(alpha=0.3)', 'alphaPF-VDS(alpha=0.5)']
    """
    found: list[Mechanism] = []
    for name in mechanisms.names():
        kind = mechanisms.kind(name)
        if name == "alphapf-vds":
            found += [mechanisms.get(name, alpha=alpha) for alpha in ALPHAS]
        elif kind.claims and kind.__module__.startswith("fairopt."):
            found += kind.variants()
    return found


#: Abbreviations of properties in short texts, in the order of the texts.
_SHORT = {
    "sharing-incentive": "SI",
    "envy-freeness": "EF",
    "pareto-optimality": "PO",
    "strategy-proofness": "SP",
    "bottleneck-fairness": "BF",
    "per-server-bottleneck-fairness": "BF per server",
}


def table() -> pd.DataFrame:
    """Table of the claims of all mechanisms (rows) about all properties (columns).

    A cell is `yes`, with conditions on clusters and parameters, or `no`, with the parameters of the counterexample; it
    is '' without a claim.

    >>> import fairopt as fo
    >>> fo.properties.table().loc["DRFH", ["envy-freeness", "sharing-incentive"]].tolist()
    ['yes', 'no']
    """
    said = pd.DataFrame([(type(one.mechanism).title, one.claim.property, _words(one)) for one in claims()])
    cells = said.drop_duplicates().groupby([0, 1], sort=False)[2].agg("; ".join)
    return (
        cells.unstack(fill_value="")
        .reindex(columns=names(), fill_value="")
        .rename_axis(index="mechanism", columns=None)
    )


def in_short(kind: type[Mechanism]) -> str:
    """Summarise a mechanism's claims about the main properties, such as `SI, EF (alpha >= 1); not SP`.

    Abbreviations are defined in docs/mechanisms.md. A property that holds under conditions is listed with the
    conditions, and without its counterexamples.

    >>> import fairopt as fo
    >>> fo.properties.in_short(fo.DRFH)
    'EF, PO, SP, BF; not SI, not BF per server'
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
    """Conditions on clusters and parameters of a claim, as texts."""
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
