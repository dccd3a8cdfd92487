"""The page to share: everything inside, nothing that runs but its module."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

import fairopt as fo
from fairopt.cli import main
from fairopt.explorer import Session
from fairopt.explorer import page as pages
from fairopt.explorer.page import module, program


def data(text: str) -> dict[str, object]:
    found = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', text)
    assert found is not None
    made: dict[str, object] = json.loads(zlib.decompress(base64.b64decode(found.group(1))))
    return made


def test_everything_is_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "page.html"
    assert main(["explore", "paper:drfh-fig1", "--out", str(file), "--alpha", "3"]) == 0
    assert capsys.readouterr().out == f"-> {file}\n"
    text = file.read_text()
    assert len(text) < 70_000
    addresses = set(re.findall(r"https?://[^\s\"']+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    inside = data(text)
    start, views = inside["start"], inside["views"]
    assert isinstance(start, dict)
    assert isinstance(views, dict)
    assert start["state"] == {"mechanism": "alphapf-vds", "alpha": 3.0, "edits": {}}
    assert len(views["alphapf-vds"]) == len(start["alphas"]) == 41
    cluster = fo.papers.instance("drfh-fig1")
    for alpha, view in zip(start["alphas"], views["alphapf-vds"], strict=True):
        expected = fo.AlphaPFVDS(math.inf if alpha == "inf" else alpha).solve(cluster).user_tasks
        assert view["users"]["tasks"] == pytest.approx(list(expected), rel=1e-4)


def test_a_file_may_load_nothing() -> None:
    text = pages.page(Session(fo.papers.instance("drf-4.1")))
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert policy.startswith("default-src 'none'; script-src 'unsafe-inline'; ")
    assert "connect-src" not in policy


def test_names_are_text_everywhere() -> None:
    name = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&'
    cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=[name, "b"])
    text = pages.page(Session(cluster, source=name))
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script") == 2


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
@pytest.mark.parametrize("text", [module(), program()], ids=["module", "program"])
def test_the_module_is_javascript(text: str, tmp_path: Path) -> None:
    (tmp_path / "explorer.mjs").write_text(text)
    subprocess.run(["node", "--check", str(tmp_path / "explorer.mjs")], check=True, capture_output=True)
