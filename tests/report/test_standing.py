"""Reports for people: the same tables on a terminal, as Markdown and as a page; names are text everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from families import EXAMPLE
from made_up import drawn

import fairopt as fo
from fairopt.app.cli import main
from fairopt.app.explorer.report import GLOSSARY, as_html, as_markdown, sections
from fairopt.app.explorer.standing import standing
from fairopt.workloads import Snapshot

from .conftest import tags

CHANGE = ["--what-if", "weight.team1=2"]


def test_on_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    place = tmp_path / "snapshot.json"
    place.write_text(json.dumps({"items": [*drawn(np.random.default_rng(2), 6, 1000, 10)]}))
    assert main(["report", f"kubernetes:{place}", *CHANGE]) == 0
    said = capsys.readouterr().out
    glossary = [f"  {word}: {meaning}" for word, meaning in GLOSSARY.items()]
    titles = [
        "Namespaces and accounts",
        "Users: what they run",
        "Resources: which are scarce",
        "What if weight.team1=2",
    ]
    assert [words for words in (*titles, "Certified", "running", *glossary) if words not in said] == []


def test_files(few_alphas: None, tmp_path: Path) -> None:
    def made(name: str) -> str:
        assert main(["report", "paper:drfh-fig1", "--weights", "shared", "--out", str(tmp_path / name)]) == 0
        return (tmp_path / name).read_text()

    text = made("r.md")
    assert text.startswith("# ")
    assert "| user" in text
    assert "shared in equal parts" in text
    page = made("r.html")
    assert {*re.findall(r"https?://[^\s\"']+", page)} == {"http://www.w3.org/2000/svg"}
    assert '<main id="explorer">' in page


def test_bad_options(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--out", "r.pdf"], ["--what-if", "height.web=2"], ["--alpha", "x"], ["--mechanism", "nobody"]):
        assert main(["report", "paper:drf-4.1", *more]) == 2
    assert capsys.readouterr().out == ""


def test_weights_are_not_shared_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "kubernetes:snapshot.json?weights=shared", "--weights", "shared"]) == 2
    assert "leave out --weights shared" in capsys.readouterr().err


def test_what_is_left_out_is_said(few_alphas: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three users one row is shown: the one that is most below."""
    monkeypatch.setattr("fairopt.app.explorer.report._ROWS", 1)
    cluster = fo.Cluster([[30]], [[1], [1], [1]], users=["a", "b", "c"])
    runs = Snapshot(cluster, "", placement=np.array([[8], [2], [5]]))
    listed = {one.title: one for one in sections(standing(cluster, snapshot=runs, requested=["weight.a=2"]))}
    users = listed["Users: what they run, want and are entitled to"]
    assert users.table["user"].tolist() == ["b"]
    assert users.note == "2 more users, not shown."
    assert listed["What if weight.a=2"].note == "2 more users, not shown. 0 users keep what they had, within 1%."
    found = standing(cluster, requested=["nodes.server1=1"])
    still = next(section for section in sections(found) if section.title.startswith("What if"))
    assert still.note == "3 users keep what they had, within 1%."
    for text in (as_html(found), as_markdown(found)):  # a heading without rows below it would look like a fault
        assert "(none)" in text.partition("What if")[2].partition("Words")[0]


def test_what_the_source_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that is not ready and a pod that has ended are not in the answer, and the report says so."""
    objects = list(drawn(np.random.default_rng(2), 3, 20, 2))
    node, pod = (next(one for one in objects if one["kind"] == kind) for kind in ("Node", "Pod"))
    ill = {"conditions": [{"type": "Ready", "status": "False"}]}
    objects += [node | {"metadata": {"name": "ill"}, "status": ill}, pod | {"status": {"phase": "Failed"}}]
    ended = sum(one["kind"] == "Pod" and one["status"]["phase"] not in ("Running", "Pending") for one in objects)
    place = tmp_path / "snapshot.json"
    place.write_text(json.dumps({"items": objects}))
    assert main(["report", f"kubernetes:{place}"]) == 0
    (left_out,) = re.findall("^Left out: .*", capsys.readouterr().out, re.M)
    assert "nodes that are not ready: 1" in left_out
    assert f"pods that have ended: {ended}" in left_out
    assert main(["report", "paper:drf-4.1"]) == 0
    assert "Left out" not in capsys.readouterr().out


def test_names_are_text(few_alphas: None) -> None:
    bad = "<img src=x onerror=alert(1)>|`&"
    cluster = EXAMPLE.replace(users=[bad, "b"], resources=["c", "<b>"])
    found = standing(cluster, source=bad, requested=[f"weight.{bad}=2"])
    assert "img" not in tags(as_html(found))
    assert tags(as_html(found)).count("script") == 2
    assert "<img" not in as_markdown(found)
