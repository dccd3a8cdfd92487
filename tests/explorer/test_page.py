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

import numpy as np
import pytest

import fairopt as fo
from fairopt.cli import main
from fairopt.explorer import Session, State
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
    assert list(inside["calls"]) == list(views)  # in an order that no process has to itself
    cluster = fo.papers.instance("drfh-fig1")
    for alpha, view in zip(start["alphas"], views["alphapf-vds"], strict=True):
        expected = fo.AlphaPFVDS(math.inf if alpha == "inf" else alpha).solve(cluster).arrays.user_tasks
        assert view["users"]["tasks"] == pytest.approx(list(expected), rel=1e-4)


#: What must stay text wherever it is shown.
NAME = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&'


@pytest.fixture(scope="module")
def session() -> Session:
    """Of three equilibria at alpha = 3, odd names, and a mechanism that the page would not have by itself."""
    demand, names = [[1, 9, 8], [3, 8, 1], [16, 8, 1]], [NAME, "b", "c"]
    several = fo.Cluster([[20, 11, 2], [3, 9, 4]], demand, weight=[2, 1, 2], users=names)
    return Session(several, State("fds(beta=2)"), source=NAME)


@pytest.fixture(scope="module")
def text(session: Session) -> str:
    return pages.page(session)


def test_a_file_may_load_nothing(text: str) -> None:
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert policy.startswith("default-src 'none'; script-src 'unsafe-inline'; ")
    assert "connect-src" not in policy


def test_other_equilibria_are_said_in_a_file(text: str) -> None:
    inside = data(text)["several"]
    assert isinstance(inside, dict)
    assert inside["3"].startswith("There are 3 equilibria")  # as JavaScript writes 3.0
    assert "1" not in inside


def test_what_more_adds_is_in_a_file(session: Session, text: str) -> None:
    inside = data(text)
    start, more = inside["start"], inside["more"]
    assert isinstance(start, dict)
    assert isinstance(more, dict)
    assert {*more} == {*inside["views"]} == {*start["side"], "fds(beta=2)"}  # type: ignore[misc]
    at = start["alphas"].index(3.0)
    asked = {"ask": "more", "state": {"mechanism": "alphapf-vds", "alpha": 3}}
    assert more["alphapf-vds"][at] == session.reply(asked)
    assert more["alphapf-vds"][at]["rows"]
    assert len(more["drfh"]) == 1


def test_bars_are_as_precise_as_they_are_drawn(session: Session, text: str) -> None:
    views = data(text)["views"]
    assert isinstance(views, dict)
    whole = session.reply({"ask": "answer", "state": {"mechanism": "tsf"}})["bars"]["heights"]
    np.testing.assert_allclose(views["tsf"][0]["bars"]["heights"], whole, atol=6e-4)


def test_names_are_text_everywhere(text: str) -> None:
    assert "<script>alert" not in text
    assert "<img" not in text
    assert text.count("<script") == 2


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
@pytest.mark.parametrize("script", [module(), program()], ids=["module", "program"])
def test_the_module_is_javascript(script: str, tmp_path: Path) -> None:
    (tmp_path / "explorer.mjs").write_text(script)
    subprocess.run(["node", "--check", str(tmp_path / "explorer.mjs")], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no Chromium here")
def test_a_browser_draws_the_page(text: str, tmp_path: Path) -> None:
    """What only runs can tell, as a name that a merge took away; moves and looks are in test_browser, which is long."""
    (tmp_path / "page.html").write_text(text)
    asked = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom",
             f"--user-data-dir={tmp_path}", (tmp_path / "page.html").as_uri()]  # fmt: skip
    drawn = subprocess.run(["chromium", *asked], check=True, capture_output=True, text=True, timeout=300).stdout
    assert 'data-drawings="' in drawn
    assert re.search(r'class="fo-status"[^>]*>[^<]*FDS', drawn)


def test_nothing_is_set_as_markup() -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in program()
