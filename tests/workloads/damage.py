"""What a cluster read from a damaged snapshot must still be right about, whichever system printed it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import fairopt as fo

#: What stands where something else should.
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([[], {}, [[]], "1e400", "-1"]),
)


def assert_right_elsewhere(cluster: fo.Cluster, whole: fo.Cluster, hit: str | None, group: str | None) -> None:
    """As without damage but for the server `hit`, and for users of the group `group`; None: a node was hit.

    Nodes decide who can run at all, so that nothing is said of users then.
    """
    assert np.isfinite(cluster.capacity).all()
    assert cluster.eligible.any(axis=1).all()
    shared = {*cluster.resources} & {*whole.resources}  # what nobody asks for any more is not shared
    has, had = (_amounts(one, one.servers, one.capacity, shared) for one in (cluster, whole))
    assert all(has[name] == had[name] for name in had if name != hit)
    asks, before = (_amounts(one, one.users, one.demand, shared) for one in (cluster, whole))
    if group is not None:
        assert all(asks[name] == before[name] for name in before if not name.startswith(group))


def _amounts(cluster: fo.Cluster, names: tuple[str, ...], table: Any, shared: set[str]) -> dict[str, dict[str, float]]:
    """What every server has or user asks for, by name, of the resources that two clusters share."""
    return {
        name: {what: amount for what, amount in zip(cluster.resources, row, strict=True) if what in shared}
        for name, row in zip(names, table.tolist(), strict=True)
    }
