"""`fo.explore` in a JupyterLab that is shown in Chromium. The picture is kept in FAIROPT_SHOTS."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fairopt as fo

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import jupyter_lab  # noqa: E402
from chromium import READY, Chromium, missing  # noqa: E402

ABSENT = missing() or jupyter_lab.missing()
pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(ABSENT), reason=ABSENT or "all there")]

SOURCE = "lognormal?users=20&servers=10&seed=1"
CELLS = [
    f'import fairopt as fo\n\nview = fo.explore(fo.open_source("{SOURCE}").cluster, alpha=3)\nview',
    "print(view.allocation.mechanism, view.cluster.weight[3])",
]
SLIDER = "document.querySelector('[data-role=\"slider\"]')"
SLIDE = f"{SLIDER}.value = arguments[0]; {SLIDER}.dispatchEvent(new Event('input', {{bubbles: true}}));"
TYPE = """const s = document.querySelector(`[data-key="${arguments[0]}"]`); s.value = arguments[1];
s.dispatchEvent(new Event("change", {bubbles: true}));"""
TASKS = (
    "return [...document.querySelectorAll('.fo-table tbody')[0].rows]"
    ".map((r) => Number(r.cells[r.cells.length - 3].textContent))"
)
PRINTED = "return (document.querySelectorAll('.jp-OutputArea')[1] || {}).textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A notebook whose first cell has run."""
    with jupyter_lab.Lab(tmp_path_factory.mktemp("jupyter") / "lab", CELLS) as lab, Chromium(1200, 1500) as made:
        made.look(height=1500)
        lab.run(made)
        made.wait(READY)
        yield made
        made.open("about:blank")


def test_sixty_moves(browser: Chromium) -> None:
    for t in np.random.default_rng(1).random(50):
        browser.run(SLIDE, float(t))
    browser.wait(READY)
    for t in np.linspace(0, 1, 10):
        browser.run(SLIDE, float(t))
        browser.wait(READY)
    assert browser.errors() == []
    found = fo.AlphaPFVDS(np.inf).solve(fo.open_source(SOURCE).cluster)
    np.testing.assert_allclose(browser.run(TASKS), found.user_tasks, rtol=1e-3)
    browser.wait("return !document.querySelector('[aria-label^=Mechanisms]').textContent.includes('…')")
    if folder := os.environ.get("FAIROPT_SHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.picture(Path(folder, "jupyter-lab.png"), whole=False)


def test_keys_are_for_the_explorer(browser: Chromium) -> None:
    """An `a` inserts a cell where the notebook hears it; arrows choose another."""
    cells = browser.run("return document.querySelectorAll('.jp-Cell').length")
    browser.run(SLIDE, 0.75)
    browser.run(f"{SLIDER}.focus()")
    for key, code in (("ArrowUp", 38), ("ArrowRight", 39), ("a", 65)):
        browser.press(key, code)
    assert browser.run(f"return Number({SLIDER}.value)") == pytest.approx(0.755)
    assert browser.run(f"return document.activeElement === {SLIDER}") is True
    assert browser.run("return document.querySelectorAll('.jp-Cell').length") == cells


def test_python_has_what_stands_there(browser: Chromium) -> None:
    browser.run(SLIDE, 0.5)
    browser.run(TYPE, "users/3/weight", "4")
    browser.wait(READY)
    browser.run("document.querySelectorAll('.jp-Cell')[1].scrollIntoView()")
    browser.click(".jp-Cell:last-of-type .jp-InputArea-editor")
    browser.click('[data-command="notebook:run-cell-and-select-next"]')
    browser.wait(f"{PRINTED}?.includes('alphaPF')")
    assert browser.run(PRINTED).split()[-2:] == ["alphaPF-VDS(alpha=1)", "4.0"]
