"""Generated pages of the site: mechanisms, properties, command line, API, papers, figures, schemas.

`write(target)` adds them to the source that `tools/build_site.py` assembles. A comment `<!-- pages: mechanisms -->` in
a page of docs/ marks the place of their list.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import cvxpy as cp
import numpy as np
import pandas as pd
import property_pages
from matplotlib.figure import Figure
from PIL import Image

import fairopt as fo
from fairopt import mechanisms
from fairopt.app.cli import main, parser
from fairopt.app.cli.reproduce import PAPERS, experiments_of, figures_of
from fairopt.harness import load, papers
from fairopt.harness.report import figures, judging
from fairopt.harness.report.schemas import SCHEMAS
from fairopt.properties._base import described

#: Page: name, title, entry in lists, and text.
Page = tuple[str, str, str, str]
_MARK = re.compile(r"<!-- pages: ([\w-]+) -->")
#: Figures, tables, theorems and sections that a text names.
_NUMBERED = re.compile(r"\b(figure|table|theorem|section)s? ((?:[\d.]+|[IVX]+)(?:(?:, | and | to )[\d.]+)*)")
#: Interactive clusters, as written by `fairopt explore FILE --out`.
_EXPLORER = re.compile(r"<!-- explorer: (\S+) -->")
#: Parameters with which mechanisms are drawn.
_DRAWN: dict[str, str | Callable[[], mechanisms.Mechanism]] = {
    "alpha-fair": "alpha-fair(alpha=2)", "alphapf-vds": "alphapf-vds(alpha=2)", "fds": "fds(beta=2,lam=-2)",
    "gfj": "gfj(beta=4,lam=-2)", "guaranteed-alpha-fair": "guaranteed-alpha-fair(alpha=0.5,part=1)",
    "mqdrf": lambda: fo.MQDRF(shares=(0.7, 0.4), sizes=(1, 1), levels=(1, 2)),
    "concave-utility": lambda: fo.ConcaveUtility(cp.log1p), "concave-game": lambda: fo.ConcaveGame(cp.log1p),
}  # fmt: skip
#: Clusters of pictures: one server for mechanisms on the pool, and two different ones for others.
_POOL = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], resources=["CPU", "RAM"], users=["A", "B"])
_SERVERS = fo.Cluster([[9, 6], [4, 18]], [[1, 2], [2, 1]], resources=["CPU", "RAM"], users=["A", "B"])
#: Cluster of one resource with task limits, and one with placement constraints.
_ONE = fo.Cluster([[15]], [[1], [1]], resources=["CPU"], users=["A", "B"], max_tasks=[5, 13])
_PLACED = fo.Cluster(
    [[6], [9]], [[1], [1]], resources=["CPU"], users=["A", "B"], eligible=[[True, False], [True, True]]
)
#: Alphas of mechanisms that have the parameter.
_ALPHAS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, np.inf)
#: Titles of papers that are not known by the abbreviation in their claims.
_TITLES = {"LEC": "A lecture on DRF", "found here": "Counterexamples found here"}
#: Folders of pictures of figures: drawn here, or shipped with the pages.
_DRAWN_IN = ("paper_figures/out", "docs/figures", "docs")
#: Scale in the list of figures for those up to 840 pixels wide.
_IN_LIST = 0.57
#: Groups of names on the pages of the API.
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
    """Write all pages, and insert lists of them where docs mark them."""
    lists = {
        "gallery": "- [Examples with their code](gallery/index.rst)",
        "notes": "- [Changelog](changelog.md)\n- [Contributing](contributing.md)",
    }
    for name, pages in {
        "properties": property_pages.pages, "mechanisms": _mechanisms, "commands": _commands, "api": _api,
        "papers": _papers, "figures": _figures, "schemas": _schemas,
    }.items():  # fmt: skip
        folder = target / name
        folder.mkdir(exist_ok=True)
        made = []
        for page, title, said, text in pages(folder):
            (folder / f"{page}.md").write_text(text, encoding="utf-8")
            made.append(f"- [{title}]({name}/{page}.md)" + f": {said}" * bool(said))
        lists[name] = "\n".join(made)
    for path in target.glob("*.md"):
        text = _MARK.sub(lambda found: lists[found[1]], path.read_text(encoding="utf-8"))
        path.write_text(_EXPLORER.sub(lambda found: _explorer(target, found[1]), text), encoding="utf-8")


def _explorer(target: Path, source: str) -> str:
    """HTML of an interactive cluster in a frame, with a link to it."""
    place = Path("_static", "explorers", re.sub(r"\W+", "-", source) + ".html")
    (target / place).parent.mkdir(parents=True, exist_ok=True)
    if status := main(["explore", source, "--out", str(target / place)]):
        raise RuntimeError(f"fairopt explore {source} --out ended with {status}")
    frame = f'<iframe class="explorer" src="{place.as_posix()}" title="the explorer: {source}"></iframe>'
    return f'{frame}\n\n<p><a href="{place.as_posix()}">Open it on a page of its own</a></p>'


def _mechanisms(folder: Path) -> Iterator[Page]:
    """Pages of mechanisms: docstring, program and picture."""
    for kind in sorted(mechanisms.REGISTRY.values(), key=lambda kind: kind.title.lower()):
        short = fo.properties.in_short(kind)
        drawn = _DRAWN.get(kind.name, kind.name)
        figure, caption = _two_users(mechanisms.one(drawn) if isinstance(drawn, str) else drawn())
        figure.savefig(folder / f"{kind.name}.png", dpi=130)
        claims = [(f"[{each.property}](../properties/{each.property}.md)", each) for each in kind.claims]
        lines = [
            *(f"# {kind.title}", "", f"*{short}*. Source: {kind.source}.", "", *property_pages.documented(kind), ""),
            *(f"![What two users can have, and what they get]({kind.name}.png)", "", caption, ""),
            *(f"In Python `fairopt.{kind.__name__}`, on the command line `-m {kind.name}`.", ""),
            *(f"## Is {kind.title} envy-free, strategy-proof, ...?", ""),
            *(property_pages.claimed("property", claims) or ["No property is claimed."]),
        ]
        for written in dict.fromkeys(property_pages.rows()["mechanism"]):
            if type(one := mechanisms.one(written)) is kind:
                lines += ["", f"**{one}** by the [survey](../properties-table.md):", ""]
                lines += [f"- {each}" for each in property_pages.known(written, "../")]
        yield kind.name, kind.title, short, "\n".join(lines) + "\n"


def _two_users(mechanism: mechanisms.Mechanism) -> tuple[Figure, str]:
    """Feasible set of two users with the allocation, and its caption; for one resource DRF or DRFH beside it."""
    if type(mechanism) in (fo.MaxMin, fo.CMMF):
        cluster, others = _ONE if type(mechanism) is fo.MaxMin else _PLACED, []
    elif mechanism.prepare(_SERVERS)[0] is not _SERVERS:
        cluster, others = _POOL, [fo.DRF()]
    else:
        cluster, others = _SERVERS, [fo.DRFH()]
    answers = [
        one.solve(cluster) for one in (mechanism, *others) if one is mechanism or type(one) is not type(mechanism)
    ]
    said = "The shaded area is what the two users can have; the mark is what the mechanism gives them. "
    said += f"Of {' and '.join(cluster.resources)}: {'; '.join(described(cluster, None))}."
    path = []
    if "alpha" in {field.name for field in dataclasses.fields(mechanism)}:
        path = [dataclasses.replace(mechanism, alpha=alpha).solve(cluster) for alpha in _ALPHAS]
        said += " The line is the path of alpha from 0 to infinity."
    return fo.plot.two_users(*answers, path=path), f"*{said}*"


def _commands(folder: Path) -> Iterator[Page]:
    """Pages of commands: their help."""
    (parsers,) = (one for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
    for one in parsers._choices_actions:
        name = f"fairopt {one.dest}"
        usage = parsers.choices[one.dest].format_help()
        yield one.dest, name, one.help or "", f"# {name}\n\n{one.help}\n\n```text\n{usage}```\n"


def _api(folder: Path) -> Iterator[Page]:
    """Pages of the API, by subject."""
    for page, (title, names) in _API.items():
        things = [f"{names}.{name}" for name in getattr(fo, names).__all__] if isinstance(names, str) else names
        lines = [f"# {title}", ""]
        for thing in things:
            lines += [f"## `fairopt.{thing}`", "", "```{eval-rst}", *_directive(thing), "```", ""]
        shown = ", ".join(f"`{one.rpartition('.')[2]}`" for one in things[:7]) + ", ..." * (len(things) > 7)
        yield page, title, shown, "\n".join(lines)


def _directive(thing: str) -> list[str]:
    found = attrgetter(thing)(fo)
    if not callable(found):
        return [f"A constant: ``{str(found)[:200]!r}``"] if isinstance(found, str | float) else ["A registry."]
    of = f"{found.__module__}.{found.__qualname__}"
    if inspect.isclass(found):
        return [f".. autoclass:: {of}", "   :members:", "   :no-index:"]
    return [f".. autofunction:: {of}", "   :no-index:"]


def _papers(folder: Path) -> Iterator[Page]:
    """Pages of papers: figures and tables with what the paper prints, verdicts and commands; other claims."""
    names = {key: name for name, key in PAPERS.items()}
    for key, group in papers.check().groupby("paper", sort=False):
        about, summary = papers.ABOUT[str(key)], papers.summary(group)
        lines, left = [f"# {_cited(str(key))}", about, f"`fairopt claims --paper '{key}'`: {summary}."], group
        for heading, needs, name in _sections(names.get(str(key))):
            rows = _of_section(group, heading, needs)
            left = left.drop(rows.index.intersection(left.index))
            lines += [f"## {heading}", *_shown_by(names[str(key)], needs, name, folder), _of_rows(rows)]
        more = ["item", "statement", "where", "claim", "printed", "ours", "correct", "verdict"]
        lines += ["## Other claims", _markdown(left[more])] if len(lines) > 3 else [_markdown(left[more])]
        said = f"{about} {summary[0].upper()}{summary[1:]}."
        yield str(key).lower().replace(" ", "-"), _cited(str(key)), said, "\n\n".join(lines) + "\n"


def _sections(name: str | None) -> Iterator[tuple[str, Sequence[str], str]]:
    """Headings of figures and tables of a paper, with their experiments, and the names of figures."""
    if name is None:
        return
    drawn = {figure: figures.module(figure).NEEDS for figure in figures_of(name)}
    for figure, needs in drawn.items():
        yield _title(figure), needs, figure
    for one in experiments_of(name):
        if not one.startswith(judging.WIDE) and one not in {need for needs in drawn.values() for need in needs}:
            experiment = load(one)
            yield f"{experiment.source.partition(':')[0]}: {experiment.title}", (one,), ""


def _of_section(frame: pd.DataFrame, heading: str, needs: Sequence[str]) -> pd.DataFrame:
    """Claims with a print that are judged by the experiments, or without any about a figure or table of the heading."""
    judged = {one.statement: one.experiment in needs for one in papers.judged()}
    named = frame["where"].map(lambda where: bool(_numbered(where) & _numbered(heading)))
    sources = {one.text.removeprefix("paper:") for need in needs for one in load(need).sources}
    if not _numbered(heading):  # as of the lecture
        named = frame["instance"].isin(sources)
    about = [judged.get(claim, also) for claim, also in zip(frame["claim"], named, strict=True)]
    return frame[(frame["verdict"] != papers.DERIVED) & np.array(about, dtype=bool)]


def _numbered(text: str) -> set[str]:
    """Figures, tables, theorems and sections that a text names: `figures 5 to 7` are figure 5, figure 6 and figure 7.

    A number at its beginning is that of a section.
    """
    found = {f"section {number}" for number in re.findall(r"^\d+(?:\.\d+)?(?=,|$)", text)}
    for kind, numbers in _NUMBERED.findall(text):
        for one in re.split(", | and ", numbers):
            low, _, high = one.partition(" to ")
            every = map(str, range(int(low), int(high) + 1)) if high else [low]
            found |= {f"{kind} {number}" for number in every}
    return found


def _shown_by(paper: str, needs: Sequence[str], name: str, folder: Path) -> Iterator[str]:
    """Caption and picture of a figure, and the commands that make it, or the table of an experiment."""
    commands = [f"fairopt sweep {' '.join(needs)}", f"fairopt {'figures' if name else 'tables'} {name or needs[0]}"]
    if name:
        yield figures.caption(name)
        if picture := _picture(name):
            shutil.copy(picture, folder)
            yield f"![{_title(name)}]({name}.png)"
    if any(one.experiment in needs for one in papers.judged()):
        commands.append(f"fairopt reproduce {paper} --explain {name or needs[0]}")
    yield "\n".join(["```sh", *commands, "```"])


def _of_rows(rows: pd.DataFrame) -> str:
    """Table of printed values beside those here; statements on simulations have intervals, others values."""
    here = rows["ours"].where(rows["ours"] != "", rows["note"])
    shown = rows[["statement", "where", "claim"]].assign(**{"the paper prints": rows["printed"], "here": here})
    return (
        _markdown(shown.assign(verdict=rows["verdict"])) if len(rows) else "No statement of the paper is judged by it."
    )


def _markdown(frame: pd.DataFrame) -> str:
    escaped = frame.astype(str).replace(r"\|", r"\|", regex=True)
    return str(escaped.to_markdown(index=False, disable_numparse=True))


def _picture(name: str) -> Path | None:
    """Picture of a figure, drawn here or shipped."""
    root = Path(__file__).resolve().parent.parent
    return next((one for place in _DRAWN_IN if (one := root / place / f"{name}.png").exists()), None)


def _cited(key: str) -> str:
    """Title of a paper's page."""
    return _TITLES.get(key, f"{key}: {papers.CITATIONS[key].removesuffix(f', {key}')}")


def _figures(folder: Path) -> Iterator[Page]:
    """Pages of figures: caption, picture if drawn, and source."""
    for name, path in figures.known().items():
        caption, title = figures.caption(name), _title(name)
        lines, listed = [f"# {title}", "", caption, "", f"    fairopt figures {name}", ""], [caption]
        if picture := _picture(name):
            shutil.copy(picture, folder)
            lines += [f"![{title}]({name}.png)", ""]
            with Image.open(picture) as drawn:  # the scale gives all figures letters of equal size
                width = round(_IN_LIST * drawn.width * 840 / max(drawn.width, 840))
            listed += [
                "",
                f"  ```{{image}} figures/{name}.png",
                f"  :alt: {title}",
                f"  :width: {width}px",
                "  ```",
                "",
            ]
        code = path.read_text(encoding="utf-8")
        yield name, title, "\n".join(listed), "\n".join([*lines, "```python", code, "```", ""])


def _title(name: str) -> str:
    """Title of a figure: what stands before the colon of its docstring."""
    said = " ".join((figures.module(name).__doc__ or name).partition("\n\n")[0].split())
    return said.partition(": ")[0].removesuffix(".")


def _schemas(folder: Path) -> Iterator[Page]:
    """Pages of JSON schemas for editors."""
    for name, schema in SCHEMAS.items():
        text = json.dumps(schema(), indent=1)
        (folder / f"{name}.schema.json").write_text(text, encoding="utf-8")
        about = f"Save it as `{name}.schema.json`, and name it in your editor's settings."
        yield name, f"{name} files", "", f"# Schema of {name} files\n\n{about}\n\n```json\n{text}\n```\n"
