"""Bitbrains on tiny VM files with every quirk."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.errors import DataError
from fairopt.workloads import _csv
from fairopt.workloads import bitbrains as reader

START = 1376314846
GIB = 2**20  # KB


def row(time, mhz=1000.0, gib=1.0, read=500.0, write=250.0, received=125.0, sent=250.0, cores=2):
    """One sample; `cores=0` is a VM that is switched off."""
    on = cores > 0
    usage = [mhz, 12.5, 8388608.0 * on, gib * GIB, read, write, received, sent]
    return [time, cores, 5200.0 * on, *(usage if on else [0.0] * 8)]


def every(step, count, start=START, **use):
    return [row(start + k * step, **use) for k in range(count)]


def at_start(folder, **options):
    """Everything that is in use at the beginning."""
    return reader.cluster(folder, at=START, vms=None, **options)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("options", "demand"),
    [
        ({}, {"cpu": 1.0, "memory": 1.0, "disk": 0.75, "received": 1.0, "transmitted": 2.0}),
        ({"split_disk": True},
         {"cpu": 1, "memory": 1, "disk_read": 0.5, "disk_write": 0.25, "received": 1, "transmitted": 2}),
        ({"statistic": "provisioned"}, {"cpu": 5.2, "memory": 8.0, "disk": 0.75, "received": 1.0, "transmitted": 2.0}),
    ],
)  # fmt: skip
def test_units(bitbrains, suffix, options, demand):
    cluster = at_start(bitbrains({17: every(300, 3)}, suffix), **options).cluster
    assert cluster.users == ("vm17",)
    assert dict(zip(cluster.resources, cluster.demand[0], strict=True)) == pytest.approx(demand)


def test_the_window_counts_by_time_and_not_by_row(bitbrains):
    rows = [row(START, mhz=1000), row(START + 20, mhz=2000), row(START + 599, mhz=6000), row(START + 600, mhz=9000)]
    folder = bitbrains({1: rows})
    cluster = at_start(folder, window=600).cluster
    assert cluster.demand[0, 0] == pytest.approx(3.0)  # the sample at the end is out
    assert reader.cluster(folder, at=START + 1, window=598, vms=None).cluster.demand[0, 0] == pytest.approx(2.0)


def test_many_windows_from_one_reading(bitbrains):
    late = every(300, 5, START + 600, mhz=100)
    folder = bitbrains({1: [row(START, mhz=1000), row(START + 600, mhz=9000)], 2: every(600, 2, mhz=500), 3: late})
    table = reader.samples(folder)
    assert reader.demands(table, START, 600)["cpu"].to_dict() == {1: 1.0, 2: 0.5}
    assert reader.demands(table, START + 600, 600)["cpu"].to_dict() == {1: 9.0, 2: 0.5, 3: 0.1}
    assert reader.samples(folder, START + 1, START + 601)["time"].tolist() == [START + 600] * 3
    assert reader.samples(folder, end=START + 600)["vm"].tolist() == [1, 2]


def test_a_trace_is_read_once_for_many_draws_and_again_when_it_changes(bitbrains, monkeypatch):
    read, whole = [], reader.samples
    monkeypatch.setattr(reader, "samples", lambda *given, **more: read.append(1) or whole(*given, **more))

    def draw(rows, times):
        """So many draws of a trace with so many rows."""
        folder = bitbrains({1: every(3600, rows)})
        drawn = {str(reader.cluster(folder, vms=1, rng=np.random.default_rng(0)).report) for _ in range(times)}
        return drawn, len(read)

    (one,), count = draw(3, 3)
    assert count == 1
    assert "'rows read': 3" in one
    assert draw(4, 1)[1] == 2
    monkeypatch.setattr(_csv, "MOST_KEPT", 0)  # too much to keep: read every time
    assert draw(5, 2)[1] == 4


def test_a_repeated_time_counts_once(bitbrains):
    rows = [row(START, mhz=1000), row(START, mhz=3000), row(START + 300, mhz=5000)]
    cluster = at_start(bitbrains({1: rows})).cluster
    assert cluster.demand[0, 0] == pytest.approx(3.5)  # (2 + 5)/2 and not (1 + 3 + 5)/3


def test_rows_of_a_vm_that_is_off_are_dropped(bitbrains):
    rows = [row(START, mhz=1000), row(START + 300, cores=0), row(START + 600, mhz=3000)]
    snapshot = at_start(bitbrains({1: rows, 2: [row(START, cores=0)]}))
    assert snapshot.cluster.users == ("vm1",)
    assert snapshot.cluster.demand[0, 0] == pytest.approx(2.0)
    assert snapshot.report["rows read"] == 4
    assert snapshot.report["rows dropped, switched off"] == 2


def test_a_vm_that_uses_nothing_is_left_out_and_listed(bitbrains):
    idle = every(300, 2, mhz=0.0, gib=0.0, read=0.0, write=0.0, received=0.0, sent=0.0)
    snapshot = at_start(bitbrains({1: every(300, 2), 2: idle}))
    assert snapshot.cluster.users == ("vm1",)
    assert snapshot.left_out == {"vm2": "it uses nothing within the window"}
    assert snapshot.report["virtual machines left out"] == 1
    with pytest.raises(DataError, match="no virtual machine that is on and in use"):
        at_start(bitbrains({1: idle, 2: idle}))


def test_a_drawn_instant_is_one_with_enough_vms(bitbrains):
    # In use in hours 0 to 3, and in hour 1 and half of hour 2.
    folder = bitbrains({1: every(300, 48), 2: every(300, 12, START + 3600) + every(300, 6, START + 9000)})
    drawn = [reader.cluster(folder, vms=2, rng=np.random.default_rng(seed)) for seed in range(30)]
    assert {int(one.source.split(" from ")[1].split(";")[0]) - START for one in drawn} == {3600, 7200}
    with pytest.raises(DataError, match="no window of 3600 s has 3 virtual machines in use; the most are 2"):
        reader.cluster(folder, vms=3, rng=np.random.default_rng(0))
    with pytest.raises(DataError, match="at="):
        reader.cluster(folder, vms=2)


def test_an_instant_outside_the_trace(bitbrains):
    folder = bitbrains({1: every(300, 3)})
    with pytest.raises(DataError, match=f"from {START} to {START + 600}"):
        reader.cluster(folder, at=0, vms=None)
    with pytest.raises(DataError, match="statistic is 'peak'; it must be one of mean, provisioned"):
        at_start(folder, statistic="peak")
    for window in (0, float("inf")):
        with pytest.raises(DataError, match=r"window is .*; it must be"):
            reader.cluster(folder, at=START, window=window, vms=None)


def test_folders(bitbrains, tmp_path):
    few = bitbrains({1: every(300, 1)}, part="fastStorage/2013-8")
    many = bitbrains({1: every(300, 1), 2: every(300, 1)}, part="rnd/2013-7")
    notes = tmp_path / "bitbrains" / "notes"
    notes.mkdir()
    (notes / "index.csv").write_text("not a virtual machine\n")

    def count(directory, **options):
        return len(at_start(directory, **options).cluster.users)

    assert (count(few), count(str(many.parent)), count(tmp_path)) == (1, 2, 2)  # the folder with most files
    assert count(tmp_path, part="fastStorage") == 1
    with pytest.raises(DataError, match=r"not a folder; expected a folder of <vm>\.csv"):
        count(tmp_path / "missing")
    with pytest.raises(DataError, match=r"below a folder named 'rnd/2014'; expected a folder of <vm>\.csv"):
        count(tmp_path, part="rnd/2014")
    with pytest.raises(DataError, match=r"holds no trace.*expected a folder of <vm>\.csv"):
        count(notes)
