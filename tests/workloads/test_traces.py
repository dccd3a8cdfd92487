"""Facts about the real traces, and the committed tables measured afresh."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files

import calibrate
import numpy as np
import pytest

from fairopt.workloads import alibaba, bitbrains, google2011
from fairopt.workloads._marginals import load

CLASSES = {
    (0.5, 0.4995): 6732,
    (0.5, 0.2493): 3863,
    (0.5, 0.749): 1001,
    (1, 1): 795,
    (0.25, 0.2498): 126,
    (0.5, 0.1241): 52,
    (0.5, 0.03085): 5,
    (0.5, 0.9678): 5,
    (1, 0.5): 3,
    (0.5, 0.06158): 1,
}


@pytest.fixture(scope="module")
def google(traces):
    return google2011.cluster(traces, at=0, max_tasks=True)


def test_google_machines_are_the_published_table(traces):
    machines = google2011.machines(traces, at=None)
    assert len(machines) == 12583
    assert Counter(map(tuple, machines.to_numpy())) == CLASSES
    assert machines["cpu"].mean() == pytest.approx(0.52921, abs=5e-6)


def test_google_machines_at_the_start(traces, google):
    machines = google2011.machines(traces, at=0)
    assert len(machines) == 12477
    np.testing.assert_allclose(machines.sum(), [6603.25, 5862.75], atol=0.005)
    np.testing.assert_array_equal(google.cluster.capacity, machines)


def test_google_users(google):
    assert google.report["task_events rows read"] == 450146
    assert google.report["task_events rows skipped as malformed"] == 0
    assert google.report["users found"] == len(google.cluster.users) + len(google.left_out)
    known = google.cluster.max_tasks.sum()
    assert google.report["tasks found"] - known in range(1, 292)  # tasks of the users left out: no requests known


def test_google_users_and_tasks_of_the_whole_part(traces):
    tasks = google2011.tasks(traces, at=0, window=6000)
    assert len(tasks) == 190926
    assert tasks["user"].nunique() == 519
    assert tasks["job"].nunique() == 4895
    assert not tasks.duplicated(["job", "task"]).any()


def test_alibaba_totals(traces):
    snapshot = alibaba.cluster(traces)
    np.testing.assert_allclose(snapshot.cluster.pooled_capacity, [125514, 612028416 / 1024, 6212])
    assert len(snapshot.cluster.servers) == 1523
    assert snapshot.report["pods found"] == 8152
    assert snapshot.cluster.runnable.all()
    assert (alibaba.pods(traces)["gpu_spec"] != "").sum() == 2388
    assert (alibaba.pods(traces, variant="default")["gpu_spec"] == "").all()
    nodes = alibaba.nodes(traces)
    assert len(nodes.drop_duplicates()) == 27


def test_alibaba_demand_is_the_mean_request_of_the_pods(traces):
    pods = alibaba.pods(traces)
    cluster = alibaba.cluster(traces, max_tasks=True).cluster
    total = pods[["cpu", "memory", "gpu"]].sum().to_numpy()
    np.testing.assert_allclose((cluster.demand * cluster.max_tasks[:, None]).sum(axis=0), total)


def test_bitbrains_vms(traces, rng):
    snapshot = bitbrains.cluster(traces, at=1375308176, vms=None, part="rnd-day")
    assert snapshot.report["rows read"] == 144000
    assert snapshot.report["rows skipped as malformed"] == 0
    assert "vm446" not in snapshot.cluster.users  # it starts two weeks later
    assert snapshot.report["virtual machines found"] == 500 - 8


def test_bitbrains_mean_by_hand(traces):
    import csv
    import gzip

    with gzip.open(traces / "bitbrains" / "rnd-day" / "2013-8" / "1.csv.gz", "rt") as file:
        rows = [[float(field) for field in row] for row in list(csv.reader(file, delimiter=";"))[1:13]]
    mean = np.mean(rows, axis=0)
    cluster = bitbrains.cluster(traces, at=1375308176, vms=None, part="rnd-day").cluster
    expected = [mean[3] / 1e3, mean[6] / 2**20, (mean[7] + mean[8]) / 1e3, mean[9] * 8e-3, mean[10] * 8e-3]
    np.testing.assert_allclose(cluster.demand[cluster.users.index("vm1")], expected)


def test_google_classes_of_the_generator_are_the_published_ones():
    assert {(cpu, memory): number for cpu, memory, number in load("google")[1]["servers"]} == CLASSES


@pytest.mark.parametrize("name", sorted(calibrate.TABLES))
def test_the_committed_tables_are_what_the_script_measures(traces, tmp_path, name):
    calibrate.main(["--traces", str(traces), "--out", str(tmp_path), "--only", name])
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.json"]
    fresh = json.loads((tmp_path / f"{name}.json").read_text())
    committed = json.loads(files("fairopt.workloads").joinpath("data", f"{name}.json").read_text())
    assert fresh.keys() == committed.keys()
    for key in ("about", "columns", "servers", "specs"):
        assert fresh.get(key) == committed.get(key)
    for key in ("probability", "zero", "quantiles"):
        np.testing.assert_allclose(fresh[key], committed[key], rtol=2e-5, atol=1e-9)
    np.testing.assert_allclose(fresh["rank_correlation"], committed["rank_correlation"], atol=1e-4)
    np.testing.assert_allclose(fresh["normal_correlation"], committed["normal_correlation"], atol=0.02)
