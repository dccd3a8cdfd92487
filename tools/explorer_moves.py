"""Times of moves of the slider as the page itself sees them, used by the browser tests.

From the input event to the answer in the document, by `performance.now()`; polling of the driver has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chromium import Chromium

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


@dataclass(frozen=True)
class Move:
    """Milliseconds from the input event to the first drawing, the answer, and the frame that shows it."""

    first: float
    answer: float
    frame: float
    instead: bool  #: The first drawing was the nearest point of the path.
    drawings: int


def moves(browser: Chromium, places: Iterable[float]) -> list[Move]:
    """Move the slider, once the answer before is there."""
    found = [browser.run(_MOVE, float(place)) for place in places]
    return [Move(one["first"], one["answer"], one["frame"], one["instead"], one["drawings"]) for one in found]
