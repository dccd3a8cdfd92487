"""Tables of docs/properties-table.md, from docs/survey.csv and what mechanisms and papers state."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import pandas as pd

from fairopt import properties
from fairopt.mechanisms import one
from fairopt.properties._table import Link, answers, plain

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "survey.csv"
#: Mechanisms side by side.
_BESIDE = 4


def sections() -> Mapping[str, Callable[[], str]]:
    """What the page shows, by the name of its section."""
    return {
        "survey": survey,
        "survey-papers": papers,
        "survey-budget": budget,
    }


def rows() -> pd.DataFrame:
    """The stored survey."""
    return pd.read_csv(TABLE).fillna({"conditions": "", "file": "", "meets": "", "route": ""})


def link(text: str, to: str) -> str:
    """A link of docs/properties-table.md to a proof, by its source, or to a counterexample."""
    if to.endswith(".json"):
        return f"[{text}](witnesses/{to.removeprefix('../') if to.startswith('../') else f'found/{to}'})"
    proof = re.search(r"docs/proofs\.md, ([A-Z])", to)
    return f"[{text}](proofs.md#proof-{proof[1].lower()})" if proof else f"{text} ({to})"


def interval(ends: tuple[float, float] | None) -> str:
    """The values of a parameter that a claim is about."""
    return "none" if ends is None else f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"


def survey() -> str:
    """Properties by mechanisms, a few mechanisms at a time."""
    frame = (
        properties.matrix(rows(), link).replace(r",? (in )?[\d,]+( trials)?(?=;|$| \()", "", regex=True).reset_index()
    )
    frame = frame[["property", *sorted(frame.columns.drop("property"), key=_by_number)]]
    parts = [frame.iloc[:, [0, *range(k, min(k + _BESIDE, frame.shape[1]))]] for k in range(1, frame.shape[1], _BESIDE)]
    filled = [part[part.iloc[:, 1:].ne("").any(axis=1)] for part in parts]
    return "\n\n".join(str(part.to_markdown(index=False)) for part in filled)


def _by_number(name: str) -> str:
    """A name by which alpha = 16 comes after alpha = 2."""
    return re.sub(r"[\d.]+", lambda found: f"{float(found[0]):08.2f}", name.lower())


def papers() -> str:
    """What papers say otherwise, and why ours differs."""
    found = compared(rows(), link)
    return str(found[found["why"] != ""].to_markdown(index=False))


def budget() -> str:
    """What was spent, in a few sentences."""
    made = rows()
    made = made[made["trials"] > 0]
    none = made[made["answer"] == "none"]
    most = int(none["trials"].max())
    full, least = int((none["trials"] == most).sum()), int(none["trials"].min())
    slow = made.groupby("mechanism")["seconds"].sum()
    names = ("fairopt", "python", "numpy", "numba", "scipy")
    versions = ", ".join(f"{name} {made[name].iloc[0]}" for name in names)
    said = [
        f"{len(made)} searches, {made['trials'].sum():,} trials, {made['seconds'].sum() / 3600:.2f} CPU hours;",
        f"{len(made) - len(none)} of them found a counterexample. Of {len(none)} that found none {full} made {most:,}",
        f"trials{f', the others {least:,} or more' if full < len(none) else ''}. The longest mechanism took",
        f"{slow.max():.0f} CPU seconds ({one(str(slow.idxmax()))}), the median one {slow.median():.0f}.",
        f"Seed {made['seed'].iloc[0]}; {versions}.",
    ]
    return "\n".join(wrap(" ".join(said), 120, break_on_hyphens=False))


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
