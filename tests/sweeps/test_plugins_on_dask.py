"""Plug-ins in the workers of a Dask scheduler: a mechanism, a source and a measure of a file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fairopt import sweeps

from .small import command, dask_cluster

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
    own = shutil.copy(Path(__file__).parents[1] / "plugin.py", tmp_path / "own.py")
    file, store = tmp_path / "plugged.toml", sweeps.Store(tmp_path / "store")
    file.write_text(EXPERIMENT)
    with dask_cluster(tmp_path, 1) as (address, (_, worker)):
        # In a process of its own, so that nothing stays registered here.
        process = command("sweep", file, "--plugin", own, "--store", store.folder, "--dask", address)
        said = process.communicate(timeout=600)
        assert process.returncode == 0, said
        pid = worker.pid
    contents = store.read()
    frame = contents.frame()
    assert frame[["status", "process"]].to_numpy().tolist() == [["ok", pid]] * 2
    assert set(frame["name"]) == {"even-tasks", "drfh"}
    assert set(contents.long("measured")["measure"]) == {"spread"}
    assert all("own.py" in json.loads(text)["plugins"] for text in frame["options"])
