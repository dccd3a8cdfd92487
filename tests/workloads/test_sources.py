"""Workloads by name."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from processes import ROOT

from fairopt.errors import DataError
from fairopt.workloads import alibaba_like, bitbrains_like, google2011, google_like, known, open_source, traces_root
from fairopt.workloads.sources import CLUSTERS

from .test_bitbrains import START, every


@pytest.fixture(autouse=True)
def without_traces(monkeypatch):
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)


@pytest.fixture
def vms(bitbrains):
    return bitbrains({vm: every(300, 12, mhz=100.0 * vm) for vm in range(1, 11)})


def test_the_seed_in_the_name_comes_first():
    rng, name = np.random.default_rng, "bitbrains-like?seed=3"
    assert open_source("bitbrains-like", rng=rng(4)).cluster == bitbrains_like(rng(4)).cluster
    assert open_source("google-like?users=5&servers=6&seed=3").cluster == google_like(rng(3), 5, 6).cluster
    assert open_source("alibaba-like?max_tasks=yes").cluster == alibaba_like(rng(0), max_tasks=True).cluster
    assert open_source(name, rng=np.random.default_rng(9)).cluster == open_source(name).cluster
    assert open_source(name).cluster != open_source("bitbrains-like?seed=4").cluster


def test_a_trace_in_a_named_directory(vms, google, alibaba):
    cluster = open_source(f"bitbrains:{vms}?vms=4&servers=3&seed=1&at={START}").cluster
    assert cluster.shape == (4, 3, 5)
    assert open_source(f"bitbrains:{vms}?vms=all&statistic=provisioned&split_disk=1").cluster.shape == (10, 20, 6)
    folder = google()
    for name in ("google", "google2011"):
        assert open_source(f"{name}:{folder}?at=700").cluster == google2011.cluster(folder, at=700).cluster
    assert open_source(f"google:{folder}?users=0.5").cluster.shape == (1, 3, 2)
    assert np.isinf(open_source(f"google:{folder}?max_tasks=no").cluster.max_tasks).all()
    assert open_source(f"google:{folder}?max_tasks=yes").cluster.max_tasks.tolist() == [2, 1]
    assert open_source(f"alibaba:{alibaba()}?by=qos,num_gpu").cluster.users[0] == "BE/0/any"


def test_a_trace_below_the_traces_root(vms, tmp_path, monkeypatch):
    found = [open_source("bitbrains?vms=3", traces=folder) for folder in (tmp_path, tmp_path / "bitbrains")]
    monkeypatch.setenv("FAIROPT_TRACES", str(tmp_path))
    for snapshot in (*found, open_source("bitbrains?vms=3")):
        assert snapshot.source.startswith("Bitbrains (bitbrains/rnd/2013-8): ")
        assert snapshot.cluster.shape[0] == 3


def test_the_generator_stands_in_and_says_so(vms, tmp_path):
    snapshot = open_source("google?users=5&seed=2")
    assert snapshot.cluster == google_like(np.random.default_rng(2), users=5).cluster
    assert "calibrated generator in place of the trace google2011: FAIROPT_TRACES is not set" in snapshot.source
    other = open_source("alibaba", traces=tmp_path)
    assert other.cluster == alibaba_like(np.random.default_rng(0)).cluster
    assert "alibaba: no folder alibaba among the traces" in other.source
    assert open_source("bitbrains?vms=3").cluster == bitbrains_like(np.random.default_rng(0), vms=3).cluster


def test_an_option_is_never_dropped_by_the_stand_in():
    with pytest.raises(DataError, match=r"option at of google2011 needs the trace.*FAIROPT_TRACES"):
        open_source("google?at=600")
    for name in ("google?users=0.1", "bitbrains?vms=all"):
        with pytest.raises(DataError, match="must be a whole number where there is no trace"):
            open_source(name)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "gogle",
            "no source of clusters 'gogle'; known are alibaba, bitbrains, google2011, google, .*kubernetes",
        ),
        ("bitbrains?vm=3", "bitbrains has no option 'vm'; known are at, window, vms, servers"),
        ("bitbrains-like?vms=many", "option vms of bitbrains-like cannot be 'many'; it must be a whole number"),
        ("bitbrains-like?vms=0", "option vms of bitbrains-like cannot be '0': vms is 0; it must be a whole number, at"),
        ("bitbrains?statistic=mode", "option statistic of bitbrains cannot be 'mode'; it must be one of mean, prov"),
        (
            "google?window=-1",
            "option window of google2011 cannot be '-1': window is -1; it must be a finite number",
        ),
        ("alibaba?by=colour", "option by of alibaba cannot be 'colour': pods cannot be grouped by 'colour'"),
        (
            "lognormal?density=0",
            "option density of lognormal cannot be '0': density is 0; it must be above 0 and",
        ),
        ("google-like?users", "option=value"),
        ("google-like?users=3&users=4", "twice"),
        ("google-like?seed=-1", "seed must be a whole number"),
        ("google-like:somewhere", "takes no directory"),
        ("google:", "names no directory"),
        ("kubernetes", "kubernetes reads a file or folder of yours; name it: kubernetes:PATH"),
        ("google:/no/such/folder", "is not a folder"),
    ],
)
def test_names_that_do_not_work(name, what):
    with pytest.raises(DataError, match=what):
        open_source(name)


def test_values_are_checked_before_anything_is_there():
    """No trace is looked for, and nothing drawn."""
    for name in ("bitbrains?vms=0", "google?users=1.5", "alibaba?at=nan", "lognormal?resources=-1&users=100000000"):
        with pytest.raises(DataError, match="cannot be") as error:
            CLUSTERS.check(name)
        assert error.value.where[0] in ("vms", "users", "at", "resources")
    CLUSTERS.check("bitbrains?vms=all&servers=3&at=0")


def test_the_traces_root(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIROPT_TRACES", str(tmp_path / "gone"))
    with pytest.raises(DataError, match=r"variable FAIROPT_TRACES names .*gone, which is not a folder"):
        open_source("google")
    with pytest.raises(DataError, match=r"traces names .*lost, which is not a folder"):
        traces_root(tmp_path / "lost")


def test_a_stand_in_that_is_not_there(monkeypatch):
    monkeypatch.setitem(CLUSTERS.entries, "bitbrains", replace(CLUSTERS.entries["bitbrains"], stand_in="lost"))
    with pytest.raises(DataError, match="no source of clusters 'lost'"):
        open_source("bitbrains")


def test_known_names():
    """All of them, and no others, stand in the table of docs/workloads.md."""
    page = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \|", page.partition("## Names")[2].partition("\n## ")[0], re.MULTILINE)
    rows = set(re.findall(r"`([\w-]+)", " ".join(cells)))
    assert {*known(), "google"} == rows, "add new sources to the table `Names` of docs/workloads.md"


def test_a_snapshot_prints_its_story(google):
    text = str(google2011.cluster(google()))
    assert text.startswith("Google 2011 (")
    assert "users left out: 2" in text
