"""`solve_many` agrees with engines for any size on all families; on 10,000 clusters each in `make test-long`."""

from __future__ import annotations

import os

import pytest

import fairopt as fo
from fairopt.mechanisms import Mechanism

from .agreement import ALL, compared, random_clusters

MECHANISMS = [
    *(fo.DRF(), fo.DRFH(), fo.TSF(), fo.PerServerDRF(), fo.CEEI(), fo.AlphaFair(0.5), fo.AlphaFair(2.0)),
    *(fo.AlphaPFVDS(0.5), fo.AlphaPFVDS(3.0), fo.PSDSF()),
    *(fo.Utilitarian(), fo.Utilitarian(scope="pool")),
]
LARGE = [fo.AlphaFair(20.0), fo.AlphaPFVDS(20.0)]
#: Clusters for every mechanism.
CLUSTERS = int(os.environ.get("FAIROPT_MANY_CLUSTERS", "15"))
#: Of a hundred these may be without an answer at 1e-8: none of global max-min, more the larger alpha is.
UNANSWERED = {fo.PSDSF(): 1.0, fo.AlphaFair(20.0): 2.0, fo.AlphaPFVDS(20.0): 2.0}
_MOST = 0.5


def check(mechanism: Mechanism, number: int) -> None:
    found = compared(mechanism, random_clusters(number))
    assert not found.wrong
    exact = str(mechanism) in ("DRF", "DRFH", "TSF")
    assert found.unanswered <= (0 if exact else UNANSWERED.get(mechanism, _MOST) / 100 * found.problems)


@pytest.mark.parametrize("mechanism", MECHANISMS + LARGE, ids=str)
def test_clusters_of_every_family(mechanism: Mechanism) -> None:
    check(mechanism, -(-CLUSTERS // len(ALL)))
