"""Snapshots of Kubernetes and Slurm in which one value is another one, or gone."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairopt as fo
from fairopt.errors import DataError
from fairopt.workloads import kubernetes, slurm

from . import test_kubernetes, test_slurm

#: What stands where something else should.
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([[], {}, [[]], "1e400", "-1"]),
)
#: Of each system objects, of which the first two are nodes, and the cluster that is read from them.
SYSTEMS: dict[str, tuple[list[Any], Callable[[list[Any]], fo.Cluster]]] = {
    "kubernetes": (
        [*test_kubernetes.NODES[:2], *test_kubernetes.PODS[:4], *test_kubernetes.WEIGHTS[:3]],
        lambda objects: kubernetes.snapshot(objects, "here").cluster,
    ),
    "slurm": (
        [*test_slurm.NODES[:2], *test_slurm.JOBS[:3]],
        lambda objects: slurm.snapshot(objects[:2], objects[2:], {}, "here").cluster,
    ),
}


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*at, key))
    return found


def damaged(data: st.DataObject, system: str) -> None:
    """One value somewhere is another one, or gone: a clear error, or a cluster that is right about the others."""
    whole, read = SYSTEMS[system]
    objects = copy.deepcopy(whole)
    at = data.draw(st.sampled_from([place for place in places(objects) if len(place) > 1]))
    inside: Any = objects
    for key in at[:-1]:
        inside = inside[key]
    if data.draw(st.booleans()) and isinstance(inside, dict):
        del inside[at[-1]]
    else:
        inside[at[-1]] = data.draw(LEAVES)
    with contextlib.suppress(DataError):  # anything else is a defect
        hit = whole[at[0]].get("metadata", whole[at[0]])
        group = None if at[0] < 2 else hit.get("account") or hit.get("namespace", "nobody")
        assert_right_elsewhere(read(objects), read(whole), hit["name"] if at[0] < 2 else None, group)


def assert_right_elsewhere(cluster: fo.Cluster, whole: fo.Cluster, hit: str | None, group: str | None) -> None:
    """As without damage but for the server `hit`, and for users of the group `group`; None: a node was hit.

    Nodes decide who can run at all, so that nothing is said of users then.
    """
    assert np.isfinite(cluster.capacity).all()
    assert cluster.eligible.any(axis=1).all()
    tables = [
        pd.concat([pd.DataFrame(one.capacity, one.servers, one.resources),
                   pd.DataFrame(one.demand, one.users, one.resources)])
        for one in (cluster, whole)
    ]  # fmt: skip
    same = [name for name in whole.servers if name != hit]
    if group is not None:
        same += [name for name in whole.users if not name.startswith(group)]
    shared = tables[1].columns.intersection(tables[0].columns)  # what nobody asks for any more is not shared
    pd.testing.assert_frame_equal(tables[0].loc[same, shared], tables[1].loc[same, shared], check_exact=True)


@pytest.mark.parametrize("examples", [50, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("system", SYSTEMS)
def test_damage_gets_a_clear_error_or_a_cluster(system: str, examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.data())
    def law(data: st.DataObject) -> None:
        damaged(data, system)

    law()
