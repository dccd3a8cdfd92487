"""Kubernetes snapshots in which one value is another one, or gone."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.errors import DataError
from fairopt.workloads.kubernetes import snapshot

from .damage import LEAVES, assert_right_elsewhere
from .test_kubernetes import NODES, PODS, WEIGHTS

OBJECTS = [*NODES[:2], *PODS[:4], *WEIGHTS[:3]]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*at, key))
    return found


def damaged(data: st.DataObject) -> None:
    """One value somewhere is another one, or gone: a clear error, or a cluster that is right about the others."""
    objects = copy.deepcopy(OBJECTS)
    at = data.draw(st.sampled_from(places(objects)))
    inside: Any = objects
    for key in at[:-1]:
        inside = inside[key]
    if data.draw(st.booleans()) and isinstance(inside, dict):
        del inside[at[-1]]
    else:
        inside[at[-1]] = data.draw(LEAVES)
    if not all(isinstance(one, dict) for one in objects):
        return
    with contextlib.suppress(DataError):  # anything else is a defect
        cluster = snapshot(objects, "here").cluster
        whole, hit = snapshot(OBJECTS, "here").cluster, OBJECTS[at[0]]
        group = None if hit["kind"] == "Node" else hit["metadata"].get("namespace", "nobody")
        assert_right_elsewhere(cluster, whole, hit["metadata"]["name"], group)


@given(st.data())
def test_damage_gets_a_clear_error_or_a_cluster(data: st.DataObject) -> None:
    damaged(data)


@pytest.mark.long
@settings(max_examples=2000)
@given(st.data())
def test_damage_two_thousand_times(data: st.DataObject) -> None:
    damaged(data)
