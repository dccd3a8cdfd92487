"""Cells that measure violations: what the properties say, and keys that change with their code."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairopt as fo
from fairopt import sweeps
from fairopt.sweeps import code
from fairopt.sweeps.origin import cluster
from fairopt.sweeps.run import run
from fairopt.sweeps.solve import VIOLATED

from .small import load

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
    cells = sweeps.cells_of(load(tmp_path / "violations.toml", TEXT.format('["violations"]')))
    for cell in cells:
        found = {each["measure"]: each["value"] for each in run(cell)["measured"]}
        assert set(found) == set(VIOLATED)
        drawn, _ = cluster(cell.origin, cell.seed, cell.repetition, None)
        known = fo.properties.report(
            cell.job.what.made, drawn, ["sharing-incentive", "envy-freeness", "pareto-optimality"]
        )
        for name, violation in known["violation"].items():
            assert found[name] == pytest.approx(violation, abs=1e-5)
        alpha = cell.job.what.made.alpha  # type: ignore[attr-defined]
        assert (found["sharing-incentive"] > 0) <= (alpha < 1)
        assert found["strategy-proofness"] > 0


def test_the_key_changes_with_the_code_of_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(measures: str) -> set[str]:
        return {cell.key for cell in sweeps.cells_of(load(tmp_path / "violations.toml", TEXT.format(measures)))}

    before = keys('["violations"]'), keys('["utilization"]')
    real = code.of_fairopt
    with monkeypatch.context() as patched:
        patched.setattr(code, "of_fairopt", lambda *rooms: "other code" if "properties" in rooms else real(*rooms))
        code.of.cache_clear()
        assert not before[0] & keys('["violations"]')
        assert before[1] == keys('["utilization"]')
    code.of.cache_clear()
