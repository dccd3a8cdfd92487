"""Pages of the site that the code knows: mechanisms, properties, command line, API, papers, figures, schemas.

`write(target)` puts them into the source that `tools/build_site.py` assembles. A page of docs/ says where such pages
are listed by a comment, `<!-- pages: mechanisms -->`."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import cvxpy as cp
from PIL import Image

import fairopt as fo
from fairopt import mechanisms, papers
from fairopt.cli import main, parser
from fairopt.report import figures
from fairopt.report.schemas import SCHEMAS

_MARK = re.compile(r"<!-- pages: ([\w-]+) -->")
#: A cluster to move on a page, as `fairopt explore FILE --out` writes it.
_EXPLORER = re.compile(r"<!-- explorer: (\S+) -->")
#: With which parameters mechanisms are drawn.
_DRAWN: dict[str, str | Callable[[], mechanisms.Mechanism]] = {
    "alpha-fair": "alpha-fair(alpha=2)", "alphapf-vds": "alphapf-vds(alpha=2)", "fds": "fds(beta=2,lam=-2)",
    "gfj": "gfj(beta=4,lam=-2)", "guaranteed-alpha-fair": "guaranteed-alpha-fair(alpha=0.5,part=1)",
    "mqdrf": lambda: fo.MQDRF(shares=(0.7, 0.4), sizes=(1, 1), levels=(1, 2)),
    "concave-utility": lambda: fo.ConcaveUtility(cp.log1p), "concave-game": lambda: fo.ConcaveGame(cp.log1p),
}  # fmt: skip
#: Where pictures of figures are: drawn here, or those that come with the pages.
_DRAWN_IN = ("paper_figures/out", "docs/figures", "docs")
#: How large a figure of 840 dots or fewer is in the list of all.
_IN_LIST = 0.57
#: What stands together on a page of the API.
_API = {
    "clusters": ("Clusters and answers", ("Cluster", "Criterion", "Allocation", "Certificate", "merge")),
    "asking": ("Asking", ("alpha_path", "compare", "find_alpha", "find_weights", "infer_alpha", "solve_many", "sweep")),
    "game-api": ("The game in Python", "game"),
    "certificates-api": ("Certificates in Python", "certificates"),
    "properties-api": ("Properties in Python", "properties"),
    "papers-api": ("Papers in Python", "papers"),
    "over-time": ("Over time", ("Workload", "simulate", "fluid")),
    "workloads-api": ("Workloads in Python", "workloads"),
    "plot-api": ("Pictures", "plot"),
    "report-api": ("Tables", "report"),
}


def write(target: Path) -> None:
    """All pages, and the lists of them where docs ask for them."""
    import property_pages

    lists = {
        "properties": property_pages.write(target / "properties"),
        "mechanisms": _mechanisms(target / "mechanisms"),
        "commands": _commands(target / "commands"),
        "api": _api(target / "api"),
        "papers": _papers(target / "papers"),
        "figures": _figures(target / "figures"),
        "schemas": _schemas(target / "schemas"),
        "gallery": ["- [Examples with their code](gallery/index.rst)"],
        "notes": ["- [Changelog](changelog.md)", "- [Contributing](contributing.md)"],
    }
    for path in target.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        text = _MARK.sub(lambda found: "\n".join(lists[found[1]]), text)
        path.write_text(_EXPLORER.sub(lambda found: _explorer(target, found[1]), text), encoding="utf-8")


def _explorer(target: Path, source: str) -> str:
    """The page of a cluster in a frame, and a link to it alone."""
    place = Path("_static", "explorers", re.sub(r"\W+", "-", source) + ".html")
    (target / place).parent.mkdir(parents=True, exist_ok=True)
    if status := main(["explore", source, "--out", str(target / place)]):
        raise RuntimeError(f"fairopt explore {source} --out ended with {status}")
    frame = f'<iframe class="explorer" src="{place.as_posix()}" title="the explorer: {source}"></iframe>'
    return f'{frame}\n\n<p><a href="{place.as_posix()}">Open it on a page of its own</a></p>'


def _mechanisms(folder: Path) -> list[str]:
    """A page for each: what it is, its programme, its picture."""
    import property_pages
    import site_pictures

    folder.mkdir()
    made = []
    for kind in sorted(mechanisms.REGISTRY.values(), key=lambda kind: kind.title.lower()):
        lines = [f"# {kind.title}", "", f"*{fo.properties.in_short(kind)}*. Source: {kind.source}.", ""]
        lines += [*property_pages.documented(kind), ""]
        drawn = _DRAWN.get(kind.name, kind.name)
        figure, caption = site_pictures.two_users(mechanisms.one(drawn) if isinstance(drawn, str) else drawn())
        figure.savefig(folder / f"{kind.name}.png", dpi=130)
        lines += [f"![What two users can have, and what they get]({kind.name}.png)", "", caption, ""]
        lines += [f"In Python `fairopt.{kind.__name__}`, on the command line `-m {kind.name}`.", ""]
        lines += [f"## Is {kind.title} envy-free, strategy-proof, ...?", ""]
        claims = [(f"[{one.property}](../properties/{one.property}.md)", one) for one in kind.claims]
        lines += [*(property_pages.claimed("property", claims) or ["No property is claimed."]), ""]
        (folder / f"{kind.name}.md").write_text("\n".join(lines), encoding="utf-8")
        made.append(f"- [{kind.title}](mechanisms/{kind.name}.md): {fo.properties.in_short(kind)}")
    return made


def _commands(folder: Path) -> list[str]:
    """A page for every command: its help."""
    folder.mkdir()
    made = []
    (parsers,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    texts = {one.dest: one.help or "" for one in parsers._choices_actions}
    for name, command in parsers.choices.items():
        body = f"# fairopt {name}\n\n{texts[name]}\n\n```text\n{command.format_help()}```\n"
        (folder / f"{name}.md").write_text(body, encoding="utf-8")
        made.append(f"- [fairopt {name}](commands/{name}.md): {texts[name]}")
    return made


def _api(folder: Path) -> list[str]:
    """Everything public, by what it is for."""
    folder.mkdir()
    made = []
    for page, (title, names) in _API.items():
        if isinstance(names, str):
            module = getattr(fo, names)
            things = [f"fairopt.{names}.{name}" for name in module.__all__]
        else:
            things = [f"fairopt.{name}" for name in names]
        lines = [f"# {title}", ""]
        for thing in things:
            lines += [f"## `{thing}`", "", "```{eval-rst}", *_directive(thing), "```", ""]
        (folder / f"{page}.md").write_text("\n".join(lines), encoding="utf-8")
        shown = ", ".join(f"`{one.rpartition('.')[2]}`" for one in things[:7])
        made.append(f"- [{title}](api/{page}.md): {shown}{', ...' if len(things) > 7 else ''}")
    return made


def _directive(thing: str) -> list[str]:
    module, _, name = thing.rpartition(".")
    found = getattr(importlib.import_module(module) if module != "fairopt.plot" else fo.plot, name)
    home = getattr(found, "__module__", module)
    if inspect.isclass(found):
        return [f".. autoclass:: {home}.{found.__qualname__}", "   :members:", "   :no-index:"]
    if callable(found):
        return [f".. autofunction:: {home}.{found.__qualname__}", "   :no-index:"]
    return [f"A constant: ``{str(found)[:200]!r}``"] if isinstance(found, str | float) else ["A registry."]


def _papers(folder: Path) -> list[str]:
    """A page a paper: every claim, what is printed, ours, what is right."""
    folder.mkdir()
    frame = papers.check()
    made = []
    columns = ["item", "where", "claim", "printed", "ours", "correct", "verdict"]
    for key, group in frame.groupby("paper", sort=False):
        name = str(key).lower().replace(" ", "-")
        shown = group[columns].astype(str).apply(lambda column: column.str.replace("|", r"\|", regex=False))
        about = papers.ABOUT[str(key)]
        body = f"# {key}\n\n{about}\n\n{len(group)} claims, as `fairopt claims` checks them.\n\n"
        body += str(shown.to_markdown(index=False, disable_numparse=True))
        (folder / f"{name}.md").write_text(body + "\n", encoding="utf-8")
        wrong = int(group["verdict"].str.startswith(papers.PAPER_IN_ERROR).sum())
        errs = f", {wrong} of them in error" if wrong else ""
        made.append(f"- [{key}](papers/{name}.md): {len(group)} claims{errs}. {about}")
    return made


def _figures(folder: Path) -> list[str]:
    """Every figure: its caption, its picture where one was drawn, and the code that draws it."""
    folder.mkdir(exist_ok=True)
    made = []
    root = Path(__file__).resolve().parent.parent
    for name, path in figures.known().items():
        code = path.read_text(encoding="utf-8")
        caption = figures.caption(name)
        lines = [f"# {name}", "", caption, "", f"    fairopt figures {name}", ""]
        picture = next((one for place in _DRAWN_IN if (one := root / place / f"{name}.png").exists()), None)
        made.append(f"- [{name}](figures/{name}.md): {caption}")
        if picture is not None:
            shutil.copy(picture, folder)
            lines += [f"![{name}]({name}.png)", ""]
            with Image.open(picture) as drawn:  # letters of all figures are of one size
                width = round(_IN_LIST * drawn.width * 840 / max(drawn.width, 840))
            made += ["", f"  ```{{image}} figures/{name}.png", f"  :alt: {name}", f"  :width: {width}px", "  ```", ""]
        (folder / f"{name}.md").write_text("\n".join([*lines, "```python", code, "```", ""]), encoding="utf-8")
    return made


def _schemas(folder: Path) -> list[str]:
    """JSON Schemas for editors."""
    folder.mkdir()
    made = []
    for name, schema in SCHEMAS.items():
        text = json.dumps(schema(), indent=1)
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")
        body = (
            f"# Schema of {name} files\n\nSave it as `{name}.schema.json`, and name it in your editor's settings.\n\n"
        )
        (folder / f"{name}.md").write_text(f"{body}```json\n{text}\n```\n", encoding="utf-8")
        made.append(f"- [{name} files](schemas/{name}.md)")
    return made
