"""Regenerate the README: run its code and commands, and insert their output.

    python tools/readme.py                      # (`make readme`; tests say where it is due)

A block of `python` followed by one of `text` is run, and its output replaces the text; in a block of `console` every
line behind `$ ` is run. Tables between `<!-- name -->` and `<!-- /name -->` are generated.

Pages of docs/ (`PAGES`, `WITH_FILES`), the pictures that two of them make, `fairopt/__init__.pyi` (names that
`fairopt/__init__.py` takes from the registry of mechanisms, for type checkers) and tests/public.txt (signatures of all
public names) are regenerated as well.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import wrap
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent))

import pandas as pd
import property_pages

import fairopt as fo
from fairopt.app.cli import main as fairopt_command
from fairopt.report import mechanism_table

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_NAMES = (
    "index", "quickstart", "choose", "find-alpha", "papers", "utilities", "many", "inverse",
    "given", "columns",
    "properties", "properties-table", "simulation", "sensitivity", "equilibria", "mechanisms", "what-tests",
    "whole-tasks",
)  # fmt: skip
PAGES = tuple(ROOT / "docs" / f"{page}.md" for page in _NAMES)
#: Pages that run in a folder with files of their own, which are stored in docs/PAGE.
WITH_FILES: dict[Path, tuple[str, ...]] = {
    ROOT / "docs" / "first-task.md": ("cluster.csv",),
    ROOT / "docs" / "explorer.md": ("snapshot.json",),
    ROOT / "docs" / "operators.md": ("week", "slurm"),
    ROOT / "docs" / "course.md": (),
}
#: Mechanisms in docs/choose.md.
_CHOSEN = (
    "drf", "ceei", "drfh", "tsf", "ps-dsf", "alphapf-vds(alpha=0.5)", "alphapf-vds(alpha=1.0)",
    "alphapf-vds(alpha=4.0)", "alpha-fair(alpha=2.0)", "utilitarian",
)  # fmt: skip
#: Folders of tests of mechanisms; those of other folders merely use them.
_ROOMS_OF_TESTS = ("mechanisms", "certificates", "game")
STUB = ROOT / "fairopt" / "__init__.pyi"
#: Public names and signatures, which docs/stability.md promises to keep.
PUBLIC = ROOT / "tests" / "public.txt"


def render(text: str) -> str:
    """README with all outputs and generated tables updated."""
    space: dict[str, object] = {}
    text = re.sub(
        r"(```python\n(.*?)```\n+)```text\n.*?```",
        lambda found: f"{found[1]}```text\n{_printed(lambda: exec(found[2], space))}```",
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r"```console\n(.*?)```", lambda found: f"```console\n{_session(found[1])}```", text, flags=re.DOTALL)
    tables = {"mechanisms": _mechanisms, "four-mechanisms": _four, "errors": _errors, "claims": _claims}
    tables |= {"known": _known, "tested": _tested, "survey": property_pages.survey}
    tables |= {"survey-papers": property_pages.papers, "survey-budget": property_pages.budget}
    for name, table in tables.items():
        section = re.compile(rf"(<!-- {name} -->\n).*?( *<!-- /{name} -->)", re.DOTALL)
        if section.search(text):
            body = table()
            text = section.sub(lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text)
    return text


def in_folder(page: Path, text: str, folder: Path) -> str:
    """Page with its output updated, run in a folder with its files, which receives new ones."""
    for name in WITH_FILES[page]:
        kept = page.with_suffix("") / name
        shutil.copytree(kept, folder / name) if kept.is_dir() else shutil.copy(kept, folder)
    with contextlib.chdir(folder):
        return render(text)


def stub() -> str:
    """Stub of the package's namespace for type checkers."""
    where = dict(fo._HOME)
    where |= {name: kind.__module__.partition(".")[2] for name, kind in fo._mechanisms().items()}
    lines = {f"from .{module} import {name} as {name}" for name, module in where.items()}
    for name, path in fo._MODULES.items():
        package, _, last = path.rpartition(".")
        lines.add(f"from .{package} import {last} as {name}")
    lines.add("from .base.version import __version__ as __version__")
    return "# Written by `make readme`: do not edit.\n\n" + "\n".join(sorted(lines)) + "\n"


def public() -> str:
    """List of public names, one line each, with the signature of callables."""
    lines = []
    for name in fo.__all__:
        thing = getattr(fo, name)
        lines.append(f"{name}{_signature(thing)}")
        if inspect.isclass(thing) and name in fo._HOME:  # mechanisms have the methods of docs/plugins.md only
            own = {one for above in thing.__mro__ if above.__module__.startswith("fairopt") for one in vars(above)}
            members = [(one, getattr(thing, one)) for one in own if not one.startswith("_") and hasattr(thing, one)]
            lines += sorted(f"{name}.{one}{_signature(member)}" for one, member in members)
        elif inspect.ismodule(thing):
            lines += sorted(f"{name}.{one}" for one in getattr(thing, "__all__", ()))
    return re.sub(r" at 0x\w+", "", "".join(f"{line}\n" for line in lines))


def _signature(thing: object) -> str:
    return str(inspect.signature(thing)) if callable(thing) else ""


def _printed(run: Callable[[], object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), mock.patch.dict(os.environ):
        os.environ.pop("COLUMNS", None)  # output is not limited to a terminal's width
        run()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _session(block: str) -> str:
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return "".join(
        f"$ {line}\n{_printed(lambda line=line: fairopt_command(shlex.split(line)[1:]))}" for line in commands
    )


def _mechanisms() -> str:
    return str(mechanism_table().frame.to_markdown(index=False))


def _four() -> str:
    """Rows of the table in the README."""
    frame = mechanism_table().frame
    return str(frame[frame["name"].isin(("alpha-fair", "alphapf-vds", "drf", "ps-dsf"))].to_markdown(index=False))


def _known() -> str:
    """Proved, refuted and unknown properties of the mechanisms in docs/choose.md."""
    lines = []
    for written in _CHOSEN:
        known = property_pages.known(written)
        lines += [f"- **{fo.mechanisms.one(written)}**", *(f"  - {one}" for one in known)]
    options = {"subsequent_indent": "    ", "break_on_hyphens": False, "break_long_words": False}
    wrapped = [wrap(line, 120, **options) for line in lines]
    return "\n".join(part for line in wrapped for part in line)


def _tested() -> str:
    """Table by mechanism: tests that name it, claims that are searched and replayed, and claims of papers."""
    lines = ["| mechanism | tests that name it | properties proved, refuted | claims of papers |", "|---|---|---|---|"]
    for kind in sorted(fo.mechanisms.REGISTRY.values(), key=lambda kind: kind.title.lower()):
        named = re.compile(rf"\b{kind.__name__}\b|['\",]{re.escape(kind.name)}['\"(,]")
        found = []
        for room in _ROOMS_OF_TESTS:
            files = sorted((ROOT / "tests" / room).glob("test_*.py"))
            own = [one.stem.removeprefix("test_") for one in files if named.search(one.read_text(encoding="utf-8"))]
            if own:
                found.append(f"{room}: {'most' if 2 * len(own) > len(files) else ', '.join(own)}")
        held = len({one.property for one in kind.claims if one.holds})
        refuted = len({one.property for one in kind.claims if not one.holds})
        said = ", ".join(f"{paper} {many}" for paper, many in _claims_about(kind.name).items())
        lines.append(f"| {kind.title} | {'; '.join(found)} | {held}, {refuted} | {said} |")
    return "\n".join(lines)


def _claims_about(name: str) -> dict[str, int]:
    """Claims of papers computed with a mechanism, by paper."""
    found: dict[str, int] = {}
    for path in sorted((ROOT / "fairopt" / "harness" / "papers" / "data").glob("*.toml")):
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        for group in said["group"]:
            for one in group["claims"]:
                paper = {"paper": said["paper"], **group, **one}["paper"]
                if any(str(part).partition("(")[0] == name for part in one["ours"]):
                    found[paper] = found.get(paper, 0) + 1
    return {paper: found[paper] for paper in sorted(found) if paper.isupper()}


def _claims() -> str:
    """Sentence on all statements of the papers, as an item of a list."""
    said = f"  {fo.papers.summary(_checked())}."
    return "\n".join(wrap(said, 120, subsequent_indent="  "))


@cache
def _checked() -> pd.DataFrame:
    return fo.papers.check()


def _errors() -> str:
    frame = _checked()
    wrong = frame[frame["verdict"].str.startswith(fo.papers.PAPER_IN_ERROR)]
    columns = ["statement", "paper", "where", "claim", "printed", "correct"]
    return str(wrong[columns].to_markdown(index=False, disable_numparse=True))


if __name__ == "__main__":
    for page in (README, *PAGES):
        page.write_text(render(page.read_text(encoding="utf-8")), encoding="utf-8")
    for page in WITH_FILES:
        with tempfile.TemporaryDirectory() as place:
            page.write_text(in_folder(page, page.read_text(encoding="utf-8"), Path(place)), encoding="utf-8")
            for picture in Path(place).glob("*.png"):
                shutil.copy(picture, ROOT / "docs")
    STUB.write_text(stub(), encoding="utf-8")
    PUBLIC.write_text(public(), encoding="utf-8")
