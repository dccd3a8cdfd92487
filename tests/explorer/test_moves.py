"""Moves of the slider in a page whose answers take long: the nearest known one first, the latest question wins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from chromium import READY, Chromium, missing

from fairopt.app.explorer import Session, State
from fairopt.app.explorer.session import ALPHAS
from fairopt.workloads import open_source

from .conftest import serving

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing() or "all there")]

SLIDES = """const s = document.querySelector('[data-role="slider"]'), said = [];
for (const t of arguments[0]) {
  s.value = t;
  s.dispatchEvent(new Event("input", { bubbles: true }));
  said.push(document.querySelector(".fo-status").textContent);
}
return said;"""
#: Delays that are asked for from now on.
TIMERS = """window.delays = [];
const real = window.setTimeout;
window.setTimeout = (act, delay, ...rest) => { window.delays.push(delay); return real(act, delay, ...rest); };"""
#: One move: until the answer is there, and until the browser has drawn the frame with it. Milliseconds.
_MOVE = """return new Promise((done) => {
  const root = document.querySelector(".fo-explorer"), slider = root.querySelector('[data-role="slider"]');
  const status = root.querySelector(".fo-status"), before = Number(root.dataset.drawings), times = {};
  const began = performance.now(), since = () => performance.now() - began;
  function look() {
    const drawn = Number(root.dataset.drawings) > before;
    if (drawn && times.first === undefined) {
      times.first = since();
      times.instead = status.textContent.includes("nearest answer");
    }
    if (!drawn || root.classList.contains("busy") || times.answer !== undefined) return;
    times.answer = since();
    times.drawings = Number(root.dataset.drawings) - before;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => { times.frame = since(); done(times); }));
  }
  const watch = new MutationObserver(look);
  watch.observe(root, { attributes: true, attributeFilter: ["class", "data-drawings"] });
  slider.value = arguments[0];
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  look();
});"""
QUIET = 'return document.querySelector(".fo-explorer").dataset.asked === "0"'


class Slow(Session):
    """Answers between the alphas of the path take their time; what is asked is remembered."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked: list[float] = []
        self.seconds = 0.3

    def reply(self, question: Any) -> dict[str, Any]:
        if isinstance(question, dict) and question.get("ask") == "answer" and not question.get("aside"):
            alpha = State.of(question["state"]).alpha
            self.asked.append(alpha)
            if alpha not in ALPHAS:
                time.sleep(self.seconds)
        return super().reply(question)


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[Chromium, Slow]]:
    """A page that has its path, and waits."""
    session = Slow(open_source("lognormal?users=4&servers=2&seed=1").cluster)
    with serving(session) as server, Chromium() as browser:
        browser.open(server.address)
        browser.wait(READY)
        browser.wait(QUIET)
        yield browser, session
        browser.open("about:blank")


def test_the_nearest_answer_first_and_the_answer_after(page: tuple[Chromium, Slow]) -> None:
    browser, _ = page
    for place, nearest in ((0.76, 0.75), (0.31, 0.3)):
        move = browser.run(_MOVE, place)
        alpha = ALPHAS[round(40 * nearest)]
        assert move["instead"]
        assert move["drawings"] == 2
        assert move["first"] < move["answer"]
        assert move["answer"] >= 300
        status = browser.run("return document.querySelector('.fo-status').textContent")
        assert "nearest" not in status
        assert f"alpha={place / (1 - place):.3g})" in status
        browser.wait(QUIET)
        (said,) = browser.run(SLIDES, [place - 0.005])
        assert f"(the nearest answer known, at alpha {alpha:g})" in said  # at once: answers have taken long before
        assert f"alphaPF-VDS(alpha={alpha:g})" in said
        browser.wait(READY)
    assert browser.errors() == []


def test_what_is_asked_aside_waits_until_the_slider_rests(page: tuple[Chromium, Slow]) -> None:
    browser, session = page
    browser.wait(QUIET)
    asked: list[Any] = []
    reply = session.reply
    session.reply = lambda question: asked.append(question["ask"]) or reply(question)  # type: ignore[method-assign]
    session.seconds = 0.0
    browser.run(TIMERS)
    try:
        browser.run(SLIDES, [0.61, 0.6325, 0.665])
        browser.wait(READY)
        browser.wait(QUIET)
    finally:
        del session.reply
        session.seconds = 0.3
    rows = asked.index("several")
    assert set(asked[:rows]) == {"answer"}
    assert asked.count("several") == 1
    assert 150 in browser.run("return window.delays")
