"""The generators follow their tables, and their generator of randomness alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from importlib.resources import files

import calibrate
import numpy as np
import pytest
from made_up import kubernetes_like, slurm_like

import fairopt as fo
from fairopt.errors import DataError
from fairopt.workloads import alibaba_like, bitbrains_like, google_like, lognormal, pf_servers
from fairopt.workloads._draw import PROBABILITY, measured

LARGE = 20_000


def sample(name, rng):
    """(rows, columns) of a large sample, made through the public generator, and the committed table."""
    table = json.loads(files("fairopt.workloads").joinpath("data", f"{name}.json").read_text())
    if name == "bitbrains":
        cluster = bitbrains_like(rng, vms=LARGE, servers=1, split_disk=True).cluster
        return cluster.demand, table
    generator = google_like if name == "google" else alibaba_like
    cluster = generator(rng, users=LARGE, servers=10, max_tasks=True).cluster
    return np.column_stack([cluster.demand, cluster.max_tasks]), table


@pytest.mark.parametrize("name", ["google", "bitbrains", "alibaba"])
def test_a_large_sample_has_the_measured_marginals_and_correlations(name, rng):
    rows, table = sample(name, rng)
    np.testing.assert_allclose((rows == 0).mean(axis=0), table["zero"], atol=0.012)
    for name_of, column, quantiles in zip(table["columns"], rows.T, table["quantiles"], strict=True):
        drawn = column[column > 0]
        # A drawn value's place among the measured quantiles is its probability, give or take the sampling error;
        # where quantiles are equal, a value has a range of places.
        for p, quantile in zip(PROBABILITY[1:-1], quantiles[1:-1], strict=True):
            slack = 0.51 if name_of == "tasks" else 1e-5 * quantile  # tasks are rounded
            assert (drawn < quantile - slack).mean() <= p + 0.015
            assert (drawn <= quantile + slack).mean() >= p - 0.015
        assert drawn.min() >= quantiles[0] * (1 - 1e-9)
        assert drawn.max() <= quantiles[-1] * (1 + 1e-9)
    np.testing.assert_allclose(calibrate.rank_correlations(rows), table["rank_correlation"], atol=0.035)


@pytest.mark.parametrize("generator", [google_like, alibaba_like])
def test_sizes_and_limits(generator, rng):
    cluster = generator(rng, users=7, servers=3).cluster
    assert cluster.shape[:2] == (7, 3)
    assert np.isinf(cluster.max_tasks).all()
    limits = generator(rng, users=500, servers=3, max_tasks=True).cluster.max_tasks
    assert (limits == np.maximum(limits.round(), 1)).all()
    for arguments in ({"users": 0}, {"servers": 0}, {"users": 1.5}):
        with pytest.raises(DataError, match="whole number, at least 1"):
            generator(rng, **arguments)


def test_google_servers_come_from_the_table(rng):
    table = measured("google")[1]["servers"]
    assert sum(number for *_, number in table) == 12583
    capacity = google_like(rng, users=1, servers=LARGE).cluster.capacity
    counts = Counter(map(tuple, capacity))
    assert set(counts) <= {(cpu, memory) for cpu, memory, _ in table}
    for cpu, memory, number in table:
        assert counts[cpu, memory] / LARGE == pytest.approx(number / 12583, abs=0.015)


def test_bitbrains_servers_and_resources(rng):
    cluster = bitbrains_like(rng, vms=9, servers=13).cluster
    np.testing.assert_array_equal(cluster.capacity, pf_servers(13).capacity)
    assert cluster.resources == pf_servers(13).resources
    split = bitbrains_like(np.random.default_rng(5), vms=9, split_disk=True).cluster
    whole = bitbrains_like(np.random.default_rng(5), vms=9).cluster
    np.testing.assert_allclose(whole.demand[:, 2], split.demand[:, 2:4].sum(axis=1))


def test_alibaba_placement(rng):
    for _ in range(5):  # nobody is bound to models that were not drawn
        assert alibaba_like(rng, users=50, servers=4).cluster.eligible.any(axis=1).all()
    cluster = alibaba_like(rng, users=2000, servers=300).cluster
    model = np.array([name.split("-")[0] for name in cluster.servers])
    gpu = cluster.demand[:, 2] > 0
    assert cluster.runnable.all()
    assert cluster.eligible[~gpu].all()
    table = dict(measured("alibaba")[1]["specs"])
    anywhere = cluster.eligible[gpu].all(axis=1).mean()
    assert anywhere == pytest.approx(table["any"] / sum(table.values()), abs=0.05)
    for kind in set(model):  # nodes of one kind are alike
        of_kind = cluster.eligible[:, model == kind]
        assert (of_kind == of_kind[:, :1]).all()


def test_lognormal_clusters_have_the_density_asked_for_and_nobody_is_left_out(rng):
    cluster = lognormal(rng, users=400, servers=50, resources=3, density=0.1).cluster
    assert cluster.shape == (400, 50, 3)
    assert cluster.eligible.mean() == pytest.approx(0.1, abs=0.02)
    assert cluster.runnable.all()
    assert lognormal(rng, users=5, servers=2).cluster.eligible.all()
    for wrong in ({"density": 0}, {"density": 1.5}, {"sigma": -1}, {"sigma": 1e9}, {"users": 0}):
        with pytest.raises(DataError):
            lognormal(rng, **wrong)


@pytest.mark.parametrize(
    ("make", "size"), [(kubernetes_like, (10, 600)), (slurm_like, (20, 300)), (slurm_like, (20, 3000))]
)
def test_what_runs_on_a_made_up_cluster_has_room_where_it_may_run(make, size: tuple[int, int]) -> None:
    """On every node, of all that is allocatable; many wait."""
    snapshot = make(np.random.default_rng(3), *size)
    running, report = snapshot.running, snapshot.report
    assert running is not None
    assert running.certificate.passes(1e-9)
    assert running.user_tasks.sum() > 100
    assert "pods running" not in report or running.user_tasks.sum() == report["pods running"]
    assert report.get("pods pending", report.get("jobs pending", 0)) > 100 or size[1] == 300
    assert fo.DRFH().solve(snapshot.cluster).certificate.passes(1e-6)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("google-like?users=40&servers=30&density=0.3", lambda name: name.split("-")[0]),
        ("google-like?users=40&servers=5&density=0.3&by=machine", lambda name: name),
        ("bitbrains-like?vms=40&servers=18&density=0.3", lambda name: name.split("-")[1]),
        ("bitbrains-like?vms=40&servers=18&density=0.3&by=location", lambda name: name.split("-")[2]),
    ],
)
def test_placement_is_by_kind_of_server(source: str, kind: Callable[[str], str]) -> None:
    """Everybody may use all servers of one kind and, as often as asked for, those of another; users stay the same."""
    cluster, everywhere = (fo.open_source(f"{text}&seed=3").cluster for text in (source, source.replace("0.3", "1")))
    kinds = np.array([kind(name) for name in cluster.servers])
    of_kinds = np.array([cluster.eligible[:, kinds == one].mean(axis=1) for one in np.unique(kinds)])
    assert np.isin(of_kinds, (0, 1)).all()
    assert of_kinds.any(axis=0).all()
    expected = (1 + 0.3 * (len(of_kinds) - 1)) / len(of_kinds)
    assert abs(of_kinds.mean() - expected) < 4 * (0.25 / of_kinds.size) ** 0.5
    assert (cluster.demand == everywhere.demand).all()
    assert everywhere.eligible.all()


def test_days_with_placement_leave_no_job_without_a_server() -> None:
    day, everywhere = (
        fo.open_workload(f"google-day?tasks=300&users=20&servers=20{more}&seed=2") for more in ("&density=0.3", "")
    )
    assert 0.2 < day.eligible.mean() < 0.8
    assert day.fits.all()
    assert everywhere.eligible.all()
    assert (day.duration == everywhere.duration).all()
