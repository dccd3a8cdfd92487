"""The table of properties, and what papers say beside it."""

from __future__ import annotations

import pandas as pd
import property_pages as TOOL
import pytest
from processes import ROOT
from property_pages import answers, matrix

import fairopt as fo
from fairopt.properties import Witness
from research.survey import cells

DOCS = ROOT / "docs"
ROWS = pd.read_csv(DOCS / "survey.csv").fillna({"conditions": "", "file": ""})


def row(conditions: str, answer: str, trials: int = 100, doubted: float = 0.0) -> dict[str, object]:
    file = "w.json" if answer == "counterexample" else ""
    stated = {"answer": answer, "violation": 0.25, "trials": trials, "doubted": doubted, "file": file}
    return {"mechanism": "drf", "property": "population-monotonicity", "conditions": conditions, **stated}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([row("", "none")], "none in 100; positive demands: proved NSDI 2011; docs/proofs.md, I"),
        ([row("", "none", 50, 0.3)], "none in 50 (0.3 not verified); positive demands: proved NSDI"),
        ([row("", "counterexample"), row("positive demands", "none")], "no: .250 w.json; positive demands: proved"),
        ([row("", "counterexample"), row("positive demands", "counterexample")], "no: .250 w.json"),
        ([row("", "counterexample"), row("one server", "none")], "no: .250 w.json; one server: none in 100"),
    ],
)
def test_cells(rows: list[dict[str, object]], text: str) -> None:
    table = matrix(pd.DataFrame(rows), lambda text, to: f"{text} {to}")
    assert list(table.columns) == ["DRF"]
    assert table.loc["population-monotonicity", "DRF"].startswith(text)


def test_nothing_proved_is_refuted() -> None:
    """A counterexample among the clusters of a claim would be a wrong claim."""
    for one in ROWS[ROWS["answer"] == "counterexample"].fillna({"meets": ""}).itertuples():
        mechanism = fo.mechanisms.one(str(one.mechanism))
        for claim in mechanism.claims:
            if claim.property == one.property and claim.about(mechanism) and claim.holds:
                assert not set(claim.conditions) <= set(str(one.meets).split(", ")), (one, claim)


def test_every_counterexample_is_kept() -> None:
    """And is of what the table says. The law of claims replays those of docs/witnesses, this test a few others."""
    files = {path.name for path in (DOCS / "witnesses" / "found").glob("*.json")}
    assert files == {name for name in ROWS["file"] if name and not name.startswith("..")}
    for k, each in enumerate(ROWS[ROWS["file"] != ""].itertuples()):
        found = Witness.load(DOCS / "witnesses" / "found" / each.file)
        mechanism = found.mechanism
        if found.property == "undominated-equilibrium":  # says of which equilibrium it speaks
            mechanism = mechanism.replace(", select='curve'", "")
        assert (mechanism, found.property) == (each.mechanism, each.property)
        assert float(found.violation[0]) == pytest.approx(each.violation, abs=1e-6)
        if k % 12 == 0:
            found.replay()


def test_a_disagreement_without_a_reason_shows() -> None:
    some = ROWS[(ROWS["mechanism"] == "drf") & (ROWS["property"] == "envy-freeness")]
    some = some.assign(answer="counterexample", file="w.json", violation=0.5)
    table = TOOL.compared(some).set_index(["mechanism", "property"])["why"]
    assert table["DRF", "envy-freeness"] == "UNEXPLAINED"
    (known, *_) = answers(fo.DRF(), "envy-freeness", some, lambda text, to: text)
    assert known.known == "counterexample"


def test_the_survey_has_every_mechanism_and_property() -> None:
    """But for the utilitarian rule, which no kernel solves: some of its cells were not reached."""
    made = set(zip(ROWS["mechanism"], ROWS["property"], strict=True))
    asked = {(one.mechanism, one.property) for one in cells(fo.properties.surveyed())}
    assert made <= asked
    assert {mechanism for mechanism, _ in asked - made} <= {"utilitarian"}
    assert (ROWS.loc[(ROWS["answer"] == "none") & (ROWS["mechanism"] != "utilitarian"), "trials"] >= 1000).all()


def test_every_disagreement_with_a_paper_is_explained() -> None:
    table = TOOL.compared(ROWS)
    assert len(table) == len(pd.read_csv(TOOL.SAID))
    assert not (table["why"] == "UNEXPLAINED").any()
    assert not (table["ours"] == "not searched").any()
    differs = table[table["why"] != ""]
    assert set(zip(differs["mechanism"], differs["property"], strict=True)) == {
        ("DRF", "population-monotonicity"),
        ("DRF", "strategy-proofness"),
        ("DRFH", "population-monotonicity"),
        ("MQDRF", "pareto-optimality"),
        ("TSF", "sharing-incentive"),
        ("asset fairness", "population-monotonicity"),
    }


def test_what_is_said_in_short_are_the_claims() -> None:
    """Every abbreviation that is said is claimed, and the reverse."""
    assert fo.properties.in_short(fo.AlphaPFVDS) == (
        "SI, EF (alpha >= 1); PO (no task counts, alpha = 1); BF per server (no task counts, alpha >= 0.01); not SP"
    )
    for kind in fo.mechanisms.REGISTRY.values():
        said = fo.properties.in_short(kind).removesuffix(kind.properties)
        for name, short in (("envy-freeness", "EF"), ("strategy-proofness", "SP"), ("pareto-optimality", "PO")):
            about = {claim.holds for claim in kind.claims if claim.property == name}
            assert (f"not {short}" in said) == (about == {False}), kind
            assert (short in said.replace(f"not {short}", "")) == (True in about), kind
