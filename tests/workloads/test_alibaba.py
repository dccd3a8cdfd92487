"""Alibaba's GPU trace on a tiny one with every quirk."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import alibaba as reader

from .conftest import NODES, PODS


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

    def alive(at):
        return reader.pods(folder, at=at)["name"].tolist()

    assert alive(0) == ["p0"]
    assert alive(60) == ["p0", "p1", "p2", "p3", "p4"]
    assert alive(100) == ["p2", "p3", "p4"]
    assert alive(None) == ["p0", "p1", "p2", "p3", "p4"]
    np.testing.assert_array_equal(reader.cluster(folder, at=0).cluster.demand, [[4, 2, 0.5]])
    with pytest.raises(DataError, match="no group of pods that can run at 300 s"):
        reader.cluster(folder, at=300)


def test_other_groups(alibaba):
    folder = alibaba()
    assert reader.cluster(folder, by="qos").cluster.users == ("BE/any", "LS/G2|T4", "LS/T4")
    assert reader.cluster(folder, by=["name"]).cluster.users == ("p0/G2|T4", "p1/G2|T4", "p2/any", "p4/T4")
    assert reader.cluster(folder, by=[]).cluster.users == ("any", "G2|T4", "T4")
    with pytest.raises(DataError, match="cannot be grouped by 'user'; choose among name, qos"):
        reader.cluster(folder, by=["qos", "user"])


def test_groups_are_drawn_with_the_generator(alibaba):
    folder = alibaba()
    drawn = [reader.cluster(folder, users=1, rng=np.random.default_rng(k)).cluster for k in (0, *range(30))]
    assert drawn[0] == drawn[1]
    assert len({cluster.users for cluster in drawn}) == 3
    with pytest.raises(DataError, match="rng="):
        reader.cluster(folder, users=1)


def test_variants(alibaba, write):
    folder = alibaba()
    with pytest.raises(DataError, match=r"no openb_pod_list_default\.csv; it has .*openb_pod_list_gpuspec33\.csv"):
        reader.cluster(folder, variant="default")
    write(folder / "openb_pod_list_default.csv.gz", [PODS[0], PODS[3].replace("p2", "q2")])
    assert reader.pods(folder, variant="default")["name"].tolist() == ["q2"]


@pytest.mark.parametrize(
    ("pod", "what"),
    [
        ("p9,4000,2048,1,500,T4,LS,Running,0", "9 fields instead of 11"),
        ("p9,4000,2O48,1,500,T4,LS,Running,0,100,0", "memory_mib '2O48', which is not a whole number"),
        ("p9,4000,2048,1,1500,T4,LS,Running,0,100,0", "gpu_milli 1500; it must be from 0 to 1000"),
        ("p9,4000,2048,1,500,T4,,Running,0,100,0", "no qos"),
    ],
)
def test_malformed_pods(alibaba, pod, what):
    folder = alibaba(pods=[*PODS, pod])
    with pytest.raises(DataError) as caught:
        reader.cluster(folder)
    assert f"{folder / 'openb_pod_list_gpuspec33.csv'}, line 7: " in str(caught.value)
    assert what in str(caught.value)
    snapshot = reader.cluster(folder, skip_malformed=True)
    assert snapshot.report["openb_pod_list_gpuspec33 rows skipped as malformed"] == 1
    assert snapshot.cluster == reader.cluster(alibaba()).cluster


def test_malformed_nodes(alibaba):
    folder = alibaba(nodes=[*NODES[:2], "n9,1,1,two,G2", *NODES[2:]])
    with pytest.raises(DataError, match=r"openb_node_list_all_node\.csv, line 3: .*gpu 'two'"):
        reader.nodes(folder)
    assert reader.nodes(folder, skip_malformed=True)["model"].to_dict() == {"n0": "", "n1": "G2", "n2": "T4"}


def test_folders(alibaba, tmp_path):
    folder = alibaba()
    assert reader.cluster(tmp_path).cluster == reader.cluster(str(folder)).cluster
    with pytest.raises(DataError, match=r"not a folder; expected .*openb_node_list_all_node\.csv"):
        reader.cluster(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no trace.*openb_pod_list_<variant>\.csv"):
        reader.cluster(tmp_path / "empty")
