"""The explorer in Chromium: a local page, and a file with the network off. Pictures are kept in FAIROPT_SHOTS."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import READY, Chromium, missing
from numpy.testing import assert_allclose

import fairopt as fo
from fairopt.app.explorer import Session
from fairopt.app.explorer import page as pages
from fairopt.workloads import open_source

from .conftest import serving

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing() or "all there")]

SLIDE = """const s = document.querySelector('[data-role="slider"]'); s.value = arguments[0];
s.dispatchEvent(new Event("input", {bubbles: true}));"""
TYPE = """const s = document.querySelector(`[data-key="${arguments[0]}"]`); s.value = arguments[1];
s.dispatchEvent(new Event("change", {bubbles: true}));"""
CLICK = "[...document.querySelectorAll('button')].find((b) => b.textContent === arguments[0]).click()"
STATUS = "return document.querySelector('.fo-status').textContent"
TASKS = (
    "return [...document.querySelectorAll('tbody')[0].rows].map((r) => Number(r.cells[r.cells.length - 3].textContent))"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as made:
        yield made


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("FAIROPT_SHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def live(browser: Chromium) -> Iterator[Session]:
    """A page of 20 users and 10 servers, shown."""
    session = Session(open_source("lognormal?users=20&servers=10&seed=1").cluster, source="20 x 10")
    with serving(session) as server:
        browser.errors()
        browser.open(server.address)
        browser.wait(READY)
        yield session
        browser.open("about:blank")


def act(browser: Chromium, script: str, *given: Any) -> None:
    """Run a script, and wait for what it leads to."""
    browser.run(script, *given)
    browser.wait(READY)


def test_sixty_moves(browser: Chromium, live: Session, shots: Path) -> None:
    for t in np.random.default_rng(1).random(50):
        browser.run(SLIDE, float(t))
    browser.wait(READY)
    for t in np.linspace(0, 1, 10):
        act(browser, SLIDE, float(t))
    assert browser.errors() == []
    assert "alphaPF-VDS(alpha=inf)" in browser.run(STATUS)
    found = fo.AlphaPFVDS(np.inf).solve(live.cluster)
    assert_allclose(browser.run(TASKS), found.arrays.user_tasks, rtol=1e-3)
    browser.picture(shots / "live.png")


def test_edits_errors_and_undo(browser: Chromium, live: Session, shots: Path) -> None:
    before = browser.run(TASKS)
    act(browser, TYPE, "users/3/weight", "4")
    weighted = browser.run(TASKS)
    cluster = live.start.edited({"users/3/weight": 4}).cluster
    assert_allclose(weighted, fo.AlphaPFVDS(1).solve(cluster).arrays.user_tasks, rtol=1e-3)
    act(browser, TYPE, "users/5/demand/1", "-2")
    field = "const f = document.querySelector('[data-key=\"users/5/demand/1\"]');"
    assert browser.run(f"{field} return f.getAttribute('aria-invalid')") == "true"
    said = browser.run(f"{field} return document.getElementById(f.getAttribute('aria-describedby')).textContent")
    assert "it must be a finite number >= 0" in said
    assert browser.run(f"{field} return f.value") == "-2"
    assert browser.run(TASKS) == weighted
    browser.picture(shots / "error.png")
    act(browser, TYPE, "users/5/demand/1", "2")
    assert browser.run(f"{field} return f.hasAttribute('aria-invalid')") is False
    for _ in range(2):
        act(browser, CLICK, "Undo")
    assert browser.run(TASKS) == before
    act(browser, CLICK, "Redo")
    assert browser.run(TASKS) == weighted
    assert browser.errors() == []


MORE = "return [...document.querySelectorAll('.fo-more tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
FRESH = "return !document.querySelector('.fo-more').classList.contains('fo-off')"


def test_what_more_of_a_resource_adds_follows_the_answer(browser: Chromium, live: Session) -> None:
    browser.wait(FRESH)
    before = browser.run(MORE)
    expected = live.reply({"ask": "more", "state": {"mechanism": "alphapf-vds", "alpha": 1}})["rows"]
    assert [[row[0], row[1], row[3]] for row in before] == [[row[0], row[1], row[3]] for row in expected]
    assert float(before[0][2]) == pytest.approx(expected[0][2], rel=1e-2)
    act(browser, TYPE, "mechanism", "drfh")
    browser.wait(FRESH)
    assert browser.run(MORE) != before
    act(browser, TYPE, "mechanism", "ps-dsf")
    browser.wait(FRESH)
    assert browser.run(MORE) == []
    assert "No derivatives" in browser.run("return document.querySelector('.fo-more .fo-note').textContent")
    assert browser.errors() == []


def test_a_move_while_bad_input_is_on_its_way(browser: Chromium, live: Session) -> None:
    browser.run(f"(function () {{{TYPE}}})('users/2/weight', 'x'); (function () {{{SLIDE}}})(0.75)")
    browser.wait(READY)
    assert "alphaPF-VDS(alpha=3)" in browser.run(STATUS)
    assert browser.run("return document.querySelectorAll('[aria-invalid]').length") == 1
    assert live.last.edits == {}
    assert live.last.alpha == 3


def test_pins_code_and_placement(browser: Chromium, live: Session, shots: Path) -> None:
    browser.run(CLICK, "Pin as A")
    act(browser, TYPE, "mechanism", "drfh")
    browser.run(CLICK, "Pin as B")
    heads = browser.run("return [...document.querySelectorAll('.fo-compared th[scope=col]')].map((h) => h.textContent)")
    assert heads == ["", "A: alphaPF-VDS, alpha 1", "B: DRFH", "change"]
    browser.run(CLICK, "Copy as Python")
    browser.wait("return document.querySelector('.fo-code pre')")
    assert 'allocation = fo.mechanisms.one("drfh").solve(cluster)' in browser.run(
        "return document.querySelector('.fo-code').textContent"
    )
    browser.run("document.querySelector('details').open = true")
    browser.wait("return document.querySelectorAll('details input').length === 200")
    act(browser, "document.querySelector('[data-key=\"users/0/eligible/6\"]').click()")
    assert live.last.edits == {"users/0/eligible/6": False}
    assert live.last.mechanism == "drfh"
    browser.picture(shots / "pinned.png")
    assert browser.errors() == []


NAMED = {"button", "checkbox", "combobox", "img", "link", "region", "slider", "spinbutton", "textbox", "table", "image"}


def test_accessibility(browser: Chromium, live: Session) -> None:
    nodes = browser.tree()
    assert {one["role"] for one in nodes} >= {"button", "checkbox", "combobox", "slider", "status", "table", "textbox"}
    assert [one for one in nodes if one["role"] in NAMED and not one["name"].strip()] == []
    assert [one for one in nodes if one["focusable"] and not one["name"].strip() and one["role"] != "RootWebArea"] == []
    assert len([one for one in nodes if one["role"] == "slider"]) == 1
    # By the attribute: some versions of Chromium have the bare number in its place in their tree.
    text = "return document.querySelector('[data-role=\"slider\"]').getAttribute('aria-valuetext')"
    assert browser.run(text) == "alpha 1"
    assert browser.run("return document.documentElement.lang") == "en"
    assert browser.run("return [...document.querySelectorAll('th')].every((h) => h.scope)") is True
    ids = browser.run("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len({*ids})


def test_a_file_works_offline(browser: Chromium, tmp_path: Path, shots: Path) -> None:
    session = Session(fo.papers.instance("drfh-fig1"), source="DRFH figure 1")
    pages.write(session, tmp_path / "page.html")
    browser.errors()
    browser.offline()
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait(READY)
    for t in np.linspace(0, 1, 60):
        browser.run(SLIDE, float(t))
    browser.wait(READY)
    assert "alphaPF-VDS(alpha=inf)" in browser.run(STATUS)
    act(browser, TYPE, "mechanism", "tsf")
    browser.wait(FRESH)
    note = "return document.querySelector('.fo-more .fo-note').textContent"
    assert browser.run(note) == session.reply({"ask": "more", "state": {"mechanism": "tsf"}})["note"]
    assert_allclose(browser.run(TASKS), fo.TSF().solve(session.cluster).arrays.user_tasks, rtol=1e-3)
    browser.run(CLICK, "Copy as Python")
    browser.wait("return document.querySelector('.fo-code pre')")
    code = browser.run("return document.querySelector('.fo-code pre').textContent")
    scope: dict[str, Any] = {"print": lambda *_: None}
    exec(code, scope)
    assert str(scope["allocation"].mechanism) == "TSF"
    assert browser.run("return [...document.querySelectorAll('.fo-cell input')].every((f) => f.disabled)") is True
    assert browser.errors() == []
    browser.picture(shots / "file.png")


def test_many_users_are_not_drawn_one_by_one(browser: Chromium, shots: Path) -> None:
    session = Session(open_source("google-like?users=5000&seed=1").cluster, source="5,000 users")
    with serving(session) as server:
        browser.cdp("Network.disable")
        browser.errors()
        browser.open(server.address)
        browser.wait(READY)
        assert browser.run("return document.querySelectorAll('.fo-explorer *').length") < 6000
        assert re.search(r"more users", browser.run("return document.querySelector('.fo-table').textContent"))
        assert browser.errors() == []
        browser.picture(shots / "many.png")
        browser.open("about:blank")
