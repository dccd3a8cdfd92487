"""Cells that measure violations: what the properties say, and keys that change with their code."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairopt as fo
from fairopt import harness
from fairopt.harness import code
from fairopt.harness.clusters import build
from fairopt.harness.measures import VIOLATED
from fairopt.harness.run import run

from .sweeps import load

TEXT = """
title = "Violations"
repetitions = 2
clusters.drawn = "lognormal?users=3&servers=2&resources=2"

[[grid]]
mechanisms = ["alphapf-vds"]
alphas = [0.5, 2]
measures = {}
"""


def test_a_cell_says_what_the_properties_say(tmp_path: Path) -> None:
    cells = harness.cells(load(tmp_path / "violations.toml", TEXT.format('["violations"]')))
    for cell in cells:
        found = {each["measure"]: each["value"] for each in run(cell)["measured"]}
        assert set(found) == set(VIOLATED)
        cluster, _ = build(cell.origin, cell.seed, cell.repetition, None)
        known = fo.properties.report(cell.solver, cluster, ["sharing-incentive", "envy-freeness", "pareto-optimality"])
        for name, violation in known["violation"].items():
            assert found[name] == pytest.approx(violation, abs=1e-5)
        alpha = cell.solver.alpha  # type: ignore[attr-defined]
        assert (found["sharing-incentive"] > 0) <= (alpha < 1)
        assert found["strategy-proofness"] > 0


def test_the_key_changes_with_the_code_of_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(measures: str) -> set[str]:
        return {cell.key for cell in harness.cells(load(tmp_path / "violations.toml", TEXT.format(measures)))}

    before = keys('["violations"]'), keys('["utilization"]')
    monkeypatch.setattr(code, "of_properties", lambda: "other code")
    code.of.cache_clear()
    try:
        assert not before[0] & keys('["violations"]')
        assert before[1] == keys('["utilization"]')
    finally:
        code.of.cache_clear()
