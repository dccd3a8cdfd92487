"""Cells that measure violations: what the properties say, and keys that change with their code."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairopt as fo
from fairopt import harness
from fairopt.harness import code
from fairopt.harness.origin import cluster
from fairopt.harness.run import run
from fairopt.harness.solve import VIOLATED

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


def test_a_cell_says_what_the_properties_say(path: Path) -> None:
    for cell in harness.cells_of(load(path, TEXT.format('["violations"]'))):
        found = {each["measure"]: each["value"] for each in run(cell)["measured"]}
        assert set(found) == set(VIOLATED)
        drawn, _ = cluster(cell.origin, cell.seed, cell.repetition, None)
        rule, names = cell.job.what.made, ["sharing-incentive", "envy-freeness", "pareto-optimality"]
        known = fo.properties.report(rule, drawn, names)["violation"]
        assert [found[name] for name in names] == pytest.approx(known[names].tolist(), abs=1e-5)
        assert (found["sharing-incentive"] > 0) <= (rule.alpha < 1)  # type: ignore[attr-defined]
        assert found["strategy-proofness"] > 0


def test_the_key_changes_with_the_code_of_properties(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def keys(measures: str) -> set[str]:
        return {cell.key for cell in harness.cells_of(load(path, TEXT.format(measures)))}

    before = keys('["violations"]'), keys('["utilization"]')
    real = code.of_fairopt
    with monkeypatch.context() as patched:
        patched.setattr(code, "of_fairopt", lambda *rooms: "other code" if "properties" in rooms else real(*rooms))
        code.of.cache_clear()
        assert not before[0] & keys('["violations"]')
        assert before[1] == keys('["utilization"]')
    code.of.cache_clear()
