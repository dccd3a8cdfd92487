"""What one solve builds: everything once."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairopt as fo
from fairopt import certificates
from fairopt.mechanisms import Mechanism
from fairopt.model import _validate, merging
from fairopt.model.polytope import Polytope


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of what is called from here on, wherever in fairopt it was imported to."""
    counts: Counter[str] = Counter()

    def count(thing: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return thing(*given, **named)

        return call

    monkeypatch.setattr(Polytope, "__init__", count(Polytope.__init__, "polytopes"))
    monkeypatch.setattr(_validate, "cluster", count(_validate.cluster, "validations"))
    for function, name in ((merging.merge, "merges"), (certificates.certify_problem, "judgements")):
        replaced = count(function, name)
        for module in [module for key, module in sys.modules.items() if key.startswith("fairopt.")]:
            if vars(module).get(function.__name__) is function:
                monkeypatch.setattr(module, function.__name__, replaced)
    return counts


@pytest.mark.parametrize("mechanism", [fo.DRFH(), fo.TSF(), fo.AlphaFair(2.0), fo.AlphaPFVDS(2.0)], ids=str)
def test_one_solve_builds_everything_once(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.array([[9.0, 18.0], [3.0, 7.0]]), np.array([[1.0, 4.0], [3.0, 1.0]])
    mechanism.solve(fo.Cluster(*data))  # whatever is imported at first use is there now
    counts = counted(monkeypatch)
    mechanism.solve(fo.Cluster(*data))
    assert counts == {"polytopes": 1, "validations": 1, "merges": 1, "judgements": 1}


def test_a_derived_cluster_is_the_checked_one() -> None:
    cluster = fo.Cluster([[4, 2], [1, 1]], [[1, 1], [2, 1]], eligible=[[1, 1], [0, 1]])
    assert cluster.derived(weight=2 * cluster.weight) == cluster.replace(weight=2 * cluster.weight)
    everywhere = cluster.derived(eligible=None)
    assert everywhere == cluster.replace(eligible=None)
    assert not everywhere.constrained
    with pytest.raises(ValueError, match="read-only"):
        everywhere.demand[0, 0] = 5
