"""Pictures of the explorer and of a report for docs/explorer.md: `python tools/explorer_pictures.py [DIR]`.

Needs Chromium and its driver; the picture of a notebook also JupyterLab (`fairopt[lab]`), and is left as it is without.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]  # of this checkout, whatever is installed

import jupyter_lab  # noqa: E402
from chromium import READY, Chromium, missing, reduced  # noqa: E402

from fairopt.cli import main  # noqa: E402
from fairopt.explorer import Session, State  # noqa: E402
from fairopt.explorer.server import Server  # noqa: E402
from fairopt.workloads import open_source  # noqa: E402

CLUSTER = "lognormal?users=8&servers=4&seed=2"
REPORT = "slurm-like?nodes=20"
#: The curves have all their points: that is asked last.
WHOLE = """const line = document.querySelector(".fo-line");
return line && line.getAttribute("points").split(" ").length === 41"""
TYPE = """const field = document.querySelector(`[data-key="${arguments[0]}"]`); field.value = arguments[1];
field.dispatchEvent(new Event("change", {bubbles: true}));"""


def draw(folder: Path) -> None:
    """The page to share at alpha 3, light on a desk and dark on a phone; a report with a what-if."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, Chromium() as browser:
        page, report = Path(place, "page.html"), Path(place, "report.html")
        main(["explore", CLUSTER, "--alpha", "3", "--out", str(page)])
        main(["report", REPORT, "--what-if", "alpha=3", "--out", str(report)])
        browser.offline()
        for name, scheme, width in (("page", "light", 1200), ("phone", "dark", 390)):
            browser.look(scheme, width, 844)
            browser.open(page.as_uri())
            browser.wait(WHOLE)
            reduced(browser.picture(folder / f"{name}.png", whole=width > 600))
        browser.look()
        browser.open(report.as_uri())
        browser.wait("return document.querySelector('.report') !== null")
        reduced(browser.picture(folder / "report.png", whole=False))


def draw_local(folder: Path) -> None:
    """The local page: one user has twice the weight, and another a demand that cannot be."""
    session = Session(open_source(CLUSTER).cluster, State(alpha=3), CLUSTER)
    with Server(session) as server, Chromium() as browser:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        browser.look(height=844)
        browser.open(server.address)
        for field, value in (("users/1/weight", "2"), ("users/4/demand/0", "-1")):
            browser.wait(READY)
            browser.run(TYPE, field, value)
        browser.wait(READY)
        browser.wait(WHOLE)
        browser.picture(folder / "local.png")
        browser.open("about:blank")
        server.shutdown()
        thread.join()


def draw_notebook(folder: Path) -> None:
    """The explorer in JupyterLab."""
    cell = f'import fairopt as fo\n\ncluster = fo.open_source("{CLUSTER}").cluster\nfo.explore(cluster, alpha=3)'
    with tempfile.TemporaryDirectory() as place, jupyter_lab.Lab(Path(place, "lab"), [cell]) as lab, Chromium() as made:
        made.look(height=1250)
        lab.run(made)
        made.wait(READY)
        made.wait(WHOLE)
        reduced(made.picture(folder / "notebook.png", whole=False))
        made.open("about:blank")


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "explorer"
    draw(where)
    draw_local(where)
    if jupyter_lab.missing():
        sys.stderr.write(f"no picture of a notebook: {jupyter_lab.missing()}\n")
    else:
        draw_notebook(where)
