"""The frozen set of instances: it does not change, and its matrices say what its answers are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.io import mmread

import fairopt as fo
from fairopt.app.cli import main
from fairopt.errors import DataError
from fairopt.harness.report import instances

#: Of the numbers of each cluster (`fingerprint`). A set never changes: another one has another name.
FROZEN = {
    "drf-example": (10.66821560, 10.74529690, 21.80239460),
    "drfh-figure1": (1.87941892, 5.03157290, 26.93859016),
    "pf-figure1": (16.17713183, 22.42106987, 53.09752078),
    "pf-variant": (15.70057699, 22.45263984, 53.09752078),
    "machines-30x6": (-678.11265341, -638.60492871, 675.19198707),
    "machines-100x20": (-1988.91008209, -1915.65561318, 4279.06776771),
    "users-40x60": (-590.05965177, -581.41002984, 4074.83653285),
    "dense-60x25": (732.12210151, 684.52042809, 3034.12019063),
    "dense-200x60": (1695.53525715, 1634.09411715, 20470.65559821),
    "sparse-200x60": (1696.47652247, 1619.95813404, 4507.75166845),
}


def fingerprint(cluster: fo.Cluster) -> tuple[float, ...]:
    """Two sums of logarithms of all numbers with random factors, and one that says which are 0, positive or infinite.

    Not a digest: generators use functions whose last digit depends on the processor.
    """
    arrays = (cluster.capacity, cluster.demand, cluster.weight, cluster.max_tasks, cluster.eligible)
    values = np.concatenate([np.asarray(array, dtype=float).ravel() for array in arrays])
    factors = np.random.default_rng(0).uniform(1, 2, (2, len(values)))
    logs = np.log(values, out=np.zeros(len(values)), where=(values > 0) & np.isfinite(values))
    kinds = np.where(np.isinf(values), 2.0, np.where(values > 0, 1.0, 0.0))
    return tuple(float(found) for found in (*(factors @ logs), factors[0] @ kinds))


def test_the_set_is_frozen() -> None:
    assert instances.SET == "fairopt-instances-1"
    assert list(instances.SOURCES) == list(FROZEN)
    for name, expected in FROZEN.items():
        assert fingerprint(instances.cluster_of(name)) == pytest.approx(expected, rel=0, abs=2e-8), name


def test_matrices_say_what_the_answer_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["pf-variant-alpha3", "pf-variant-psdsf", "machines-30x6-drfh"]
    assert main(["bench", "export", *chosen, "--out", str(tmp_path)]) == 0
    assert "3 instances and index.json" in capsys.readouterr().out
    index = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    assert (index["set"], [row["name"] for row in index["instances"]]) == (instances.SET, chosen)
    for row in index["instances"]:
        folder = tmp_path / row["name"]
        digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in row["files"]}
        assert digests == row["files"]
        assert row["certificate"] <= index["tolerance"]
        part = {path.stem: mmread(path) for path in folder.glob("*.mtx")}
        answer = fo.Allocation.load(folder / "answer.json")
        assert (part["A"] @ part["y"] <= part["b"] * (1 + 1e-9) + 1e-12).all()
        tasks = (part["U"] @ part["y"]).ravel()
        assert_allclose(tasks, answer.arrays.user_tasks, rtol=1e-12)
        assert part["share"].shape[0] == part["weight"].shape[0] == len(tasks)
        assert main(["check", str(folder / "answer.json")]) == 0
        if row["name"] == "pf-variant-psdsf":  # by hand, at alpha = infinity
            assert_allclose(tasks, [2, 6, 32 / 3, 16 / 3], rtol=1e-8)


def test_what_there_is_and_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "list"]) == 0
    assert capsys.readouterr().out.split() == instances.names()
    assert len(instances.names()) == len(instances.SOURCES) * len(instances.QUESTIONS)
    with pytest.raises(DataError, match="there is no instance 'none'"):
        list(instances.export(tmp_path, ["none"]))
