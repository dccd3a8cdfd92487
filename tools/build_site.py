"""Build the documentation site: assemble its source from docs/, notebooks and the package, and run Sphinx.

    python tools/build_site.py             # build/site-source, then build/site (`make docs` does the same)
    python tools/build_site.py --out DIR   # DIR/site-source and DIR/site

Pages of docs/ remain plain Markdown that is readable elsewhere. For the site, links to source files become names, pages
that list others (`SECTIONS`) become tables of contents, and pages on mechanisms, commands, API, papers, figures and
schemas are generated (`tools/site_pages.py`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MATHJAX = ROOT / "build" / "mathjax"
#: Pages whose lists of links become tables of contents; the first contains the others.
SECTIONS = ("index", "tutorials", "howto", "theory", "algorithms", "reference", "gallery-of-figures", "papers", "notes")
#: Folders of generated pages, by the page above them; other pages may list them too.
PARENTS = {"api": "python", "commands": "command-line", "mechanisms": "mechanisms", "properties": "properties"}
#: Files of the root folder that are pages, by their titles.
OF_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_ENTRY = re.compile(r"^- \[[^\]]+\]\(([\w./-]+?)(?:\.md|\.ipynb|\.rst)\)", re.MULTILINE)
#: Files of a checkout that the site names without a link.
_ELSEWHERE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+|witnesses/)\)")
_FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def assemble(target: Path) -> Path:
    """Assemble the source of the site in an empty folder."""
    import site_pages

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target)
    shutil.copytree(ROOT / "notebooks", target / "notebooks", ignore=shutil.ignore_patterns(".*"))
    for notebook in (target / "notebooks").glob("*.ipynb"):
        notebook.write_text(notebook.read_text(encoding="utf-8").replace("](../docs/", "](../"), encoding="utf-8")
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        (target / OF_ROOT[name]).write_text(text, encoding="utf-8")
    site_pages.write(target)
    for path in sorted(target.rglob("*.md")):
        text = _linked(path.read_text(encoding="utf-8"), len(path.relative_to(target).parts) - 1)
        if path.parent == target:
            text += contents(text, path.stem)
        path.write_text(text, encoding="utf-8")
    script = MATHJAX / "node_modules" / "mathjax" / "tex-svg.js"
    if script.exists():
        (target / "_static" / "mathjax").mkdir(parents=True, exist_ok=True)
        shutil.copy(script, target / "_static" / "mathjax")
    return target


def contents(text: str, page: str) -> str:
    """Hidden table of contents of the pages that a page lists."""
    listed = dict.fromkeys(_ENTRY.findall(_FENCED.sub("", text)))
    above = {one: PARENTS.get(one.partition("/")[0]) if "/" in one else None for one in listed}
    pages = [one for one in listed if above[one] == page or (above[one] is None and page in SECTIONS)]
    if not pages:
        return ""
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def _linked(text: str, depth: int) -> str:
    """Convert links out of docs/ to links of the site, or to names if it has no such page; code is unchanged."""

    def named(found: re.Match[str]) -> str:
        inside = found[2].startswith("../") and not found[2].startswith("../" * (depth + 1))
        return found[0] if inside else f"`{found[1].strip('`')}`"

    def outside(part: str) -> str:
        for name, page in OF_ROOT.items():
            part = part.replace(f"](../{name}", f"]({page}")
        part = part.replace("](../notebooks/", "](notebooks/")
        return _ELSEWHERE.sub(named, part)

    parts = _FENCED.split(text)
    return "".join(part.replace("```csv", "```text") if part.startswith("```") else outside(part) for part in parts)


def mathjax() -> str:
    """Provide MathJax for formulas offline; return a message if it is not available."""
    if (MATHJAX / "node_modules" / "mathjax" / "tex-svg.js").exists():
        return ""
    npm = shutil.which("npm")
    if npm is None:
        return "no npm here: formulas are shown by a script from the network"
    MATHJAX.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(MATHJAX), "mathjax@4"]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else "npm could not get mathjax: formulas are shown by a script from the network"


def build(source: Path, site: Path) -> int:
    """Run Sphinx, with warnings as errors."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment |= {
        "FAIROPT_TOOLS": str(ROOT / "tools"),
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
    }
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(site)]
    return subprocess.run(command, env=environment).returncode


def lost(site: Path) -> list[str]:
    """Broken links, pictures and frames of built pages: missing files or anchors."""
    places: dict[Path, set[str]] = {}

    def of(page: Path) -> set[str]:
        if page not in places:
            places[page] = set(re.findall(r'(?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))
        return places[page]

    found = []
    for page in sorted(site.rglob("*.html")):
        if "explorers" in page.parts:  # links of these pages are created by a script
            continue
        for link in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = link.partition("#")
            name = name.partition("?")[0]
            there = (page.parent / name).resolve() if name else page
            placeless = anchor and there.suffix == ".html" and there.exists() and anchor not in of(there)
            if placeless or not there.exists():
                found.append(f"{page.relative_to(site)}: {link}")
    return found


def main() -> int:
    """Assemble, build, and check the site, and print the time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build")
    out = parser.parse_args().out.resolve()
    begun = time.perf_counter()
    said = mathjax() or "formulas need no network"
    site = out / "site"
    if status := build(assemble(out / "site-source"), site):
        return status
    wrong = lost(site)
    sys.stdout.write("\n".join([
        f"{site / 'index.html'} in {time.perf_counter() - begun:.0f} s; {said}",
        *wrong,
        f"{len([*site.rglob('*.html')])} pages, {len(wrong)} links that lead nowhere\n",
    ]))  # fmt: skip
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
