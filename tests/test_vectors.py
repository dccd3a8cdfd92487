"""Conformance vectors: answers in fractions, by mechanisms and by readers of other languages; mistakes of others."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import make_vectors as vectors
import numpy as np
import pytest
from processes import ROOT

import fairopt as fo
from fairopt.certificates import rational

TEXT = {kind: (ROOT / "vectors" / f"{kind}.txt").read_text(encoding="utf-8") for kind in vectors.KINDS}
VECTORS = {kind: vectors.parse(text) for kind, text in TEXT.items()}
Tasks = dict[str, Fraction]


@pytest.mark.parametrize("kind", vectors.KINDS)
def test_they_are_what_the_command_writes(kind: str) -> None:
    assert len(VECTORS[kind]) >= 40
    assert len({one.name for one in VECTORS[kind]}) == len(VECTORS[kind])
    without = "\n".join(line.partition(" =")[0] for line in TEXT[kind].splitlines())
    assert vectors.build(kind, without) == (
        TEXT[kind], (ROOT / "vectors" / f"{kind}.json").read_text(encoding="utf-8")
    )  # fmt: skip


def stopped(one: vectors.Vector, tasks: Tasks) -> set[str]:
    """Users that some bound stops at these tasks, which are feasible."""
    rows = [(row, vectors.used(row, tasks)) for row in vectors.bounds(one)]
    assert all(used <= row[1] for row, used in rows), one.name
    return {user for row, used in rows if used == row[1] for user in row[0]}


@pytest.mark.parametrize("kind", vectors.KINDS)
def test_fractions_prove_them(kind: str) -> None:
    """Users rise at the tree's rates until each has its tasks, and at this moment something stops it, exactly."""
    for one in VECTORS[kind]:
        assert stopped(one, one.tasks) == {*one.users}, one.name
        tasks = dict.fromkeys(one.users, Fraction(0))
        while not any(node.quota for node in one.nodes.values()):
            rising = {user for user in one.users if tasks[user] < one.tasks[user]}
            assert {user for user in one.users if user not in rising and tasks[user]} <= stopped(one, tasks), one.name
            if not rising:
                break
            rate = vectors.rates(one, rising)
            step = min((one.tasks[user] - tasks[user]) / rate[user] for user in rising if rate[user])
            tasks = {user: have + step * rate[user] for user, have in tasks.items()}


@pytest.mark.parametrize("kind", ["drf", "weighted"])
def test_certificates_agree_in_fractions(kind: str) -> None:
    for one in VECTORS[kind]:
        nodes, wants = [*one.nodes.values()], [np.inf if n.wants is None else n.wants for n in one.nodes.values()]
        rate = [node.weight / (one.share(user, Fraction(1)) or 1) for user, node in one.nodes.items()]
        tables = [one.capacity], [node.demand for node in nodes], rate, wants
        capacity, demand, rates, limits = (np.array(table, dtype=object) for table in tables)
        usable = (limits > 0) & ((demand == 0) | (capacity > 0)).all(axis=1)
        found = rational.optimum(capacity, demand, usable[:, None], rates, limits)
        assert found is not None
        assert found.tasks[:, 0].tolist() == [one.tasks[user] for user in one.users], one.name


@pytest.mark.parametrize("kind", vectors.KINDS)
def test_mechanisms_agree(kind: str) -> None:
    for one in VECTORS[kind]:
        nodes = [one.nodes[user] for user in one.users]
        resources = [f"r{k}" for k in range(len(one.capacity))]
        wants = [np.inf if node.wants is None else node.wants for node in nodes]
        tables = [one.capacity], [node.demand for node in nodes], [node.weight for node in nodes], wants
        capacity, demand, weight, limits = (np.array(table, dtype=float) for table in tables)
        cluster = fo.Cluster(capacity, demand, weight, None, limits, resources, one.users)
        tree: dict[str, fo.Queue] = {
            name: fo.Queue(
                node.parent, float(node.weight), float(node.priority),
                *({resources[r]: float(most) for r, most in amounts.items()} for amounts in (node.quota, node.limit)),
            )
            for name, node in one.nodes.items()
        }  # fmt: skip
        mechanism = fo.Tree(tree, combine=one.combine) if kind == "queues" else fo.DRF()
        tasks = mechanism.solve(cluster).arrays.user_tasks
        expected = np.array([one.tasks[user] for user in one.users], dtype=float)
        np.testing.assert_allclose(tasks, expected, rtol=1e-9, err_msg=one.name)


def with_weights(weight: Callable[[Fraction], Fraction], one: vectors.Vector) -> Tasks:
    nodes = {name: replace(node, weight=weight(node.weight)) for name, node in one.nodes.items()}
    return vectors.fill(replace(one, nodes=nodes))


def over_total(one: vectors.Vector) -> Tasks:
    """Shares divided by their sum."""
    total = sum(one.share(user, tasks) for user, tasks in one.tasks.items())
    return {user: tasks / total for user, tasks in vectors.fill(one).items()}


#: What Armada computed before two pull requests, and the inverse, which a unit test of the first asserted.
MISTAKES: dict[str, Callable[[vectors.Vector], Tasks]] = {
    "armada-4248-unweighted": partial(with_weights, lambda _: Fraction(1)),
    "armada-4248-below-share": partial(with_weights, lambda weight: 1 / weight),
    "armada-3899-not-full": over_total,
    "armada-3899-more-than-full": over_total,
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str) -> None:
    wrong = {
        kind: {one.name for one in VECTORS[kind] if MISTAKES[name](one) != one.tasks} for kind in ("drf", "weighted")
    }
    assert name in wrong["weighted"]
    assert ("4248" in name) == (not wrong["drf"])  # with equal weights nothing is seen of a mistake about weights


#: By file of a reader: the compiler, and how the program is made and run in a folder.
READERS = {
    "reader.rs": ("rustc", ["rustc", "-o", "reader", "{source}"], ["./reader"]),
    "Reader.java": (
        "javac",
        ["javac", "-d", ".", "{source}"],
        ["java", "-XX:TieredStopAtLevel=1", "-cp", ".", "Reader"],
    ),
    "reader.go": ("go", ["go", "build", "-o", "reader", "{source}"], ["./reader"]),
}


@pytest.mark.parametrize("file", READERS)
def test_readers(file: str, tmp_path: Path) -> None:
    """Other languages find the same shares, and name the vectors whose answers are of somebody's mistake."""
    compiler, make, run = READERS[file]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = str(ROOT / "vectors" / file)
    subprocess.run([word.format(source=source) for word in make], cwd=tmp_path, check=True)
    found = subprocess.run(
        [*run, *(str(ROOT / "vectors" / f"{kind}.txt") for kind in vectors.KINDS)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    tried = [
        one for kind in vectors.KINDS for one in VECTORS[kind]
        if one.combine == "sum" and not any(node.limit or node.quota or node.priority for node in one.nodes.values())
    ]  # fmt: skip
    total = sum(map(len, VECTORS.values()))
    assert (found.returncode, found.stdout) == (0, f"{len(tried)} agree, 0 differ, {total - len(tried)} not tried\n")
    for name, mistaken in MISTAKES.items():
        (tmp_path / "wrong.txt").write_text(vectors.build("weighted", TEXT["weighted"], mistaken)[0], encoding="utf-8")
        found = subprocess.run([*run, "wrong.txt"], cwd=tmp_path, capture_output=True, text=True)
        assert found.returncode == 1
        assert name in {line.split()[0] for line in found.stdout.splitlines()}
