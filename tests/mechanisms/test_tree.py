"""Trees of queues: against an independent filling by linear programs, what schedulers document, both checkers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from processes import ROOT
from scipy.optimize import linprog

import fairopt as fo
from fairopt.errors import DataError

Array = np.ndarray[Any, Any]


def drawn(seed: int) -> tuple[fo.Cluster, dict[str, dict[str, Any]], str]:
    """A small cluster with placement, zeros and limits below up to four queues, nested, with quotas and priorities."""
    rng = np.random.default_rng(seed)
    users, servers, resources, groups = (int(rng.integers(*one)) for one in ((3, 9), (1, 4), (1, 4), (1, 5)))
    demand = rng.uniform(0.1, 2, (users, resources))
    if resources > 1:
        zero = rng.random((users, resources)) < 0.3 * (seed % 3 == 0)
        zero[np.arange(users), rng.integers(resources, size=users)] = False
        demand = np.where(zero, 0.0, demand)
    eligible = rng.random((users, servers)) < 0.6
    eligible[np.arange(users), rng.integers(servers, size=users)] = True
    wants = np.where(rng.random(users) < 0.4, rng.uniform(0.1, 2, users), np.inf)
    cluster = fo.Cluster(rng.uniform(3, 9, (servers, resources)), demand, rng.uniform(0.5, 3, users), eligible, wants)
    tree: dict[str, dict[str, Any]] = {}
    for k in range(groups):
        tree[f"q{k}"] = {"weight": float(rng.uniform(0.5, 3)), "priority": float(rng.random() < 0.15)}
        if k and rng.random() < 0.4:
            tree[f"q{k}"]["parent"] = f"q{rng.integers(k)}"
    tree |= {user: {"parent": f"q{rng.integers(groups)}"} for user in cluster.users if rng.random() < 0.85}
    for entry in tree.values():
        for kind, most in (("limit", 3.0), ("quota", 0.5)):
            if rng.random() < 0.25:
                entry[kind] = {cluster.resources[rng.integers(resources)]: float(rng.uniform(0.1, most))}
    return cluster, tree, ("sum", "vector")[seed % 2]


class Reference:
    """Progressive filling as it is defined, a linear program for each stage, and one for each user that it stops."""

    def __init__(self, cluster: fo.Cluster, tree: dict[str, dict[str, Any]], combine: str) -> None:
        self.cluster, self.combine = cluster, combine
        self.nodes: dict[str, dict[str, Any]] = {user: {} for user in cluster.users} | tree
        self.parts = cluster.demand / cluster.dominant_share_per_task[:, None] / cluster.pooled_capacity

    def leaves(self, name: str | None) -> list[int]:
        if name in self.cluster.users:
            return [self.cluster.users.index(name)]
        below = [child for child, node in self.nodes.items() if node.get("parent") == name]
        return [n for child in below for n in self.leaves(child)]

    def depth(self, name: str | None) -> int:
        return 0 if name is None else 1 + self.depth(self.nodes[name].get("parent"))

    def rise(self, name: str | None, may: set[int]) -> tuple[dict[int, float], Array]:
        if name in self.cluster.users:
            n = self.cluster.users.index(name)
            return {n: 1.0}, self.parts[n]
        below = [k for k, node in self.nodes.items() if node.get("parent") == name and may & set(self.leaves(k))]
        first = max(self.nodes[k].get("priority", 0) for k in below)
        rates: dict[int, float] = {}
        vector, total = np.zeros(self.parts.shape[1]), 0.0
        for k in (k for k in below if self.nodes[k].get("priority", 0) == first):
            inner, part = self.rise(k, may)
            own = self.cluster.weight[self.cluster.users.index(k)] if k in self.cluster.users else 1.0
            weight = self.nodes[k].get("weight", own)
            rates |= {n: weight * rate for n, rate in inner.items()}
            vector, total = vector + weight * part, total + weight
        norm = total if self.combine == "sum" else vector.max()
        return {n: rate / norm for n, rate in rates.items()}, vector / norm

    def furthest(self, tasks: Array, rate: Array) -> float:
        cluster = self.cluster
        pairs = np.argwhere(cluster.usable)
        rows = np.array([
            [cluster.demand[n, r] * (j == i) for n, j in pairs] + [0.0] for i, r in np.ndindex(cluster.capacity.shape)
        ])  # fmt: skip
        equal = np.column_stack([np.arange(len(rate))[:, None] == pairs[:, 0], -rate])
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        cost = np.append(np.zeros(len(pairs)), -1.0)
        found = linprog(cost, rows, cluster.capacity.ravel(), equal, tasks, method="highs", options=options)
        return float(found.x[-1]) if found.status == 0 else 0.0

    def bounds(self, kind: str, depth: int | None = None) -> list[tuple[list[int], Array, float]]:
        return [
            (users := self.leaves(name), self.cluster.demand[users, self.cluster.resources.index(r)], most)
            for name, node in self.nodes.items() if depth in (None, self.depth(name))
            for r, most in node.get(kind, {}).items()
        ]  # fmt: skip

    def tasks(self) -> Array:
        x, wants = np.zeros(len(self.cluster.users)), self.cluster.max_tasks
        alive = set(np.flatnonzero(self.cluster.runnable).tolist())
        depths = {self.depth(name) for name, node in self.nodes.items() if node.get("quota")}
        for depth in [*sorted(depths, reverse=True), None]:
            while True:
                quota = [] if depth is None else self.bounds("quota", depth)
                may = alive & {n for users, need, _ in quota for n, d in zip(users, need, strict=True) if d}
                may = set(alive) if depth is None else may
                for users, need, most in quota:
                    if x[users] @ need >= most * (1 - 1e-9):
                        may -= {n for n, d in zip(users, need, strict=True) if d}
                if not may:
                    break
                rate = np.zeros(len(x))
                for n, one in self.rise(None, may)[0].items():
                    rate[n] = one / self.cluster.dominant_share_per_task[n]
                limits = self.bounds("limit")
                room = [(most - x[users] @ need, rate[users] @ need) for users, need, most in [*quota, *limits]]
                room += [(wants[n] - x[n], rate[n]) for n in may]
                furthest = self.furthest(x * (1 - 1e-10), rate)
                step = max(min([furthest, *(left / speed for left, speed in room if speed > 0)]), 0.0)
                x = x + step * rate
                alive -= {n for n in alive if x[n] >= wants[n] * (1 - 1e-9)}
                for users, need, most in limits:
                    if x[users] @ need >= most * (1 - 1e-9):
                        alive -= {n for n, d in zip(users, need, strict=True) if d}
                if step >= furthest - 1e-8:
                    units = np.diag(np.maximum(x, 1e-3))
                    alive -= {n for n in alive if self.furthest(x * (1 - 1e-10), units[n]) < 1e-7}
        return x


@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_filling_that_is_defined_and_both_checkers_say_so(seed: int, tmp_path: Path) -> None:
    cluster, tree, combine = drawn(seed)
    found = fo.Tree(tree, combine=combine).solve(cluster)
    assert found.certificate.residual < 1e-9
    expected = Reference(cluster, tree, combine).tasks()
    assert found.arrays.user_tasks == pytest.approx(expected, rel=1e-6, abs=1e-6 * expected.max())
    if seed % 6:
        return  # processes take a while
    file = tmp_path / "tree.json"
    found.save(file)
    again = fo.Allocation.load(file)
    assert again.certificate.residual == pytest.approx(found.certificate.residual, abs=1e-9)
    said = json.loads(file.read_text())
    said["tasks"][int(expected.argmax())] = [0.99 * one for one in said["tasks"][int(expected.argmax())]]
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps(said))
    assert fo.Allocation.load(wrong).certificate.residual > 9e-3
    for path, code in ((file, 0), (wrong, 1)):
        assert subprocess.run([sys.executable, ROOT / "tools/check.py", path], capture_output=True).returncode == code


def test_prices_far_apart_prove_nothing_by_rounding(tmp_path: Path) -> None:
    """The second user could have twice its tasks; at a price of 1e-20 what it lacks is below a rounding error."""
    cluster = fo.Cluster([[1, 1]], [[1, 0], [0, 1]], weight=[1, 0.1])
    file = tmp_path / "lie.json"
    fo.Tree().solve(cluster).save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tasks": [[1], [0.5]], "log_prices": [[0, -46]]}))
    assert fo.Allocation.load(file).certificate.residual == pytest.approx(1)
    assert subprocess.run([sys.executable, ROOT / "tools/check.py", file], capture_output=True).returncode == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_flat_tree_is_drfh(seed: int) -> None:
    cluster, _, _ = drawn(seed)
    expected = fo.DRFH().solve(cluster).arrays.user_tasks
    assert fo.Tree().solve(cluster).arrays.user_tasks == pytest.approx(expected, rel=1e-9)


def wide(seed: int) -> tuple[fo.Cluster, dict[str, dict[str, Any]]]:
    """110 different servers, 3 of which each of 24 users may use, below 6 queues, two of them nested."""
    rng = np.random.default_rng(seed)
    eligible = np.zeros((24, 110), dtype=bool)
    for row in eligible:
        row[rng.choice(16 + 94 * seed, 3, replace=False)] = True
    demand, wants = rng.gamma(2, 0.5, (24, 2)) + 0.05, np.where(rng.random(24) < 0.3, rng.uniform(0.2, 2, 24), np.inf)
    cluster = fo.Cluster(rng.gamma(4, 0.25, (110, 2)) + 0.05, demand, rng.uniform(0.5, 3, 24), eligible, wants)
    tree: dict[str, dict[str, Any]] = {f"q{k}": {"weight": float(rng.uniform(0.5, 3))} for k in range(6)}
    tree["q4"]["parent"] = tree["q5"]["parent"] = "q0"
    return cluster, tree | {user: {"parent": f"q{rng.integers(6)}"} for user in cluster.users[6:]}


@pytest.mark.parametrize("seed", range(2))
def test_trees_on_a_hundred_different_servers(seed: int) -> None:
    """Without queues DRFH; with them the same in any order and units of resources."""
    cluster, tree = wide(seed)
    assert fo.Tree().solve(cluster).arrays.user_tasks == pytest.approx(
        fo.DRFH().solve(cluster).arrays.user_tasks, rel=1e-8
    )
    found = fo.Tree(tree, combine=("sum", "vector")[seed]).solve(cluster)
    assert found.certificate.residual < 1e-7
    rng, units = np.random.default_rng(seed), [1024.0, 1e-6]
    n, m = rng.permutation(24), rng.permutation(110)
    again = fo.Cluster(
        cluster.capacity[m] * units, cluster.demand[n] * units, cluster.weight[n], cluster.eligible[n][:, m],
        cluster.max_tasks[n], users=[cluster.users[k] for k in n],
    )  # fmt: skip
    tasks = fo.Tree(dict(reversed(tree.items())), combine=("sum", "vector")[seed]).solve(again).arrays.user_tasks
    assert tasks == pytest.approx(found.arrays.user_tasks[n], rel=1e-7)


GPUS = fo.Cluster([[11]], [[1], [1]], resources=["gpu"], users=["a", "b"])


@pytest.mark.parametrize(
    ("tree", "cluster", "tasks"),
    [
        # Slurm's shares compare siblings only: 80 to 20, whatever the members of the smaller account have.
        (
            {"phys": {"weight": 80}, "bio": {"weight": 20}, "l1": {"parent": "phys"}, "l2": {"parent": "phys"}}
            | {"l3": {"parent": "bio", "weight": 100}},
            fo.Cluster([[10]], [[1]] * 3, users=["l1", "l2", "l3"]),
            [4, 4, 2],
        ),
        # KAI: quotas, then the rest by weight; whole GPUs are 6 and 5, 3 and 8.
        ({"a": {"quota": {"gpu": 2}}, "b": {"quota": {"gpu": 2}}}, GPUS, [5.5, 5.5]),
        ({"a": {"quota": {"gpu": 2}}, "b": {"quota": {"gpu": 2}, "weight": 4}}, GPUS, [3.4, 7.6]),
        # Kueue #3779: who has no quota borrows what others leave.
        (
            {"A": {"quota": {"cpu": 150}}, "B": {"quota": {"cpu": 150}}, "BE": {}},
            fo.Cluster([[300]], [[1]] * 3, None, None, [300, 0, 50], ["cpu"], ["A", "B", "BE"]),
            [250, 0, 50],
        ),
        # The quota of a queue is met before the quota of the queue above it.
        (
            {"q": {"quota": {"gpu": 4}}, "a": {"parent": "q", "quota": {"gpu": 3}}, "b": {"parent": "q"}},
            fo.Cluster([[6]], [[1]] * 2, resources=["gpu"], users=["a", "b"]),
            [4.5, 1.5],
        ),
        # A quota of 0 is none: whoever has no tasks is not held by it.
        ({"a": {"quota": {"gpu": 5}}, "b": {"quota": {"gpu": 0}, "priority": -1}}, GPUS, [11, 0]),
        # A priority among siblings, and a limit of the queue above.
        (
            {"q": {"limit": {"gpu": 4}}, "a": {"parent": "q", "priority": 1}, "b": {"parent": "q"}},
            fo.Cluster([[11]], [[1]] * 3, None, None, [3, 9, 99], ["gpu"], ["a", "b", "c"]),
            [3, 1, 7],
        ),
        # A limit of a queue whose users want nothing.
        ({"q": {"limit": {"gpu": 1}}, "a": {"parent": "q"}}, GPUS.replace(max_tasks=[0, 0]), [0, 0]),
        # Limits that leave nothing to anybody, on two servers.
        (
            {"q": {"limit": {"gpu": 0}}, "a": {"parent": "q"}, "b": {"parent": "q"}},
            fo.Cluster([[3], [4]], [[1], [2]], None, [[1, 1], [1, 0]], None, ["gpu"], users=["a", "b"]),
            [0, 0],
        ),
        # KAI, by resources: entitles both to half of each; dominant shares are 64/19 and 240/19.
        ({}, fo.Cluster([[128, 16]], [[30, 1], [2, 1]]), [64 / 19, 240 / 19]),
    ],
)
def test_what_schedulers_document(tree: dict[str, Any], cluster: fo.Cluster, tasks: list[float]) -> None:
    found = fo.Tree(tree).solve(cluster)
    assert found.arrays.user_tasks == pytest.approx(tasks, rel=1e-12)
    assert found.certificate.passes(1e-12)


def test_a_queue_of_vectors_grows_by_its_dominant_share() -> None:
    """Two users that need different resources take half of each together: both have 1/2, beside a third with 1/2."""
    cluster = fo.Cluster([[10, 10]], [[1, 0], [0, 1], [1, 1]], users=["a", "b", "c"])
    tree = {"q": {}, "a": {"parent": "q"}, "b": {"parent": "q"}}
    assert fo.Tree(tree, combine="vector").solve(cluster).arrays.user_tasks == pytest.approx([5, 5, 5])
    assert fo.Tree(tree).solve(cluster).arrays.user_tasks == pytest.approx([10 / 3, 10 / 3, 20 / 3])


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"a": {"quota": {"gpu": 6}}, "b": {"quota": {"gpu": 6}}},
            r"quotas cannot be met together: .*'gpu' of queue 'a'",
        ),
        ({"a": {"parent": "q"}}, "queue 'a' has the parent 'q', which is no queue"),
        ({"q": {"parent": "r"}, "r": {"parent": "q"}}, "queue 'q' is below itself: q -> r -> q"),
        ({"q": {"parent": "a"}, "a": {}}, "'a' is a user of the cluster, and the parent of a queue"),
        ({"q": {"weight": 0}}, "queue 'q' has the weight 0; give it a lower priority"),
        ({"q": {"wait": 1}}, "queue 'q' has wait; its entries are parent, weight"),
        ({"a": {"quota": {"cpu": 6}}}, "the quota of queue 'a' is of 'cpu', no resource here; known: gpu"),
        ({"a": {"limit": {"gpu": -1}}}, "the limit of gpu of queue 'a' is -1; it must be a finite number >= 0"),
    ],
)
def test_a_tree_that_cannot_be_is_an_error_that_names_the_queue(tree: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        fo.Tree(tree).solve(GPUS)


def test_trees_come_from_frames_and_files(tmp_path: Path) -> None:
    expected = fo.Queues({"lab": {"weight": 3, "quota": {"gpu": 4}}, "a": {"parent": "lab", "priority": 1}})
    frame = pd.DataFrame(
        {"parent": ["", "lab"], "weight": [3, np.nan], "priority": [np.nan, 1], "quota gpu": [4, np.nan]}, ["lab", "a"]
    )
    assert fo.Queues.from_frame(frame) == expected
    file = tmp_path / "tree.toml"
    file.write_text("[lab]\nweight = 3\nquota = { gpu = 4 }\n[a]\nparent = 'lab'\npriority = 1\n")
    assert fo.Queues.load(file) == expected
    assert fo.Queues(expected.to_dict()) == expected
    [from_text] = fo.mechanisms.parse(f"tree(queues={str(file)!r}, combine=vector)")
    assert from_text == fo.Tree(expected, combine="vector")
    assert fo.Tree(expected).solve(GPUS).user_tasks.to_dict() == pytest.approx({"a": 9.25, "b": 1.75})
