"""Reports for people: the same tables on a terminal, as Markdown and as a page; names are text everywhere."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.cli import main
from fairopt.explorer.standing import standing
from fairopt.report.standing import GLOSSARY, as_html, as_markdown
from fairopt.workloads.kubernetes_like import drawn

SOURCE = "kubernetes-like?nodes=6&seed=2"
CHANGE = ["--what-if", "weight.team1=2"]


def test_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", SOURCE, *CHANGE]) == 0
    said = capsys.readouterr().out
    for title in (
        "Namespaces and accounts",
        "Users: what they run",
        "Resources: what is short",
        "What if weight.team1=2",
    ):
        assert title in said
    assert "Certified" in said
    assert "running" in said
    for word, meaning in GLOSSARY.items():
        assert f"  {word}: {meaning}" in said


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", SOURCE, *CHANGE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {*found} == {"measures", "groups", "users", "resources", "margins", "changes", "notes"}
    cluster = fo.open_source(SOURCE).cluster
    tasks = fo.AlphaPFVDS(1).solve(cluster).user_tasks
    assert [row["alphaPF-VDS(alpha=1)"] for row in found["users"]] == pytest.approx(list(tasks))


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("r.md", "r.html"):
        assert main(["report", "paper:drfh-fig1", "--weights", "shared", "--out", str(tmp_path / name)]) == 0
    assert capsys.readouterr().out.count("-> ") == 2
    text = (tmp_path / "r.md").read_text()
    assert text.startswith("# ")
    assert "| user" in text
    assert "shared in equal parts" in text
    page = (tmp_path / "r.html").read_text()
    assert {*re.findall(r"https?://[^\s\"']+", page)} == {"http://www.w3.org/2000/svg"}
    assert '<main id="explorer">' in page


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_what_the_source_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that is not ready and a pod that has ended are not in the answer, and the report says so."""
    objects = list(drawn(np.random.default_rng(2), 3, 20, 2))
    node = next(one for one in objects if one["kind"] == "Node")
    pod = next(one for one in objects if one["kind"] == "Pod")
    ill = {"conditions": [{"type": "Ready", "status": "False"}]}
    objects += [node | {"metadata": {"name": "ill"}, "status": ill}]
    ended = sum(one["kind"] == "Pod" and one["status"]["phase"] not in ("Running", "Pending") for one in objects)
    objects += [pod | {"status": {"phase": "Failed"}}]
    place = tmp_path / "snapshot.json"
    place.write_text(json.dumps({"items": objects}))
    assert main(["report", f"kubernetes:{place}"]) == 0
    said = capsys.readouterr().out
    left_out = next(line for line in said.splitlines() if line.startswith("Left out: "))
    assert "nodes that are not ready: 1" in left_out
    assert f"pods that have ended: {ended + 1}" in left_out
    assert main(["report", "paper:drf-4.1"]) == 0
    assert "Left out" not in capsys.readouterr().out


def test_names_are_text() -> None:
    bad = "<img src=x onerror=alert(1)>|`&"
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=[bad, "b"], resources=["c", "<b>"])
    found = standing(cluster, source=bad, requested=[f"weight.{bad}=2"])
    tags = Tags()
    tags.feed(as_html(found))
    assert "img" not in tags.seen
    assert tags.seen.count("script") == 2
    assert "<img" not in as_markdown(found)
