"""Statements of the papers on properties of fairness, and why ours differ where they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._libraries import pd
from ..mechanisms import one
from ..properties._table import Link, answers, plain

#: Why a paper says yes and a counterexample no, by kind of disagreement.
_ZEROS = "the proof needs positive demands; with zeros a user who leaves may free others who then take from a third"


@dataclass(frozen=True)
class Said:
    """A paper says that a mechanism has a property, or has it not.

    Attributes
    ----------
    paper, where : str
        Key of the paper, and the table or theorem.
    mechanism, property : str
        By their names here.
    holds : bool
    note : str
        Why ours differs, where it does.
    """

    paper: str
    where: str
    mechanism: str
    property: str
    holds: bool
    note: str = ""


def said() -> tuple[Said, ...]:
    """Everything, paper by paper."""
    return (*_drf(), *_drfh(), *_pf(), *_mqdrf())


def _drf() -> Iterator[Said]:
    """Table 2; its body is missing in the available text: what is denied is theorems 1 to 6, the rest from memory."""
    names = (
        "sharing-incentive", "strategy-proofness", "envy-freeness", "pareto-optimality", "single-resource-fairness",
        "bottleneck-fairness", "population-monotonicity", "resource-monotonicity",
    )  # fmt: skip
    columns = {"asset-fairness": "nyyyynyn", "ceei": "ynyyyynn", "drf": "yyyyyyyn"}
    notes = {
        ("drf", "population-monotonicity"): _ZEROS,
        ("asset-fairness", "population-monotonicity"): _ZEROS,
        ("asset-fairness", "single-resource-fairness"): "",
    }
    for mechanism, column in columns.items():
        for name, letter in zip(names, column, strict=True):
            yield Said("DRF", "table 2", mechanism, name, letter == "y", notes.get((mechanism, name), ""))


def _drfh() -> Iterator[Said]:
    for name in (
        "envy-freeness", "pareto-optimality", "strategy-proofness", "single-server-drf", "single-resource-fairness",
        "bottleneck-fairness",
    ):  # fmt: skip
        yield Said("DRFH", "section IV", "drfh", name, True)
    yield Said("DRFH", "section IV", "drfh", "population-monotonicity", True, _ZEROS)


def _pf() -> Iterator[Said]:
    for mechanism, has in (
        ("drfh", ("envy-freeness", "pareto-optimality")),
        ("tsf", ("sharing-incentive", "envy-freeness", "pareto-optimality")),
        ("ps-dsf", ("sharing-incentive", "envy-freeness", "per-server-bottleneck-fairness")),
    ):
        for name in (
            "sharing-incentive", "envy-freeness", "pareto-optimality", "per-server-bottleneck-fairness",
        ):  # fmt: skip
            note = ""
            if (mechanism, name) == ("tsf", "sharing-incentive"):
                note = "not by the paper's own definition (item 40): TSF's paper must mean another benchmark"
            if (mechanism, name) == ("ps-dsf", "per-server-bottleneck-fairness"):
                note = "with task counts some allocations by the definition of PS-DSF are not; without them it is true"
            yield Said("PF", "table 1", mechanism, name, name in has, note)
    for alpha in (1.0, 2.0, 4.0, 16.0):
        for name in ("sharing-incentive", "envy-freeness", "per-server-bottleneck-fairness"):
            note = (
                "with task counts there are other equilibria, whose tasks are not max-min" if "bottle" in name else ""
            )
            yield Said("PF", "section 5", f"alphapf-vds(alpha={alpha})", name, True, note)
    yield Said(
        "PF", "section 5", "alphapf-vds(alpha=1.0)", "pareto-optimality", True,
        "with task counts there are other equilibria at alpha = 1, which are not the optimum of the convex program",
    )  # fmt: skip


def _mqdrf() -> Iterator[Said]:
    for name in ("dynamic-sharing-incentive", "dynamic-envy-freeness", "strategy-proofness"):
        yield Said("MQDRF", "theorems", "mqdrf", name, True)
    yield Said(
        "MQDRF", "theorem 3", "mqdrf", "pareto-optimality", True,
        "false under a hard cap: in its own experiment a user alone runs 20 tasks where 50 fit (item 32)",
    )  # fmt: skip
    yield Said(
        "MQDRF", "introduction", "drf", "strategy-proofness", False,
        "static DRF is strategy-proof (NSDI 2011; proof B), even against coalitions (item 32)",
    )  # fmt: skip


def compared(rows: pd.DataFrame, link: Link = plain) -> pd.DataFrame:
    """Statements beside what is known here: `paper`, `where`, `mechanism`, `property`, `says`, `ours`, `why`.

    `rows` as of `fairopt.properties.frame`. `why` explains what differs; it is empty where nothing does.
    """
    rows, found = rows.fillna({"conditions": "", "file": ""}), []
    for each in said():
        some = rows[(rows["mechanism"] == each.mechanism) & (rows["property"] == each.property)]
        known = answers(one(each.mechanism), each.property, some, link)
        texts = [part.sentence for part in known if part.text]
        differs = known[0].known != "nothing" and (known[0].known == "counterexample") == each.holds
        found.append(
            {
                "paper": f"{each.paper}, {each.where}",
                "mechanism": str(one(each.mechanism)),
                "property": each.property,
                "says": "yes" if each.holds else "no",
                "ours": "; ".join(texts) or "not searched",
                "why": (each.note or "UNEXPLAINED") if differs else "",
            }
        )
    return pd.DataFrame(found)
