"""Alibaba's GPU trace on a tiny one with every quirk."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import alibaba as reader

from .conftest import PODS


def test_groups_units_and_placement(alibaba):
    snapshot = reader.cluster(alibaba(), max_tasks=True)
    cluster = snapshot.cluster
    assert cluster.resources == ("cpu", "memory", "gpu")
    assert cluster.users == ("BE/0/0/any", "LS/1/500/G2|T4", "LS/2/1000/T4")
    np.testing.assert_array_equal(cluster.demand, [[12, 0, 0], [6, 3, 0.5], [2, 1, 2]])
    np.testing.assert_array_equal(cluster.capacity, [[32, 256, 0], [96, 384, 8], [104, 512, 2]])
    np.testing.assert_array_equal(cluster.eligible, [[1, 1, 1], [0, 1, 1], [0, 0, 1]])
    assert cluster.max_tasks.tolist() == [1, 2, 1]
    assert cluster.servers == ("n0", "n1", "n2")


def test_groups_that_fit_nowhere_or_want_nothing_are_listed(alibaba):
    snapshot = reader.cluster(alibaba(pods=[*PODS, "p5,0,0,0,1000,,LS,Running,0,9,0"]))
    assert snapshot.left_out == {
        "LS/2/1000/V100": "no node has a model that it may run on",
        "LS/0/1000/any": "its pods request nothing",
    }
    assert snapshot.report["groups found"] == 5
    assert snapshot.report["groups left out"] == 2


def test_pods_alive_at_an_instant(alibaba):
    folder = alibaba()

    for at, alive in ((0, "0"), (60, "01234"), (100, "234"), (None, "01234")):
        assert reader.pods(folder, at=at)["name"].tolist() == [f"p{k}" for k in alive]
    np.testing.assert_array_equal(reader.cluster(folder, at=0).cluster.demand, [[4, 2, 0.5]])
    with pytest.raises(DataError, match="at is 300 s, and openb_pod_list_gpuspec33 has pods from 0 to 200 s"):
        reader.cluster(folder, at=300)


def test_other_groups(alibaba):
    folder = alibaba()
    assert reader.cluster(folder, by="qos").cluster.users == ("BE/any", "LS/G2|T4", "LS/T4")
    assert reader.cluster(folder, by=["name"]).cluster.users == ("p0/G2|T4", "p1/G2|T4", "p2/any", "p4/T4")
    assert reader.cluster(folder, by=[]).cluster.users == ("any", "G2|T4", "T4")
    with pytest.raises(DataError, match="cannot be grouped by 'user'; choose among name, qos"):
        reader.cluster(folder, by=["qos", "user"])


def test_variants(alibaba, write):
    folder = alibaba()
    with pytest.raises(DataError, match=r"no openb_pod_list_default\.csv; it has .*openb_pod_list_gpuspec33\.csv"):
        reader.cluster(folder, variant="default")
    write(folder / "openb_pod_list_default.csv.gz", [PODS[0], PODS[3].replace("p2", "q2")])
    assert reader.pods(folder, variant="default")["name"].tolist() == ["q2"]
