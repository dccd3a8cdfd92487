"""The frozen set of instances: it does not change, and its matrices say what its answers are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmread

import fairopt as fo
from fairopt.cli import main
from fairopt.errors import DataError
from fairopt.report import instances

#: Of the numbers of each cluster, to twelve digits. A set never changes: another one has another name.
FROZEN = {
    "drf-example": "6991a95144f8016e",
    "drfh-figure1": "fc4811b09b40de8c",
    "pf-figure1": "c5fbe20ec7eca69e",
    "pf-variant": "450b82951112ab9d",
    "machines-30x6": "bd76ed7e3d7528cd",
    "machines-100x20": "04723303ddafbaf1",
    "users-40x60": "ea31df84f06af8e5",
    "dense-60x25": "26d8c14cc0a7dfb6",
    "dense-200x60": "d9e967921e390ce4",
    "sparse-200x60": "db0b11c7f03cc0fd",
}


def digest(cluster: fo.Cluster) -> str:
    arrays = (cluster.capacity, cluster.demand, cluster.weight, cluster.max_tasks, cluster.eligible)
    text = " ".join(f"{value:.12e}" for array in arrays for value in np.asarray(array, dtype=float).ravel())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_set_is_frozen() -> None:
    assert instances.SET == "fairopt-instances-1"
    assert {name: digest(instances.cluster_of(name)) for name in instances.SOURCES} == FROZEN


def test_matrices_say_what_the_answer_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["pf-variant-alpha3", "pf-variant-psdsf", "machines-30x6-drfh"]
    assert main(["bench", "export", *chosen, "--out", str(tmp_path)]) == 0
    assert "3 instances and index.json" in capsys.readouterr().out
    index = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    assert (index["set"], [row["name"] for row in index["instances"]]) == (instances.SET, chosen)
    for row in index["instances"]:
        folder = tmp_path / row["name"]
        for name, expected in row["files"].items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == expected
        part = {path.stem: mmread(path) for path in folder.glob("*.mtx")}
        assert row["certificate"] <= index["tolerance"]
        answer = fo.Allocation.load(folder / "answer.json")
        assert (part["A"] @ part["y"] <= part["b"] * (1 + 1e-9) + 1e-12).all()
        np.testing.assert_allclose((part["U"] @ part["y"]).ravel(), answer.user_tasks, rtol=1e-12)
        assert part["share"].shape[0] == part["weight"].shape[0] == len(answer.cluster.users)
        assert main(["check", str(folder / "answer.json")]) == 0
    # By hand: at alpha = infinity the variant of PF's figure 1 gives 2, 6, 32/3 and 16/3 tasks.
    part = {name: mmread(tmp_path / "pf-variant-psdsf" / f"{name}.mtx") for name in ("U", "y")}
    np.testing.assert_allclose((part["U"] @ part["y"]).ravel(), [2, 6, 32 / 3, 16 / 3], rtol=1e-8)


def test_what_there_is_and_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "list"]) == 0
    assert capsys.readouterr().out.split() == instances.names()
    assert len(instances.names()) == len(instances.SOURCES) * len(instances.QUESTIONS)
    with pytest.raises(DataError, match="there is no instance 'none'"):
        list(instances.export(tmp_path, ["none"]))
