"""Pictures of pages of the site for docs/site.md: `python tools/site_screens.py [SITE [DIR]]`, after `make docs`.

Needs Chromium and its driver. A page whose console has an error is refused. Colours are reduced, so that a
picture has tens of kilobytes."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]  # of this checkout, whatever is installed

from chromium import Chromium, missing, reduced  # noqa: E402

#: Pages by the names of their pictures, and where on the page a picture begins: an element, or the top.
PAGES = {
    "start": ("index.html", ""),
    "how-to": ("find-alpha.html", ""),
    "reference": ("api/asking.html", "#fairopt-find-alpha"),
    "mechanism": ("mechanisms/alphapf-vds.html", ""),
    "property": ("properties/strategy-proofness.html", "#counterexamples"),
    "gallery": ("gallery/index.html", ""),
    "theory": ("properties.html", "#proof-d"),
}
WIDTH, HEIGHT = 1200, 900
BEGIN_AT = """const found = document.querySelector(arguments[0]);
found?.scrollIntoView({behavior: "instant"});
return Boolean(found)"""
#: All that the page loads is there, and formulas are set.
SETTLED = """if (document.readyState !== "complete" || [...document.images].some(one => !one.complete)) return false;
if (!document.querySelector(".math") || window.formulas === "set") return true;
if (window.MathJax?.startup?.promise && !window.formulas) {
  window.formulas = "coming"; MathJax.startup.promise.then(() => { window.formulas = "set" });
}
return false"""


def draw(site: Path, folder: Path, pages: dict[str, tuple[str, str]] = PAGES) -> list[Path]:
    """A picture of every page; what the console of a page says is an error.

    Raises
    ------
    RuntimeError
        The console of a page says something severe; the element to begin at is not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with Chromium() as browser:
        browser.offline()
        browser.look("light", WIDTH, HEIGHT)
        for name, (page, place) in pages.items():
            browser.open((site / page).resolve().as_uri())
            browser.wait(SETTLED)
            if place and not browser.run(BEGIN_AT, place):
                raise RuntimeError(f"{page} has no {place}")
            if said := browser.errors():
                raise RuntimeError(f"{page}: {'; '.join(said)}")
            made.append(browser.picture(folder / f"{name}.png", whole=False))
    return [reduced(path) for path in made]


if __name__ == "__main__":
    if missing():
        sys.exit(missing())
    given = [Path(one) for one in sys.argv[1:]]
    where = given[0] if given else ROOT / "build" / "site"
    if not (where / "index.html").exists():
        sys.exit(f"no site in {where}: make docs")
    for path in draw(where, given[1] if len(given) > 1 else ROOT / "docs" / "site"):
        sys.stdout.write(f"-> {path}, {path.stat().st_size / 1024:.0f} KB\n")
