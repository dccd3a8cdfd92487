"""Tables of mechanisms and properties: what is claimed, and what proofs and searches say."""

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
    """A claim, and a mechanism with parameters for which it is made."""

    mechanism: Mechanism
    claim: Claim


def claims(holds: bool | None = None) -> list[Claimed]:
    """Every claim of every mechanism: with all default variants and trials for which it is made.

    Of what does not hold, with the first of them, as one counterexample is enough. `holds` chooses one kind.

    Raises
    ------
    DataError
        A claim is made for no variant and no trial of its mechanism, so that nobody could try it.
    """
    found: list[Claimed] = []
    for name, kind in sorted(REGISTRY.items()):
        for claim in kind.claims:
            tried = [one for one in dict.fromkeys((*kind.variants(), *kind.trials())) if claim.about(one)]
            if not tried:
                raise DataError(f"{name} claims {claim.property} for parameters that none of its variants has")
            found += [Claimed(one, claim) for one in (tried if claim.holds else tried[:1])]
    return [one for one in found if holds in (None, one.claim.holds)]


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
    said = pd.DataFrame([(type(one.mechanism).title, one.claim.property, _words(one)) for one in claims()])
    cells = said.drop_duplicates().groupby([0, 1], sort=False)[2].agg("; ".join)
    return (
        cells.unstack(fill_value="")
        .reindex(columns=names(), fill_value="")
        .rename_axis(index="mechanism", columns=None)
    )


def in_short(kind: type[Mechanism]) -> str:
    """The best known properties that a mechanism claims, with conditions, those that it has not, and its remarks.

    `SI, EF (alpha >= 1); not SP`: abbreviations as in docs/mechanisms.md. What has a counterexample, but holds under
    conditions, stands there with these alone.
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


#: How a text refers to a proof, by its source, and to a counterexample, by the name of its file.
Link = Callable[[str, str], str]


class Answer(NamedTuple):
    """The knowledge of a mechanism and a property among clusters of some kind."""

    clusters: str  # names of conditions, or `all`
    known: str  # `proved`, `counterexample`, `none`, `nothing`
    text: str

    @property
    def sentence(self) -> str:
        """The text, after the kind of clusters if not all are meant."""
        return self.text if self.clusters == "all" else f"{self.clusters}: {self.text}"


def answers(mechanism: Mechanism, name: str, rows: pd.DataFrame, link: Link) -> list[Answer]:
    """Answers on all clusters, then on others where they differ.

    `rows` are those of `survey` about the mechanism and the property, as a frame (`conditions`, `answer`, ...).
    """
    claims = [one for one in mechanism.claims if one.property == name and one.holds and one.about(mechanism)]
    searched = {row["conditions"]: row for row in rows[::-1].to_dict("records")}  # the first of several
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
    """No links."""
    return text


def matrix(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Properties by mechanisms; a cell is what is known of all clusters, and of others after their names.

    Parameters
    ----------
    rows : as of `fairopt.properties.survey`, as a frame: `fairopt.properties.frame`
    link : how a cell refers to a proof, `link("proved", source)`, and to a counterexample, `link(text, file)`; by
        default without links

    Raises
    ------
    DataError
        A row names a mechanism that there is not.
    KeyError
        `rows` lacks a column.
    """
    rows = rows.fillna({"conditions": "", "file": ""})
    table: dict[str, dict[str, str]] = {}
    for (written, name), some in rows.groupby(["mechanism", "property"], sort=False):
        said = "; ".join(each.sentence for each in answers(one(written), str(name), some, link))
        table.setdefault(str(one(written)), {})[str(name)] = said
    return pd.DataFrame(table).fillna("").rename_axis("property").sort_index()
