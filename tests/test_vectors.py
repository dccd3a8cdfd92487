"""Conformance vectors: answers in fractions, by mechanisms and by readers of other languages; mistakes of others."""

from __future__ import annotations

import math
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import make_vectors as vectors
import numpy as np
import pytest
from processes import ROOT

import fairopt as fo

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


def must_stop(one: vectors.Vector) -> set[str]:
    """The users that a bound stops at each event when users rise at the tree's rates to the tasks of the answer.

    Nothing is divided by a bound: what is exhausted only has to be so, exactly, when a user has its tasks.
    """
    hard, stopped, rising = vectors.bounds(one), set[str](), {user for user in one.users if one.tasks[user]}
    tasks = dict.fromkeys(one.users, Fraction(0))
    while True:
        for need, bound in hard:
            used = sum(tasks[user] * each for user, each in need.items())
            assert used <= bound, one.name
            stopped |= {user for user in need if used == bound and tasks[user] == one.tasks[user]}
        rising = {user for user in rising if tasks[user] < one.tasks[user]}
        if not rising:
            return stopped
        assert not rising & stopped
        rate = vectors.rates(one, rising)
        step = min((one.tasks[user] - tasks[user]) / rate[user] for user in rising if rate[user])
        tasks = {user: have + step * rate[user] for user, have in tasks.items()}
        late = {user for user in rising if tasks[user] == one.tasks[user]}
        full = {
            user for need, bound in hard if sum(tasks[k] * each for k, each in need.items()) == bound for user in need
        }
        assert late <= full, f"{one.name}: {late - full} could go on"


@pytest.mark.parametrize("kind", vectors.KINDS)
def test_fractions_prove_them(kind: str) -> None:
    for one in VECTORS[kind]:
        assert vectors.fill(one) == one.tasks, one.name  # the package's own arithmetic, where all are siblings
        if not any(node.quota for node in one.nodes.values()):
            assert must_stop(one) == {*one.users}, one.name


@pytest.mark.parametrize("kind", vectors.KINDS)
def test_mechanisms_agree(kind: str) -> None:
    for one in VECTORS[kind]:
        nodes = [one.nodes[user] for user in one.users]
        resources = [f"r{k}" for k in range(len(one.capacity))]
        cluster = fo.Cluster(
            [[float(c) for c in one.capacity]],
            [[float(d) for d in node.demand] for node in nodes],
            [float(node.weight) for node in nodes],
            None,
            [float(node.wants) for node in nodes],
            resources,
            one.users,
        )
        tree: dict[str, fo.Queue] = {
            name: fo.Queue(
                None if node.parent == "-" else node.parent, float(node.weight), float(node.priority),
                *({resources[r]: float(most) for r, most in amounts.items()} for amounts in (node.quota, node.limit)),
            )
            for name, node in one.nodes.items()
        }  # fmt: skip
        mechanism = fo.Tree(tree, combine=one.combine) if kind == "queues" else fo.DRF()
        tasks = mechanism.solve(cluster).arrays.user_tasks
        np.testing.assert_allclose(tasks, [float(one.tasks[user]) for user in one.users], rtol=1e-9, err_msg=one.name)


def with_weights(weight: Callable[[Fraction], Fraction]) -> Callable[[vectors.Vector], Tasks]:
    def filled(one: vectors.Vector) -> Tasks:
        nodes = {name: replace(node, weight=weight(node.weight)) for name, node in one.nodes.items()}
        return vectors.fill(replace(one, nodes=nodes))

    return filled


def over_total(one: vectors.Vector) -> Tasks:
    """Shares divided by their sum."""
    tasks = vectors.fill(one)
    total = sum(one.share(*each) for each in tasks.items()) or Fraction(1)
    return {user: have / total for user, have in tasks.items()}


#: What Armada computed before two pull requests, and the inverse, which a unit test of the first asserted.
MISTAKES = {
    "unweighted": (with_weights(lambda _: Fraction(1)), {"armada-4248-unweighted", "armada-4248-below-share"}),
    "inverse": (with_weights(lambda weight: 1 / weight), {"armada-4248-unweighted", "armada-4248-below-share"}),
    "over the total": (over_total, {"armada-3899-not-full", "armada-3899-more-than-full"}),
}


def stated(one: vectors.Vector, tasks: Tasks) -> str:
    """The lines of a flat vector with these answers."""
    lines = [f"vector {one.name}", f"capacity {' '.join(map(str, one.capacity))}"]
    for user, node in one.nodes.items():
        wants = "-" if node.wants == math.inf else node.wants
        demand = " ".join(map(str, node.demand))
        lines.append(f"user {user} - {node.weight} {wants} {demand} = {tasks[user]} {one.share(user, tasks[user])}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_caught(name: str) -> None:
    mistaken, expected = MISTAKES[name]
    assert expected <= {one.name for one in VECTORS["weighted"] if mistaken(one) != one.tasks}
    equal = [one for one in VECTORS["drf"] if mistaken(one) != one.tasks]
    assert (not equal) == (name != "over the total")  # with equal weights nothing is seen of the first mistake


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
    wrong, names = "", set[str]()
    for mistaken, expected in MISTAKES.values():
        wrong += "".join(stated(one, mistaken(one)) for one in VECTORS["weighted"] if one.name in expected)
        names |= expected
    (tmp_path / "wrong.txt").write_text(wrong, encoding="utf-8")
    found = subprocess.run([*run, "wrong.txt"], cwd=tmp_path, capture_output=True, text=True)
    *said, last = found.stdout.splitlines()
    assert (found.returncode, last) == (1, "0 agree, 6 differ, 0 not tried")
    assert {line.split()[0] for line in said} == names
