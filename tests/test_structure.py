"""The tool that counts the structure of a checkout, and what it must find in this one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structure_tool", ROOT / "tools" / "structure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two rooms; a circle through `TYPE_CHECKING` and a function, an arrow up, and a function with branches."""
    files = {
        "pyproject.toml": """
            [tool.importlinter]
            root_package = "house"
            [[tool.importlinter.contracts]]
            containers = ["house"]
            layers = ["attic", "cellar | shed"]
        """,
        "docs/words.md": "How `wrong` is it? Wrong: a column that\nlikes sifting, `phantom\nuser` or phantom\nuser.",
        "house/__init__.py": "from . import attic\nfrom .attic import top",
        "house/attic/__init__.py": "",
        "house/attic/top.py": """
            from typing import TYPE_CHECKING
            if TYPE_CHECKING:
                from .middle import Shelf
            import house.cellar.box
            class Box: ...
        """,
        "house/attic/middle.py": """
            def later():
                from ..cellar import box
                def inner(): return 1 if box else 2
            class Shelf: ...
        """,
        "house/cellar/__init__.py": "",
        "house/cellar/box.py": """
            def hard(rows, wrong):
                for row in rows:
                    if row and wrong or not row:
                        return [x for x in row if x if wrong]
                    try:
                        match row:
                            case 1: pass
                            case _: pass
                    except ValueError:
                        while wrong: pass
            def up():
                from ..attic.top import Box
            class Box: ...
        """,
        "house/shed/__init__.py": "",
        "house/shed/box.py": "from ..cellar import box",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text), encoding="utf-8")
    return tmp_path


def test_a_checkout_is_counted(tool: ModuleType, checkout: Path) -> None:
    rows = tool.structure(checkout)
    assert rows["rooms"] == "3"
    assert rows["modules"] == "8"
    assert rows["arrows"] == "7"
    assert rows["arrows that run up"] == ("2; house.cellar.box -> house.attic.top; house.shed.box -> house.cellar.box")
    assert rows["circles of modules"] == "1; house.attic.middle, house.attic.top, house.cellar.box"
    assert rows["functions"] == "4"
    assert rows["largest function"] == "10 lines, house.cellar.box.hard"
    # for, if, and, or, two ifs of the comprehension, except, while, two cases
    assert rows["largest complexity"] == "11, house.cellar.box.hard"
    assert rows["functions above 15"] == "0"
    assert rows["module names more than once"] == "1: box 2"
    assert rows["class names more than once"] == "1: Box 2"
    assert rows["  wrong (name)"] == "5"
    assert rows["  sifting"] == "1"
    assert rows["  phantom user"] == "2"


def test_layers_without_containers(tool: ModuleType) -> None:
    linter = {"contracts": [{"layers": ["house.attic", "house.cellar.box | house.cellar"]}]}
    (layers,) = tool.layered(linter)
    assert layers == {"house.attic": 0, "house.cellar.box": 1, "house.cellar": 1}
    assert tool.runs_up("house.cellar.box.lid", "house.attic", layers)
    assert tool.runs_up("house.cellar.box", "house.cellar.door", layers)
    assert not tool.runs_up("house.attic.top", "house.cellar", layers)
    assert not tool.runs_up("house.cellar", "house", layers)


def test_this_house_has_no_circle(tool: ModuleType) -> None:
    """Imports for type checkers and inside functions count: the linter's contracts may leave them out."""
    assert tool.structure(ROOT)["circles of modules"] == "0"


def test_the_table(
    tool: ModuleType, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["structure.py", str(checkout)])
    tool.main()
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == checkout.name
    assert "rooms                         3" in shown


@pytest.mark.parametrize(("given", "code", "message"), [("--help", 0, "DIR"), ("no/where", 2, "has no pyproject.toml")])
def test_help_and_folders_that_are_no_checkout(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    given: str, code: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("sys.argv", ["structure.py", given])
    with pytest.raises(SystemExit) as ended:
        tool.main()
    assert ended.value.code == code
    assert message in "".join(capsys.readouterr())
