"""Pictures of the explorer and of a report for docs/explorer.md: `python tools/explorer_pictures.py [DIR]`.

Needs Chromium and its driver.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]  # of this checkout, whatever is installed

from chromium import READY, Chromium, missing  # noqa: E402

from fairopt.cli import main  # noqa: E402

CLUSTER = "lognormal?users=8&servers=4&seed=2"
REPORT = "slurm-like?nodes=20"


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
            browser.wait(READY)
            browser.picture(folder / f"{name}.png", whole=width > 600)
        browser.look()
        browser.open(report.as_uri())
        browser.wait("return document.querySelector('.report') !== null")
        browser.picture(folder / "report.png", whole=False)


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "explorer")
