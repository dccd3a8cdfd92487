"""Every claim is computed and judged well, and the judge can fail."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from fairopt import papers
from fairopt.errors import DataError, NotConverged
from fairopt.papers import DERIVED, KINDS, NOT_REPRODUCED, PAPER_IN_ERROR, REPRODUCED, Claim, Printed

REQUIRED = {*range(1, 10), *range(11, 17), 18, 21, *range(23, 27), *range(30, 42), *range(43, 58)}
#: 242 of the five papers, and of schedulers and of clusters of accelerators.
STATEMENTS = 310


def test_every_claim_is_reproduced_or_a_known_error(checked: pd.DataFrame) -> None:
    fine = checked["verdict"].str.startswith((*KINDS, DERIVED)) & ~checked["verdict"].str.startswith(NOT_REPRODUCED)
    bad = checked[~fine]
    assert bad.empty, bad.to_string()
    assert len(checked) == len(papers.claims()) > 200
    assert set(checked["item"]) >= REQUIRED
    assert (checked["seconds"] > 0).all()


def test_the_errors_of_the_papers_are_found_and_no_others(checked: pd.DataFrame) -> None:
    errors = checked[checked["verdict"].str.startswith(PAPER_IN_ERROR)]
    assert errors.groupby("item").size().to_dict() == {0: 4, 2: 1, 6: 2, 14: 1, 32: 6, 40: 1, 43: 4}
    assert errors["correct"].all()


def test_every_statement_of_the_papers_has_a_row_and_is_counted_once(checked: pd.DataFrame) -> None:
    states = [number for claim in papers.claims() for number in claim.states]
    assert set(states) == set(range(1, STATEMENTS + 1))
    found = papers.counts(checked)
    assert sum(found.values()) - found[DERIVED] == STATEMENTS
    assert f"of {STATEMENTS - found['definitions']} printed numbers and directions" in papers.summary(checked)


def test_what_is_printed_and_nothing_else_is_said_of_a_statement(checked: pd.DataFrame) -> None:
    """What no paper prints is derived, and nothing else is."""
    derived = checked["printed"].isin(["derived from the paper's data", "found here"])
    assert ((checked["verdict"] == DERIVED) == derived).all()
    assert ((checked["statement"] == "") == derived).all()
    assert (checked.loc[checked["paper"] == "found here", "printed"] == "found here").all()


def test_the_least_favourable_verdict_on_a_statement_counts() -> None:
    verdicts = [REPRODUCED, f"{PAPER_IN_ERROR} 1", REPRODUCED, DERIVED, "unheard of"]
    frame = pd.DataFrame({"statement": ["1, 2", "2", "3, 4", "", "4"], "verdict": verdicts})
    said = "of 4 printed numbers and directions 2 reproduced, 1 paper in error, 1 not reproduced"
    assert papers.summary(frame) == f"{said}; 1 derived, which no paper prints"


@pytest.mark.parametrize(
    ("item", "words", "correct"), [(6, "x/9 and y/3 meets", "(54/13, 18/13)"), (40, "TSF satisfies", "no")]
)
def test_verdict_states_the_correct_value(checked: pd.DataFrame, item: int, words: str, correct: str) -> None:
    rows = checked[(checked["item"] == item) & checked["claim"].str.contains(words, regex=False)]
    assert f"{PAPER_IN_ERROR} {correct}" in set(rows["verdict"])


def test_every_claim_can_fail() -> None:
    """With a wrong `correct`, here off by a thousandth or negated, what is right today is not reproduced."""
    for claim in papers.claims():
        if claim.ours:
            assert claim.verdict(claim.correct) != NOT_REPRODUCED, claim
            for wrong in (_perturbed(claim.correct), [claim.correct, 0]):
                assert claim.verdict(wrong) == NOT_REPRODUCED, claim


def _perturbed(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (*value[:-1], _perturbed(value[-1]))
    if isinstance(value, str):
        return f"not {value}"
    assert isinstance(value, int | float | Fraction)
    return float(value) * 1.001 + 1e-3


def _claim(correct: object, printed: Printed | None = None, ours: object = 0.5, instance: str = "drf-4.1") -> Claim:
    return Claim(2, "DRF", "4.1", instance, "a claim", lambda cluster: ours, correct, printed)  # type: ignore[arg-type]


def test_a_wrong_correct_value_through_a_mechanism_is_not_reproduced() -> None:
    right = papers.claims(paper="DRF", item=2)[0]
    wrong = dataclasses.replace(right, correct=(3, 2.001))
    assert list(papers.check([right, wrong])["verdict"]) == [REPRODUCED, NOT_REPRODUCED]


def test_an_error_becomes_a_row() -> None:
    def fails(cluster: object) -> float:
        raise NotConverged("gave up")

    half = Printed("half")
    claims = [dataclasses.replace(_claim(0.5), ours=fails), _claim(0.5, instance="nowhere"), _claim(0.5, half)]
    failed, nowhere, right = papers.check(claims)["verdict"]
    assert failed == f"{NOT_REPRODUCED}: NotConverged: gave up"
    assert nowhere.startswith(f"{NOT_REPRODUCED}: DataError: there is no instance 'nowhere'")
    assert right == REPRODUCED


def test_a_bug_is_not_swallowed() -> None:
    def bug(cluster: object) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        papers.check([dataclasses.replace(_claim(0.5), ours=bug)])


@pytest.mark.parametrize(
    ("printed", "correct", "verdict"),
    [
        (Printed("0.5", 0.5), 0.5, REPRODUCED),
        (Printed("0.5", 0.5, 1), 0.5499, REPRODUCED),
        (Printed("0.5", 0.5, 1), 0.5501, f"{PAPER_IN_ERROR} 0.5501"),
        (Printed("50", 50, -1), 54.0, REPRODUCED),
        (Printed("pair", (1, 2)), (1, 3), f"{PAPER_IN_ERROR} (1, 3)"),
        (None, 7, DERIVED),
    ],
)
def test_printed_values_count_within_their_rounding(printed: Printed | None, correct: object, verdict: str) -> None:
    assert _claim(correct, printed).verdict(correct) == verdict


@pytest.mark.parametrize("ours", [True, "yes", (), None, np.nan, [0.5, 0.5], 0.5 + 1e-6])
def test_what_differs_in_value_type_or_shape_is_not_reproduced(ours: object) -> None:
    assert _claim(0.5).verdict(ours) == NOT_REPRODUCED


@pytest.mark.parametrize("ours", [[0.5], np.array([0.5]), Fraction(1, 2), 0.5 + 4e-7])
def test_the_same_number_in_another_dress_is(ours: object) -> None:
    assert _claim(0.5).verdict(ours) == DERIVED


def test_tolerance_is_absolute_at_zero() -> None:
    assert [_claim(0).verdict(ours) for ours in (5e-7, 5e-6)] == [DERIVED, NOT_REPRODUCED]


def test_claims_are_chosen_by_paper_and_item() -> None:
    assert {claim.paper for claim in papers.claims(item=2)} == {"LEC", "DRF"}
    assert {claim.item for claim in papers.claims(paper="PF")} == {0, 33, 34, 35, 36, 40}
    with pytest.raises(DataError, match="known: LEC"):
        papers.claims(paper="nobody")
