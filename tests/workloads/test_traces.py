"""Facts about the real traces, and the committed tables measured afresh."""

from __future__ import annotations

import json
from importlib.resources import files

import calibrate
import numpy as np
import pytest

from fairopt.workloads import alibaba, google2011
from fairopt.workloads._draw import measured

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


def test_totals_are_the_published_ones(traces):
    machines = google2011.machines(traces, at=0)
    assert len(machines) == 12477
    np.testing.assert_allclose(machines.sum(), [6603.25, 5862.75], atol=0.005)
    tasks = google2011.tasks(traces, at=0, window=6000)
    assert (len(tasks), tasks["user"].nunique(), tasks["job"].nunique()) == (190926, 519, 4895)
    assert not tasks.duplicated(["job", "task"]).any()
    pods = alibaba.cluster(traces)
    np.testing.assert_allclose(pods.cluster.pooled_capacity, [125514, 612028416 / 1024, 6212])
    assert (pods.report["pods found"], len(pods.cluster.servers)) == (8152, 1523)
    assert (alibaba.pods(traces)["gpu_spec"] != "").sum() == 2388
    assert (alibaba.pods(traces, variant="default")["gpu_spec"] == "").all()


def test_google_classes_of_the_generator_are_the_published_ones():
    assert {(cpu, memory): number for cpu, memory, number in measured("google")[1]["servers"]} == CLASSES


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
