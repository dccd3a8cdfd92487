"""Reports for people: the same tables on a terminal, as Markdown and as a page; names are text everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo
from fairopt.cli import main
from fairopt.explorer.standing import standing
from fairopt.report.standing import GLOSSARY, as_html, as_markdown, sections
from fairopt.workloads import Snapshot
from fairopt.workloads.kubernetes_like import drawn

from .conftest import tags

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


def test_bad_options(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--out", "r.pdf"], ["--what-if", "height.web=2"], ["--alpha", "x"], ["--mechanism", "nobody"]):
        assert main(["report", "paper:drf-4.1", *more]) == 2
    assert capsys.readouterr().out == ""


def test_weights_are_not_shared_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "kubernetes:snapshot.json?weights=shared", "--weights", "shared"]) == 2
    assert "leave one out" in capsys.readouterr().err


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three users one row is shown: the one that is most below."""
    monkeypatch.setattr("fairopt.report.standing._ROWS", 1)
    cluster = fo.Cluster([[30]], [[1], [1], [1]], users=["a", "b", "c"])
    found = standing(
        cluster, snapshot=Snapshot(cluster, "", placement=np.array([[8], [2], [5]])), requested=["weight.a=2"]
    )
    listed = {section.title: section for section in sections(found)}
    users = listed["Users: what they run, want and are entitled to"]
    assert users.table["user"].tolist() == ["b"]
    assert users.note == "2 more users, not shown."
    assert listed["What if weight.a=2"].note == "2 more users, not shown. 0 users keep what they had, within 1%."
    found = standing(cluster, requested=["nodes.server1=1"])
    still = [section for section in sections(found) if section.title.startswith("What if")]
    assert still[0].note == "3 users keep what they had, within 1%."


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


def test_an_empty_table_says_so() -> None:
    """A heading without rows below it would look like a fault."""
    found = standing(fo.Cluster([[30]], [[1], [1]]), requested=["nodes.server1=1"])
    for text in (as_html(found), as_markdown(found)):
        assert "(none)" in text.partition("What if")[2].partition("Words")[0]


def test_names_are_text() -> None:
    bad = "<img src=x onerror=alert(1)>|`&"
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=[bad, "b"], resources=["c", "<b>"])
    found = standing(cluster, source=bad, requested=[f"weight.{bad}=2"])
    assert "img" not in tags(as_html(found))
    assert tags(as_html(found)).count("script") == 2
    assert "<img" not in as_markdown(found)
