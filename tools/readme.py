"""Regenerate the README: run its code and commands, and insert their output.

    python tools/readme.py                      # (`make readme`; tests say where it is due)

A block of `python` followed by one of `text` is run, and its output replaces the text; in a block of `console` every
line behind `$ ` is run. Tables between `<!-- name -->` and `<!-- /name -->` are generated.

Pages of docs/ (`PAGES`, `WITH_FILES`), the picture of docs/first-task.md, `fairopt/__init__.pyi` (names that
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
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent))

import property_pages

import fairopt as fo
from fairopt.app.cli import main as fairopt_command
from fairopt.report import mechanism_table

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_NAMES = (
    "index", "quickstart", "choose", "find-alpha", "papers", "utilities", "many", "inverse",
    "given",
    "properties", "properties-table", "simulation", "sensitivity", "equilibria", "mechanisms",
)  # fmt: skip
PAGES = tuple(ROOT / "docs" / f"{page}.md" for page in _NAMES)
#: Pages that run in a folder with files of their own, which are stored in docs/PAGE.
WITH_FILES = {ROOT / "docs" / "first-task.md": ("cluster.csv",), ROOT / "docs" / "explorer.md": ("snapshot.json",)}
#: Mechanisms in docs/choose.md.
_CHOSEN = ("alpha-fair", "alphapf-vds", "ceei", "drf", "drfh", "ps-dsf", "tsf", "utilitarian")
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
    tables = {"mechanisms": _mechanisms, "four-mechanisms": _four, "errors": _errors}
    tables |= {"gives-up": _gives_up, "survey": property_pages.survey}
    tables |= {"survey-papers": property_pages.papers, "survey-budget": property_pages.budget}
    for name, table in tables.items():
        section = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if section.search(text):
            body = table()
            text = section.sub(lambda found, body=body: f"{found[1]}{body}\n{found[2]}", text)
    return text


def in_folder(page: Path, text: str, folder: Path) -> str:
    """Page with its output updated, run in a folder with its files, which receives new ones."""
    for name in WITH_FILES[page]:
        shutil.copy(page.with_suffix("") / name, folder)
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


def _gives_up() -> str:
    """Violated properties of the mechanisms in docs/choose.md, each linked to its smallest counterexample."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "docs" / "witnesses").glob("*.json")):
        one = fo.properties.Witness.load(path)
        if one.mechanism.startswith(_CHOSEN):
            title = fo.mechanisms.one(one.mechanism).title
            given = "".join(one.mechanism.partition("(")[1:])
            found.setdefault(title, []).append(f"[{one.property}](witnesses/{path.name}){' ' * bool(given)}{given}")
    lines = [f"- **{title}**: {', '.join(every)}" for title, every in found.items()]
    return "\n".join(part for line in lines for part in wrap(line, 120, subsequent_indent="  ", break_on_hyphens=False))


def _errors() -> str:
    frame = fo.papers.check()
    wrong = frame[frame["verdict"].str.startswith(fo.papers.PAPER_IN_ERROR)]
    columns = ["item", "paper", "where", "claim", "printed", "correct"]
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
