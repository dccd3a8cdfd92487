"""`fairopt properties` as a person or a script meets it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import ROOT

from fairopt.app.cli import fairness, main
from fairopt.properties import Witness

WITNESS = ROOT / "docs" / "witnesses" / "drf--population-monotonicity.json"


def test_replay(answer: Callable[..., Any], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["properties", "--replay", str(WITNESS)]) == 0
    assert "drf violates population-monotonicity by 1/4" in capsys.readouterr().out
    assert answer("properties", "--replay", str(WITNESS))["violation"] == 0.25
    false = tmp_path / "false.json"
    false.write_text(WITNESS.read_text(encoding="utf-8").replace('"1/4"', '"1/8"'), encoding="utf-8")
    assert main(["properties", "--replay", str(false)]) == 2
    assert "the violation is 1/4, not 1/8" in capsys.readouterr().err
    rounded = WITNESS.with_name("alphapf-vds--pareto-optimality.json").read_text(encoding="utf-8")
    false.write_text(re.sub('"text": ".*"', '"text": "false words"', rounded), encoding="utf-8")
    assert main(["properties", "--replay", str(false)]) == 0
    assert "false words" not in capsys.readouterr().out


def test_search_prints_and_saves(answer: Callable[..., Any], tmp_path: Path) -> None:
    words = ["properties", "-m", "task-maxmin,maxmin", "-p", "sharing-incentive", "--trials", "100"]
    rows = answer(*words, "--save", str(tmp_path / "new"))
    assert [row["mechanism"] for row in rows] == ["task max-min", "max-min"]
    assert rows[0]["violation"] > 0.1
    (saved,) = (tmp_path / "new").iterdir()
    assert Witness.load(saved).replay().violation > 0.1
    assert answer(*words, "--jobs", "2") == rows
    (some,) = answer(*words[:-4], "-p", "population-monotonicity", "-m", "drf", "--conditions", "positive demands")
    assert some["clusters"] == "positive demands"
    assert some["witness"] == "none in 500 trials"


def test_what_a_user_of_a_cluster_could_gain(answer: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["properties", "paper:drf-4.1", "-m", "ceei", "drf", "-p", "strategy-proofness", "--changes", "60"]
    ceei, drf = answer(*words)
    assert ceei["violation"] > 0.1
    assert drf["violation"] == 0
    assert main([*words[:-4], "-p", "strategy-proofness", "resource-monotonicity", "single-resource-fairness"]) == 0
    ceei_says, drf_says = capsys.readouterr().out.split("\nDRF\n")
    assert "a misreport gains 37.5% (strategy-proofness): B has" in ceei_says
    assert "no misreport found that gains, of 200 tried each: strategy-proofness (proved)" in drf_says
    assert "resource-monotonicity is violated by" in drf_says
    assert "single-resource-fairness: not defined here: there are 2 resources, not one" in drf_says
    for instance, words in (("drf-4.1", "population-monotonicity (proved)"), ("pf-fig1", "population-monotonicity")):
        assert main(["properties", f"paper:{instance}", "-m", "drf", "-p", "population-monotonicity"]) == 0
        assert f"not violated: {words}\n" in capsys.readouterr().out


def test_all_of_a_file_in_the_time(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Mechanisms that nobody named and that are not defined there are left out."""
    monkeypatch.setattr(fairness, "_SECONDS", 0.0)
    assert main(["properties", "paper:drf-4.1"]) == 0
    said = capsys.readouterr().out
    assert "envy-freeness" in said
    assert "not checked: the time was over" in said
    assert "CMMF" not in said
    short = "Not all properties were checked in time: raise --seconds, or name fewer of them or of --mechanisms"
    assert " ".join(said.split()).endswith(short)
    assert main(["properties", "paper:drf-4.1", "-m", "cmmf"]) == 2
    assert "CMMF is for one resource" in capsys.readouterr().err
