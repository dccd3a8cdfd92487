"""The page to share: everything inside, nothing that runs but its module."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from game.clusters import SEVERAL
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.app.cli import main
from fairopt.app.explorer import Session, State
from fairopt.app.explorer import page as pages
from fairopt.app.explorer import session as sessions
from fairopt.app.explorer.page import module, program
from fairopt.app.explorer.session import ALPHAS
from fairopt.workloads.sources import CLUSTERS


def data(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', text)
    assert found is not None
    made: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found.group(1))))
    return made


#: Every fifth alpha of the path; 0, 1, 3 and infinity are among them.
SOME = ALPHAS[::5]
#: What must stay text wherever it is shown. Files cannot be called `</script>`.
NAME = '<img src=x onerror="alert(2)">&'


@pytest.fixture(scope="module")
def session() -> Session:
    """Of three equilibria at alpha = 3, odd names, and a mechanism that the page would not have by itself."""
    names = [f"</script><script>alert(1)</script>{NAME}", "b", "c"]
    return Session(SEVERAL.replace(users=names), State("fds(beta=2)", 3.0))


@pytest.fixture(scope="module")
def text(session: Session, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    session.cluster.save(folder / f"{NAME}.json")
    words = ["--out", str(folder / "page.html"), "--alpha", "3", "--mechanism", session.state.mechanism]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sessions, "ALPHAS", SOME)
        assert main(["explore", str(folder / f"{NAME}.json"), *words]) == 0
    return (folder / "page.html").read_text()


def test_everything_is_inside(session: Session, text: str) -> None:
    assert len(text) - len(program()) - len(pages.style()) < 10_000
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    inside = data(text)
    start, views = inside["start"], inside["views"]
    assert start["state"] == session.state.to_json()
    assert list(inside["calls"]) == list(views)  # in an order that no process has to itself
    assert 'one("alphapf-vds(alpha=ALPHA)")' in inside["calls"]["alphapf-vds"]
    assert 'one("fds")' in inside["calls"]["fds(beta=2)"]
    assert (start["alphas"], len(ALPHAS)) == ([*SOME], 41)
    path = fo.alpha_path(session.cluster, [float(alpha) for alpha in start["alphas"]])
    shown = [view["users"]["tasks"] for view in views["alphapf-vds"]]
    assert_allclose(shown, path.user_tasks, rtol=1e-4)


def test_a_file_may_load_nothing_and_names_are_text_everywhere(text: str) -> None:
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert policy.startswith("default-src 'none'; script-src 'unsafe-inline'; ")
    assert "connect-src" not in policy
    for word in ("<script>alert", "<img", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text
    assert text.count("<script") == 2


def test_a_file_says_what_a_session_says(session: Session, text: str) -> None:
    """Other equilibria, what more adds, and bars."""
    inside = data(text)
    start, more, views = inside["start"], inside["more"], inside["views"]
    assert inside["several"]["3"].startswith("There are 3 equilibria")  # as JavaScript writes 3.0
    assert "1" not in inside["several"]
    assert {*more} == {*views} == {*start["side"], "fds(beta=2)"}
    asked = {"ask": "more", "state": {"mechanism": "alphapf-vds", "alpha": 3}}
    found = more["alphapf-vds"][start["alphas"].index(3.0)]
    assert found["rows"]
    assert found == session.reply(asked)
    assert len(more["drfh"]) == 1
    whole = session.reply({"ask": "answer", "state": {"mechanism": "tsf"}})["bars"]["heights"]
    assert views["tsf"][0]["bars"]["heights"] == whole
    for ask, stored in (("answer", views), ("more", more)):  # PS-DSF is that of the path in alpha
        assert stored["ps-dsf"][0] == session.reply({"ask": ask, "state": {"mechanism": "ps-dsf"}})


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


@pytest.mark.parametrize("name", sorted(name for name in CLUSTERS.entries if not CLUSTERS.reads(name)))
def test_every_source_that_needs_no_files_has_a_page(few_alphas: None, name: str, tmp_path: Path) -> None:
    assert main(["explore", name, "--out", str(tmp_path / "page.html")]) == 0
    alphas, inside = len(sessions.ALPHAS), data((tmp_path / "page.html").read_text())
    assert {alphas} == {len(views) for views in inside["views"].values()} - {1}
    for reply in (one for replies in inside["more"].values() for one in replies):
        assert all(who for *_, who in reply.get("rows", ())), "who gains is empty"
        assert reply.get("rows") or reply.get("error") or not reply["note"].startswith("1% more there")
