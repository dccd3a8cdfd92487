"""Rates of work: as data in every form, as a reason to refuse, and as a factor of demands."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fairopt as fo
from fairopt.model.cluster import Cluster
from fairopt.model.merging import Split, merge

#: GPUs of three kinds: user b needs two at once and cannot use the first kind.
GPUS = Cluster(
    [[4], [4], [8]],
    [[1], [2], [1]],
    max_tasks=[1, 2, np.inf],
    users=["a", "b", "c"],
    servers=["k80", "p100", "v100"],
    resources=["gpu"],
    rate={"a": {"v100": 3}, "b": {"k80": 0, "v100": 6}},
)


def test_a_rate_of_0_is_a_placement_constraint() -> None:
    assert_array_equal(GPUS.rate, [[1, 1, 3], [0, 1, 6], [1, 1, 1]])
    assert GPUS.eligible[1].tolist() == [False, True, True]
    assert GPUS.eligible.sum() == 8
    assert_array_equal(GPUS.monopoly_work[1], [0, 2, 24])
    assert not GPUS.replace(rate=None).constrained
    assert GPUS.with_rate("b", [1, 1, 1]).eligible.all()
    assert GPUS.select(servers=["v100", "k80"]).rate[1].tolist() == [6, 0]
    assert GPUS.replace(rate=2.0).rate.tolist() == [[2.0] * 3] * 3


@pytest.mark.parametrize("suffix", ["toml", "json", "csv"])
def test_files_keep_rates(suffix: str, tmp_path: Path) -> None:
    GPUS.save(tmp_path / f"gpus.{suffix}")
    assert Cluster.load(tmp_path / f"gpus.{suffix}") == GPUS


def test_forms_of_rates(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(GPUS)) == GPUS
    assert Cluster.from_frames(**GPUS.to_frames()) == GPUS
    assert "rate" not in GPUS.replace(rate=None).to_frames()
    assert "6.0" in repr(GPUS)
    file = tmp_path / "counts.toml"
    file.write_text(
        'servers = [{name = "v", count = 2, capacity = [1]}, {name = "k", capacity = [1]}]\n'
        "users = [{demand = [1], rate = { v = 2 }}, {demand = [1], rate = 3}]"
    )
    assert Cluster.load(file).rate.tolist() == [[2, 2, 1], [3, 3, 3]]
    servers, users = (GPUS.to_frames()[name] for name in ("servers", "users"))
    by_kind = Cluster.from_frames(servers.assign(count=2), users, rate=GPUS.to_frames()["rate"])
    assert_array_equal(by_kind.rate[1], [0, 0, 1, 1, 6, 6])
    found = fo.TSF().solve(GPUS)
    found.save(tmp_path / "answer.json")
    again = fo.Allocation.load(tmp_path / "answer.json")
    assert again.cluster == GPUS
    assert again.certificate.passes(1e-9)
    assert found.to_frame()["work"].tolist() == found.work.tolist() == (found.tasks * GPUS.rate).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ({"z": {}}, "names user 'z'"),
        ({"a": {"q": 1}}, "'q', but no server"),
        ({"a": {"k80": "fast"}}, "'fast' in column 0 .'k80'."),
        ([[1, 2], [3]], "one row per user"),
        ([[1, 2, 3]], "shape .users, servers. = .3, 3."),
        (-1, "rate -1 on 'k80'"),
        ([[1, 1, np.inf]] * 3, "rate inf on 'v100'"),
        ("fast", "rate must be numbers"),
    ],
)
def test_rates_that_are_none(rate: Any, words: str) -> None:
    with pytest.raises(fo.errors.DataError, match=words):
        GPUS.replace(rate=rate)


@pytest.mark.parametrize(
    "name", ["drf", "drfh", "asset-fairness", "ceei", "alpha-fair(alpha=2)", "fds(beta=2, lam=-1)"]
)
def test_what_is_held_is_not_divided_at_different_rates(name: str) -> None:
    mechanism = fo.mechanisms.parse(name)[0]
    with pytest.raises(fo.errors.DataError, match=r"user 'a' works at rates from 1 to 3, .* choose TSF"):
        mechanism.solve(GPUS)
    one = GPUS.replace(rate=np.array([[2.0], [0.5], [3.0]]) * np.ones(3), max_tasks=None)
    plain = mechanism.solve(one.replace(rate=None))
    assert_allclose(mechanism.solve(one).arrays.user_tasks, plain.arrays.user_tasks, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fo.properties.possible(GPUS, "SI", types=3),
        lambda: fo.game.equilibria(GPUS, 2.0),
        lambda: fo.Tree().solve(GPUS),
        lambda: fo.GuaranteedAlphaFair(1.0).solve(GPUS.replace(rate=2.0)),
        lambda: fo.AlphaPFVDS(2).game(GPUS),
        lambda: fo.TSF().solve(GPUS.replace(max_tasks=None)).sensitivity(),
    ],
)
def test_what_is_in_tasks_refuses_work(call: Any) -> None:
    with pytest.raises(fo.errors.DataError, match="rates"):
        call()


def test_merging_keeps_work() -> None:
    """Servers of equal rates, and users of proportional rates, are one."""
    cluster = Cluster(
        [[4.0], [2.0], [8.0]], [[1.0], [2.0], [1.0]], [2, 1, 1], rate=[[1, 1, 3], [2, 2, 6], [1, 1, 4]],
        max_tasks=[4, 1, np.inf],
    )  # fmt: skip
    merging = merge(cluster)
    assert merging.server_of.tolist() == [0, 0, 1]
    assert merging.user_of.tolist() == [0, 0, 1]
    split = Split.of(merging, np.arange(1.0, 5).reshape(2, 2))
    assert_allclose(split.work, cluster.work(split()))
    assert merge(cluster.with_rate("user1", [1, 1.1, 3])).trivial


@pytest.mark.parametrize("rule", [fo.TSF(), fo.AlphaFair(2, share="alone")], ids=str)
def test_work_alone_counts_where_a_user_may_not_run(rule: fo.mechanisms.Mechanism) -> None:
    """Equal servers are two if the rates differ of users that are not eligible there."""
    cluster = Cluster(
        [[8], [3], [6], [6]], [[3], [1], [4]], [2, 2, 0.5], rate=[[3, 1, 3, 1], [2, 3, 0, 0], [2, 3, 0, 0]],
        eligible=[[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 0]],
    )  # fmt: skip
    assert merge(cluster, users=False).trivial
    assert_allclose(rule.solve(cluster).work, rule.solve(cluster, engine="declarative").work, rtol=1e-5)


def test_a_user_without_tasks_keeps_its_weight_in_the_table() -> None:
    cluster = fo.Cluster([[1], [1]], [[1], [1]], rate=[[1, 2], [4, 8]], max_tasks=2, weight=[1, 3])
    shown = repr(fo.Utilitarian("task").solve(cluster)).splitlines()
    rows = {line.split()[0]: line.split() for line in shown if line.startswith("user")}
    at = rows["user"].index("weight")
    assert [rows[user][at] for user in cluster.users] == ["1", "3"]
    assert rows["user1"][1] == "0"
