"""Tables of mechanisms and properties: claims, proofs, and results of searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base.errors import DataError
from ..base.libraries import pd
from ..mechanisms import REGISTRY, Mechanism, one
from ..mechanisms._claim import Claim
from ._base import names


class Claimed(NamedTuple):
    """A claim, and a mechanism with parameters that it covers.

    >>> import fairopt as fo
    >>> first = fo.properties.claims(holds=True)[0]
    >>> isinstance(first, fo.properties.Claimed), first.claim.about(first.mechanism)
    (True, True)
    """

    mechanism: Mechanism
    claim: Claim


def claims(holds: bool | None = None) -> list[Claimed]:
    """List the claims of all mechanisms, with every variant and trial that a claim covers.

    A negative claim is listed with the first of them, as one counterexample suffices. `holds` selects one kind.

    Raises
    ------
    DataError
        A claim covers no variant or trial of its mechanism, and hence could not be tested.

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


#: Properties in short texts, with their abbreviations, in this order.
_SHORT = {
    "sharing-incentive": "SI",
    "envy-freeness": "EF",
    "pareto-optimality": "PO",
    "strategy-proofness": "SP",
    "bottleneck-fairness": "BF",
    "per-server-bottleneck-fairness": "BF per server",
}


def table() -> pd.DataFrame:
    """Table of claims of all mechanisms (rows) about all properties (columns).

    `yes` with conditions on clusters and parameters, `no` with the parameters of the counterexample; '' without a
    claim.

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

    Abbreviations are those of docs/mechanisms.md. A property with a counterexample that holds under conditions is
    listed with these only.

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


#: Function that makes a link of a text and a proof's source or a counterexample's file name.
Link = Callable[[str, str], str]


class Answer(NamedTuple):
    """What is known about a mechanism and a property for a class of clusters."""

    clusters: str  # names of conditions, or `all`
    known: str  # `proved`, `counterexample`, `none`, `nothing`
    text: str

    @property
    def sentence(self) -> str:
        """The text, preceded by the class of clusters unless that is all."""
        return self.text if self.clusters == "all" else f"{self.clusters}: {self.text}"


def answers(mechanism: Mechanism, name: str, rows: pd.DataFrame, link: Link) -> list[Answer]:
    """What is known for all clusters, and for smaller classes where it differs.

    `rows` is the frame of `survey` for the mechanism and the property (`conditions`, `answer`, ...).
    """
    claims = [one for one in mechanism.claims if one.property == name and one.holds and one.about(mechanism)]
    searched = {row["conditions"]: row for row in rows[::-1].to_dict("records")}  # reversed, so that the first wins
    found: list[Answer] = []
    for conditions in dict.fromkeys((*rows["conditions"], *(", ".join(claim.conditions) for claim in claims))):
        row, which = searched.get(conditions, {}), conditions or "all"
        proof = [claim for claim in claims if {*claim.conditions} <= {*conditions.split(", ")}]
        if row.get("file"):
            loss = f"{float(row['violation']):.3f}".replace("0.", ".", 1)
            other = f" (none in {row['trials']})" if row["answer"] == "none" else ""
            found.append(Answer(which, "counterexample", link(f"no: {loss}", str(row["file"])) + other))
        elif proof:
            trials = f", {row['trials']} trials" if row else ""
            found.append(Answer(which, "proved", link("proved", proof[0].source) + trials))
        elif row.get("trials"):
            doubts = f" ({row['doubted']:.2g} not verified)" if row["doubted"] > 0 else ""
            found.append(Answer(which, "none", f"none in {row['trials']}{doubts}"))
    first = next((each for each in found if each.clusters == "all"), Answer("all", "nothing", ""))
    return [first, *(each for each in found if each.clusters != "all" and each.known != first.known)]


def plain(text: str, to: str) -> str:
    """Text without a link."""
    return text


def matrix(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Table of properties by mechanisms: what is known for all clusters, and for smaller classes of clusters.

    Parameters
    ----------
    rows : DataFrame
        Results of `fairopt.properties.survey`, as `fairopt.properties.frame` returns them.
    link : callable, optional
        Link to a proof, `link("proved", source)`, and to a counterexample, `link(text, file)`. Default: plain text.

    Raises
    ------
    DataError
        A row has an unknown mechanism.
    KeyError
        `rows` lacks a column.

    >>> import pandas as pd, fairopt as fo
    >>> row = {"mechanism": "drf", "property": "envy-freeness", "conditions": "", "answer": "none", "trials": 100}
    >>> rows = pd.DataFrame([row | {"doubted": 0.0, "violation": 0.0, "file": ""}])
    >>> fo.properties.matrix(rows).loc["envy-freeness", "DRF"]
    'proved, 100 trials'
    """
    rows = rows.fillna({"conditions": "", "file": ""})
    table: dict[str, dict[str, str]] = {}
    for (written, name), some in rows.groupby(["mechanism", "property"], sort=False):
        said = "; ".join(each.sentence for each in answers(one(written), str(name), some, link))
        table.setdefault(str(one(written)), {})[str(name)] = said
    return pd.DataFrame(table).fillna("").rename_axis("property").sort_index()
