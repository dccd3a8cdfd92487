"""One algorithm a page: every page has its parts and the code's defaults, and no room is left out."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OVERVIEW = ROOT / "docs" / "algorithms.md"
PAGES = sorted((ROOT / "docs" / "algorithms").glob("*.md"))
PARTS = ["Problem", "Symbols", "Steps", "When it is taken", "Cost", "Convergence", "Where it fails", "Source"]
OPTION = re.compile(r"^\| `((?:\w+\.)?\w+)\.(\w+)` \| (.+?) \|", re.MULTILINE)
#: Rooms of the engines and of the game.
ROOMS = [
    folder
    for above in ("engines", "game")
    for folder in sorted((ROOT / "fairopt" / above).rglob("*"))
    if (folder / "__init__.py").exists() and folder.name != "model"
]


def options(name: str) -> Iterator[object]:
    """Every class of options of a name, `file.Class` or `Class`, with its defaults."""
    file, _, wanted = name.rpartition(".")
    for path in sorted((ROOT / "fairopt").rglob("*.py")):
        if f"class {wanted}" in path.read_text(encoding="utf-8") and file in ("", path.stem, path.parent.name):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield getattr(importlib.import_module(module), wanted)


def default(name: str, field: str) -> object:
    """What the code takes, of a name that means one class only."""
    found = [of() for of in options(name) if callable(of)]
    assert len(found) == 1, f"{name}: {len(found)} classes"
    return getattr(found[0], field)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_page_has_its_parts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == PARTS
    assert re.search(r"\]\(\.\./\.\./fairopt/[\w/]+\.py", text)
    assert f"](algorithms/{path.name})" in OVERVIEW.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_defaults_are_those_of_the_code(path: Path) -> None:
    for name, field, shown in OPTION.findall(path.read_text(encoding="utf-8")):
        value = default(name, field)
        assert ast.literal_eval(shown) == value, f"{name}.{field} is {value!r}"


def test_defaults_are_looked_at() -> None:
    found = [row for path in PAGES for row in OPTION.findall(path.read_text(encoding="utf-8"))]
    assert len(found) > 100
    assert default("EquilibriumOptions", "many_users") == 500
    with pytest.raises(AssertionError, match="2 classes"):
        default("StepOptions", "part")


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(ROOT / "fairopt")))
def test_every_room_is_on_some_page(room: Path) -> None:
    inside = f"{room.relative_to(ROOT)}/"
    linked = [link for path in PAGES for link in re.findall(r"\]\(\.\./\.\./([\w/]+\.py)", path.read_text("utf-8"))]
    assert any(link.rpartition("/")[0] + "/" == inside for link in linked)
