"""Plug-ins in the workers of a Dask scheduler: a mechanism, a source and a measure of a file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairopt import sweeps

from .small import dask_cluster

EXPERIMENT = """
title = "Plugged"
[clusters]
drawn = "squares?users=4&size=20"
[[grid]]
mechanisms = ["even-tasks", "drfh"]
measures = ["utilization", "spread"]
"""


@pytest.mark.long
def test_dask_workers_load_what_the_sweep_names(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    shutil.copy(Path(__file__).parents[1] / "plugin.py", tmp_path / "own.py")
    (tmp_path / "plugged.toml").write_text(EXPERIMENT)
    with dask_cluster(tmp_path, 1) as (address, (_, worker)):
        words = ["sweep", "plugged.toml", "--plugin", "own.py", "--store", "store", "--dask", address]
        done = subprocess.run(  # in a process of its own, so that nothing stays registered here
            [sys.executable, "-m", "fairopt.cli", *words], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        pid = worker.pid
    contents = sweeps.Store(tmp_path / "store").read()
    frame = contents.frame()
    assert frame[["status", "process"]].to_numpy().tolist() == [["ok", pid]] * 2
    assert set(frame["name"]) == {"even-tasks", "drfh"}
    assert set(contents.long("measured")["measure"]) == {"spread"}
    assert all("own.py" in json.loads(text)["plugins"] for text in frame["options"])
