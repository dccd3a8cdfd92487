"""`find_alpha`: the ends of its bracket do what it says, and it says where it cannot know."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError
from fairopt.study import find_alpha as module
from fairopt.study.find_alpha import NotMonotone, bracketed


def cluster(seed: int = 0) -> fo.Cluster:
    rng = np.random.default_rng(seed)
    return fo.Cluster(rng.uniform(1, 5, (3, 2)), rng.uniform(0.1, 5, (6, 2)))


@pytest.mark.parametrize("measure", ["utilization", "min_share"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::fairopt.study.find_alpha.NotMonotone")
def test_one_end_reaches_the_target_and_the_other_misses_it(measure: str, seed: int) -> None:
    shared, falls = cluster(seed), measure == "utilization"
    path = fo.alpha_path(shared, module.SCAN, mechanism=fo.AlphaFair)[measure]
    middle = float((path.min() + path.max()) / 2)
    target = middle / float(path.max()) if falls else middle
    found = fo.find_alpha(shared, fo.AlphaFair, target=target, measure=measure)
    assert found.threshold == pytest.approx(middle, rel=1e-4)
    assert found.allocation.certificate.passes(1e-6)
    assert found.alpha == found.allocation.criterion.alpha
    low, high = found.bracket
    assert low < high <= low * (1 + 1e-3)
    ends = found.bracket if falls else (high, low)
    assert found.alpha == ends[0]
    reached, missing = (fo.AlphaFair(alpha).solve(shared, 1e-8).summary()[measure] for alpha in ends)
    assert reached == pytest.approx(found.value, rel=1e-5)
    assert missing * (1 - 1e-5) <= found.threshold <= reached * (1 + 1e-5)
    assert found.path.index.is_monotonic_increasing
    assert {*ends} <= set(found.path.index)


def test_a_target_is_a_part_of_the_largest_value_or_the_value_itself() -> None:
    itself = fo.find_alpha(cluster(), fo.AlphaFair, target=0.85, relative=False)
    assert itself.threshold == 0.85 <= itself.value == pytest.approx(0.85, rel=1e-2)
    part = fo.find_alpha(cluster(), fo.AlphaFair, target=0.85 / float(itself.path["utilization"].max()))
    assert part.alpha == pytest.approx(itself.alpha, rel=2e-3)
    shares = fo.find_alpha(cluster(), fo.AlphaFair, target=0.9, measure="min_share", relative=True)
    assert shares.threshold == pytest.approx(0.9 * float(shares.path["min_share"].max()), rel=1e-3)


def test_nothing_is_said_of_alphas_beyond_infinity() -> None:
    assert "(there is no larger alpha)" in str(fo.find_alpha(cluster(), fo.AlphaFair, target=1e-3))


@pytest.mark.parametrize("root", [1.5, 1.0, 1.0005, 1.9999])
@pytest.mark.parametrize("steep", [1.0, 1e-300, 1e30])
def test_the_ends_are_close_wherever_the_target_is_reached(root: float, steep: float) -> None:
    asked: list[float] = []
    good, bad = bracketed(lambda alpha: asked.append(alpha) or steep * (root - alpha), 1.0, 2.0, 1e-3)
    assert good <= root < bad <= good * (1 + 1e-3)
    assert {good, bad} <= set(asked)


def test_towards_infinity_the_search_ends() -> None:
    """All finite alphas reach the target, and infinity does not."""
    asked: list[float] = []
    good, bad = bracketed(lambda alpha: asked.append(alpha) or (-1.0 if math.isinf(alpha) else 1.0), 64, math.inf, 1e-3)
    assert 1024 <= good < 4096
    assert math.isinf(bad)
    assert len(asked) < 10


def test_every_alpha_reaches_a_low_target() -> None:
    found = fo.find_alpha(cluster(), "alpha-fair", target=1e-6, measure="min_share")
    assert (found.alpha, found.bracket) == (0.1, (0.1, 0.1))
    found = fo.find_alpha(cluster(), target=0.2)
    assert (found.alpha, found.bracket) == (math.inf, (math.inf, math.inf))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": 0}, "target is 0; it must be a number > 0 and at most 1"),
        ({"target": 0.5, "measure": "jane"}, "measure is 'jane'; it must be one of utilization, min_share"),
        ({"target": 0.5, "accuracy": 0}, "accuracy is 0"),
        ({"target": 0.5, "mechanism": fo.DRF}, "DRF has no parameter alpha"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        fo.find_alpha(cluster(), **arguments)


def test_what_rises_and_falls_is_said() -> None:
    for seed in range(40):  # the first on which utilization of the game turns
        path = fo.alpha_path(shared := cluster(seed), module.SCAN)["utilization"]
        if path.diff().max() > 1e-3 and path.diff().min() < -1e-3:
            break
    with pytest.warns(NotMonotone, match="utilization both rises and falls"):
        found = fo.find_alpha(shared, target=0.999)
    assert not found.monotone


def test_a_target_out_of_reach_is_an_error_that_says_what_is_in_reach() -> None:
    for seed, target, measure in ((0, 0.9, "min_share"), (1, 0.999, "utilization")):
        said = rf"no alpha from 0.1 to infinity reaches {measure} {target}; the largest is 0\.\d+, at"
        with pytest.raises(DataError, match=said):
            fo.find_alpha(cluster(seed), fo.AlphaFair, target=target, measure=measure, relative=False)
