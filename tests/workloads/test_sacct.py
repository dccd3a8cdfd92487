"""Slurm's accounting as a workload: text and JSON say the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.errors import DataError

HEADS = "JobID|User|Account|Submit|Start|End|AllocTRES|NodeList|State"
ROWS = """
1|ann|ai|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T01:01:00|billing=8,cpu=8,gres/gpu=2,mem=16G,node=1|g1|COMPLETED
1.batch|||2024-01-01T00:01:00|2024-01-01T00:01:00|2024-01-01T01:01:00|cpu=8,mem=16G,node=1|g1|COMPLETED
2_7|bob|bio|2024-01-01T00:00:30|2024-01-01T00:10:00|2024-01-02T00:10:00|billing=4,cpu=4,mem=8G,node=2|g[1-2]|TIMEOUT
3|bob|bio|2024-01-01T00:02:00|Unknown|Unknown||None assigned|PENDING
4|bob|bio|2024-01-01T00:03:00|2024-01-01T01:01:00|2024-01-01T01:11:00|billing=2,cpu=2,mem=4G,node=1|g1|COMPLETED
5|bob|bio|2024-01-01T00:03:00|2024-01-01T01:01:00|Unknown|billing=2,cpu=2,mem=4G,node=1|g1|RUNNING
""".strip()
JOBS = [
    {"job_id": 1, "user": "ann", "account": "ai", "time": {"submission": 100, "start": 160, "end": 3760}, "nodes": "g1",
     "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}, {"type": "mem", "name": "", "count": 16384},
                            {"type": "gres", "name": "gpu", "count": 2}, {"type": "energy", "name": "", "count": -2}]}},
    {"job_id": "2_7", "user": "bob", "account": "bio", "time": {"submission": 130, "start": 700, "end": 87100},
     "nodes": "g[1-2]", "tres": {"allocated": [{"type": kind, "count": n} for kind, n in (("cpu", 4), ("mem", 8192))]}},
    {"job_id": 3, "time": {"submission": 220, "start": 0, "end": 0}, "tres": {"allocated": []}, "nodes": ""},
    {"job_id": 4, "user": "bob", "account": "bio", "time": {"submission": 280, "start": 3760, "end": 4360},
     "nodes": "g1", "tres": {"allocated": [{"type": "cpu", "count": 2}, {"type": "mem", "count": 4096}]}},
    {"job_id": 5, "time": {"submission": 280, "start": 3760, "end": 0}, "tres": {"allocated": []}, "nodes": "g1"},
]  # fmt: skip


@pytest.mark.parametrize("form", ["text", "json"])
def test_accounting_is_a_workload(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"jobs.{form}"
    path.write_text(f"{HEADS}\n{ROWS}\n" if form == "text" else json.dumps({"jobs": JOBS}))
    found = fo.open_workload(f"sacct:{path}")
    frames = found.to_frames()
    tasks = frames["tasks"].groupby("job")
    assert found.users == ("ai", "bio")
    assert tasks.size().to_dict() == {"1": 1, "2_7": 2, "4": 1}
    first = tasks[["arrival", "duration", "cpu", "memory"]].first()
    assert first.loc["2_7"].tolist() == pytest.approx([30, 86400, 2, 4])
    assert found.report["jobs that did not run to an end, left out"] == 2
    servers = frames["servers"].set_index("server")
    held = servers.loc[["g1", "g2"], ["cpu", "memory", "gres/gpu"]].to_numpy()
    np.testing.assert_allclose(held, [[10, 20, 2], [2, 4, 0]])
    assert int(fo.simulate(found, "best-fit-drfh").summary()["tasks done"]) == 4
    assert fo.open_workload(f"sacct:{path}?by=user").users == ("ann", "bob")


def test_without_names_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("JobID|Submit|Start|End|AllocTRES\n1|0|10|70|cpu=4,node=2\n")
    assert fo.open_workload(f"sacct:{path}").servers == ("server1-1", "server1-2")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("JobID|Submit\n1|0\n", "lacks the column Start; write it with: sacct"),
        (f"{HEADS}\n1|ann\n", ":2: there are 2 fields; the header has 9"),
        (f"{HEADS}\n" + ROWS.replace("2024-01-01T00:01:00|2024", "noon|2024"), ":2: 'noon' is no date"),
        (f"{HEADS}\n", "has no job that ran"),
        ('{"jobs": [{"job_id": 5}]}', "job 5 lacks `time` or `tres`"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "jobs").write_text(content)
    with pytest.raises(DataError, match=message):
        fo.open_workload(f"sacct:{tmp_path / 'jobs'}")
