"""docs/architecture.md tells the truth: its links hit what they name, its rooms are those of the package."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import fairopt as fo
from fairopt.model.polytope import Polytope

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "algorithms").glob("*.md")])
FOLDERS = ("fairopt", "tests", "tools", "benchmarks", "paper_figures")
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("links_tool", ROOT / "tools" / "links.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_linked_lines_define_what_the_link_says(tool: ModuleType, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name, file, number in tool.LINK.findall(text):
        line = (path.parent / file).read_text(encoding="utf-8").splitlines()[int(number) - 1]
        defined = rf"\s*(def|class) {name.split('.')[-1]}\b|{name} ?[:=]"
        assert re.match(defined, line), f"{file}:{number} is {line!r}, not {name}; run: python tools/links.py"
    assert tool.render(text, path.parent) == text, "run: python tools/links.py"


def test_no_link_to_a_line_is_overlooked(tool: ModuleType) -> None:
    every = [link for path in DOCS for link in re.findall(r"\.py#L\d+", path.read_text(encoding="utf-8"))]
    assert len(every) == sum(len(tool.LINK.findall(path.read_text(encoding="utf-8"))) for path in DOCS)
    assert len(tool.LINK.findall(TEXT)) > 20


def test_wrong_lines_are_put_right_and_lost_names_noticed(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text("TOP: int = 1\n\n@decorated\nclass Box:\n    @property\n    def lid(self): ...\n")
    assert (
        tool.render("[`Box.lid`](box.py#L1), [TOP](box.py#L7)", tmp_path) == "[`Box.lid`](box.py#L6), [TOP](box.py#L1)"
    )
    with pytest.raises(LookupError, match=r"box.py does not define Box.key"):
        tool.render("[Box.key](box.py#L1)", tmp_path)


@pytest.mark.parametrize("path", [*DOCS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_inside_the_project_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#\s]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", [*DOCS, ROOT / "README.md"], ids=lambda path: path.name)
def test_files_that_docs_name_are_there(path: Path) -> None:
    """Between backquotes, with as much of the path as says which one is meant; capitals stand for a name."""
    there = [f"/{file.relative_to(ROOT)}" for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    for name in re.findall(r"`([a-z_0-9/.]+\.py)`", path.read_text(encoding="utf-8")):
        assert any(file.endswith(f"/{name}") for file in there), name


def test_the_layout_is_that_of_the_package() -> None:
    """Every room is in the diagram, in its place, and nothing that is not there."""
    layout = TEXT.partition("```text\nfairopt/\n")[2].partition("paper_figures/")[0]
    shown, room = set(), ""
    for line in layout.splitlines():
        name = line.split()[0]
        if line.startswith("    "):
            shown.add(f"{room}{name}")
        else:
            room = name
            shown.add(name)
    package = ROOT / "fairopt"
    rooms = {f"{path.parent.relative_to(package).as_posix()}/" for path in package.rglob("__init__.py")} - {"./"}
    assert {name for name in shown if name.endswith("/")} == rooms
    assert all((package / name).exists() for name in shown)


def test_the_followed_number() -> None:
    cluster = fo.Cluster(capacity=[[9, 18]], demand=[[1, 4], [3, 1]])
    assert cluster.demand[1, 0] == 3
    assert cluster.gamma0[1, 0] == 3
    assert cluster.dominant_share_per_task[1] == pytest.approx(1 / 3)
    use = Polytope(cluster, cluster.max_tasks).use.toarray()
    np.testing.assert_allclose(use[:, 1], [1, 1 / 6])
    allocation = fo.DRF().solve(cluster)
    assert allocation.stats.solver == "water filling"
    np.testing.assert_allclose(allocation.user_tasks, [3, 2])
    np.testing.assert_allclose(allocation.usage[:, 0, 0], [3, 6])
    assert allocation.to_frame()["dominant_share"].round(6).tolist() == [0.666667, 0.666667]


def test_a_room_is_not_named_like_a_public_function() -> None:
    """A subpackage becomes an attribute of its package, and would hide the function, or not."""
    import fairopt.game

    rooms = {path.parent.name for path in (ROOT / "fairopt" / "game").glob("*/__init__.py")}
    assert not rooms & set(fairopt.game.__all__)


def test_tests_that_pages_name_exist() -> None:
    """`tests/x.py::test_y`, and behind it `::test_z` of the same file."""
    named = 0
    for path in DOCS:
        file = ""
        for where, test in re.findall(r"`(tests/[\w/]+\.py)?::(test_\w+)`", path.read_text(encoding="utf-8")):
            file = where or file
            assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{path.name}: {file}::{test}"
            named += 1
    assert named > 50
