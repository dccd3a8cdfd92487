"""Every mechanism answers every cluster on which it is defined, and its certificate vouches for the answer."""

from __future__ import annotations

import numpy as np
import pytest
from families import FAMILIES, draw
from hypothesis import given, settings
from strategies import clusters

from fairopt.mechanisms import Mechanism
from fairopt.model.cluster import Cluster

from .answers import Tally, check_answer
from .registry import MANY, OTHERS, VARIANTS, identify, share_of

#: How many clusters of a family a mechanism may give up, of those whose numbers span eight decades: one in twelve.
FORGIVEN = {"wide": 1 / 12}


def run_law(mechanism: Mechanism, examples: int) -> None:
    tally = Tally()

    @settings(max_examples=examples)
    @given(clusters(styles=("nice", "plain")))
    def law(cluster: Cluster) -> None:
        check_answer(mechanism, cluster, tally)

    law()
    assert tally.answered >= examples / 5, str(tally)


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_random_clusters(mechanism: Mechanism) -> None:
    """Numbers of one magnitude, with everything that a cluster may have: no error is accepted."""
    run_law(mechanism, share_of(mechanism, MANY * 2 // 5))


@pytest.mark.parametrize("mechanism", OTHERS, ids=identify)
def test_random_clusters_with_other_parameters(mechanism: Mechanism) -> None:
    run_law(mechanism, share_of(mechanism, MANY // 8))


def run_families(mechanism: Mechanism, count: int) -> None:
    """A quarter of the clusters has one resource, which is all that some mechanisms take; other styles are above."""
    total = 0
    for family in ["wide", *FAMILIES]:
        tally, several = Tally(), count * (3 if family in FORGIVEN else 1)
        for seed in range(several):
            name = f"{family} {seed}" if family in FORGIVEN else ""
            check_answer(mechanism, draw(family, seed, 5, 4, 1 if seed % 4 == 0 else 3), tally, name)
        assert len(tally.gave_up) <= FORGIVEN.get(family, 0) * several, f"{mechanism}: {tally}"
        assert tally.answered + tally.refused + len(tally.gave_up) == several
        total += tally.answered
    assert total >= len(FAMILIES), f"{mechanism} answered {total} clusters only"


@pytest.mark.parametrize("mechanism", VARIANTS, ids=identify)
def test_families(mechanism: Mechanism) -> None:
    run_families(mechanism, share_of(mechanism, max(MANY // 20, 2)))


@pytest.mark.long
@pytest.mark.parametrize("mechanism", OTHERS, ids=identify)
def test_families_with_other_parameters(mechanism: Mechanism) -> None:
    run_families(mechanism, max(MANY // 60, 1) + 1)


#: Clusters that broke something once, kept whatever the random ones are.
HARD = {
    # The second user's price on the shared resource is 1e-10 of the others': max-min must not lose it.
    "a user whose price is invisible": Cluster(
        [[1, 1, 1]], [[1, 56.234133, 1], [1, 0.01, 1e4], [10, 1, 1]], weight=[1, 1e-4, 1]
    ),
    "prices over ten decades": Cluster(
        [[21.112158, 24.309067, 57.123002]],
        [[1, 6404.228484, 175.123932], [2.549895, 0.010955, 6775.315412], [0.11923, 0, 641.807806]],
        weight=[57.123002, 0.00066, 0.078128],
    ),
    "nobody has anything to run": Cluster([[1]], [[1]], max_tasks=0),
    "some have nothing to run": Cluster([[2, 1]], [[1, 1], [1, 2]], max_tasks=[0, np.inf]),
    "everybody satisfied": Cluster([[4]], [[1], [1]], max_tasks=[1, 1.8]),
    "all but one satisfied": Cluster([[5.3]], [[4], [1]], [1, 2], max_tasks=[0, 1.5899999999999999]),
    "limits and lacks": Cluster(
        [[3, 4, 0], [1, 0, 0], [1, 2, 1], [6, 1, 2]],
        [[4, 0, 1], [1, 2, 4], [1, 0, 0]],
        max_tasks=[np.inf, 0.075, 3.3],
    ),
    "utilitarian leaves users with nothing": Cluster([[3, 1]], [[1, 1], [1, 3], [4, 3], [1, 1]]),
    "one user on many servers": Cluster(np.linspace(0, 3, 60).reshape(30, 2), [[1, 2]]),
}


@pytest.mark.parametrize(
    "mechanism", [*VARIANTS, *(pytest.param(one, marks=pytest.mark.long) for one in OTHERS)], ids=identify
)
def test_hard_clusters(mechanism: Mechanism) -> None:
    """Nobody gives up. Three of them have one resource and nothing that anybody could refuse, or next to it."""
    tally = Tally()
    for cluster in HARD.values():
        check_answer(mechanism, cluster, tally)
    assert tally.answered >= 3 or mechanism in OTHERS, str(tally)
