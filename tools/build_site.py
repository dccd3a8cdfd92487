"""The documentation site: put its source together from docs/, notebooks and the package, and let Sphinx build it.

    python tools/build_site.py             # build/site-source, then build/site (`make docs` does the same)
    python tools/build_site.py --out DIR   # DIR/site-source and DIR/site

Pages of docs/ stay plain Markdown that reads as well elsewhere. Here files of code are named instead of linked, a page
that lists others (`SECTIONS`) becomes a table of contents, and pages that the code knows are written: mechanisms,
command line, API, papers, figures, schemas (`tools/site_pages.py`)."""

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
#: Pages whose lists of links are tables of contents, the first of the others.
SECTIONS = ("index", "tutorials", "howto", "theory", "algorithms", "reference", "gallery-of-figures", "papers", "notes")
#: Folders of pages that the code writes, by the page below which they stand; others may list them too.
PARENTS = {"api": "python", "commands": "command-line", "mechanisms": "mechanisms", "properties": "properties"}
#: Pages of the root, by what they are called here.
OF_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
_ENTRY = re.compile(r"^- \[[^\]]+\]\(([\w./-]+?)(?:\.md|\.ipynb|\.rst)\)", re.MULTILINE)
#: What is in a checkout and not on the site: named, without a link.
_ELSEWHERE = re.compile(r"\[([^\]]+)\]\((\.\./[^)]+|witnesses/)\)")
_FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def assemble(target: Path) -> Path:
    """The source of the site in a folder, made anew."""
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
    """The pages that stand below a page, of those it lists, as a table of contents that is not shown on it."""
    listed = dict.fromkeys(_ENTRY.findall(_FENCED.sub("", text)))
    above = {one: PARENTS.get(one.partition("/")[0]) if "/" in one else None for one in listed}
    pages = [one for one in listed if above[one] == page or (above[one] is None and page in SECTIONS)]
    if not pages:
        return ""
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def _linked(text: str, depth: int) -> str:
    """Links out of docs/ as links of the site, or as names where the site has no page. Code blocks stay."""

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
    """Get MathJax for formulas without a network; what to say if there is none."""
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
    """Run Sphinx; every warning is an error."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    environment |= {
        "FAIROPT_TOOLS": str(ROOT / "tools"),
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "ignore::DeprecationWarning",
    }
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(source), str(site)]
    return subprocess.run(command, env=environment).returncode


def lost(site: Path) -> list[str]:
    """Links, pictures and frames of built pages that lead to no file, or to no place in it."""
    places: dict[Path, set[str]] = {}

    def of(page: Path) -> set[str]:
        if page not in places:
            places[page] = set(re.findall(r'(?:id|name)="([^"]+)"', page.read_text(encoding="utf-8")))
        return places[page]

    found = []
    for page in sorted(site.rglob("*.html")):
        if "explorers" in page.parts:  # whose links are written by a script
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
    """Assemble, build, and check links; say how long it took."""
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
