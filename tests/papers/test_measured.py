"""Claims about time and convergence are judged by measurements that come with fairopt, and can be judged otherwise."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np

from fairopt import harness, papers
from fairopt.papers import DERIVED, NOT_REPRODUCED, Measurements, measurements

ALPHAS = [0.1, 0.2, 0.35, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 3, 5, 8, 16, 32, 64, math.inf]


@cache
def claims() -> list[papers.Claim]:
    return papers.claims("PF", 35)


def claim_of(words: str) -> papers.Claim:
    [found] = [claim for claim in claims() if words in claim.statement]
    return found


def test_every_cluster_has_every_alpha() -> None:
    data = measurements()
    experiment = harness.load(data.about["experiment"])
    assert set(data.clusters()) == {source.name for source in experiment.sources}
    for cluster in data.clusters():
        assert data.equilibria(cluster).index.tolist() == ALPHAS
        assert data.games(cluster).index.tolist() == ([1, 3, math.inf] if cluster == "thousands" else ALPHAS)
    assert data.games("small", 1e-6, "jacobi", 0.2).index.tolist() == ALPHAS
    assert (data.reached["there"] <= data.reached["n"]).all()


def test_verdicts_are_of_the_data() -> None:
    frame = papers.check(claims())
    assert not frame["verdict"].str.startswith(NOT_REPRODUCED).any(), frame.to_string()
    verdicts = dict(zip(frame["claim"], frame["verdict"], strict=True))
    assert verdicts[claim_of("the larger alpha").statement] == verdicts[claim_of("to 1e-6").statement] == DERIVED
    rounds = verdicts[claim_of("more rounds at alpha = 3").statement]
    assert "on bitbrains and thousands and google, not on small" in rounds
    assert frame["note"].str.contains(r"\d").all()


def changed(**numbers: object) -> Measurements:
    """Of games; seconds of what was solved at once as well."""
    data = measurements()
    solved = {name: value for name, value in numbers.items() if name == "seconds"}
    return dataclasses.replace(data, reached=data.reached.assign(**numbers), solved=data.solved.assign(**solved))


def test_other_data_are_judged_otherwise() -> None:
    """Every claim about PF section 6 turns with the numbers that it is about."""
    reached = measurements().reached
    steady = reached["alpha"].rank(method="dense") * 10
    rising = changed(**{"rounds": steady, "rounds low": steady - 1, "rounds high": steady + 1})
    assert claim_of("the larger alpha").ours(rising) is True
    assert claim_of("the larger alpha").verdict(True) == NOT_REPRODUCED
    everybody, nobody = changed(there=reached["n"]), changed(there=0)
    for words in ("comes to 1e-2", "comes to 1e-6", "comes to 1e-1"):
        assert claim_of(words).ours(everybody) is True
        assert claim_of(words).ours(nobody) is False
    quick, slow = changed(seconds=0.03), changed(seconds=30.0)
    for words in ("the equilibrium engine", "around 0.03 s"):
        assert claim_of(words).ours(quick) is True
        assert claim_of(words).ours(slow) is False
    assert claim_of("around 0.03 s").ours(changed(seconds=0.003)) is False


def test_a_fall_counts_where_intervals_are_apart() -> None:
    reached = measurements().reached
    few = np.where(reached["alpha"] == 64, 5.0, 10.0)
    for apart in (2, 3):
        data = changed(**{"rounds": few, "rounds low": few - apart, "rounds high": few + apart})
        assert claim_of("the larger alpha").ours(data) is (apart == 3)
