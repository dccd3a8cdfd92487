"""Every notebook runs from top to bottom, and is kept without outputs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from processes import ROOT, python

from fairopt.workloads import open_workload

#: Run behind the last cell of every notebook: whom its clusters and days are shared among, and what its pictures show.
CONTENT = """
import gc
from matplotlib.figure import Figure
from fairopt import Cluster
from fairopt.scheduling import Workload

everything = gc.get_objects()
days = [one for one in everything if issubclass(type(one), Workload)]
shared = [value for value in globals().values() if isinstance(value, Cluster)]
assert all(len(set(day.job_user)) > 1 for day in days), "a day of one user"
assert all(len(cluster.users) > 1 for cluster in shared), "a cluster of one user"
axes = [one for figure in everything if issubclass(type(figure), Figure) for one in figure.axes]
drawn = [[*one.lines, *one.patches, *one.collections, *one.images] for one in axes]
empty = [one for one, parts in zip(axes, drawn) if not parts or any(not len(line.get_xdata()) for line in one.lines)]
assert not empty, "an empty panel"
"""
EVERY = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_exercises_have_answers_that_run(path: Path) -> None:
    """Behind "Try this" there are cells, which run with the others; what the exercises name has its place in them."""
    cells = nbformat.read(path, as_version=4).cells
    [at] = [k for k, cell in enumerate(cells) if "## Try this" in cell.source]
    answers = "".join(cell.source for cell in cells[at + 1 :] if cell.cell_type == "code")
    assert cells[at + 1].source.startswith("**Answers.**")
    keywords = {
        word for code in re.findall(r"`([^`]+)`", cells[at].source) for word in re.findall(r"\w+(?==[^=])", code)
    }
    assert {word for word in keywords if f"{word}=" not in answers} == set()


def test_a_bar_in_a_notebook_leaves_the_filters_of_warnings_alone() -> None:
    """They hold for all threads, and the bar of a compilation is shown from its own: a cell once printed a warning."""
    script = """
import warnings, ipykernel.zmqshell
from fairopt.base import progress as _progress
warnings.catch_warnings = warnings.simplefilter = warnings.filterwarnings = None
print(type(_progress.tqdm(total=1)).__name__)
"""
    assert python("-W", "error", "-c", script).endswith("tqdm_notebook\n")


@pytest.mark.parametrize("seed", range(4))
def test_the_day_of_the_notebook_has_users_whatever_its_seed(seed: int) -> None:
    text = (ROOT / "notebooks" / "day_in_a_cluster.ipynb").read_text(encoding="utf-8")
    [name] = re.findall(r"open_workload\(\\\"(google-day\?[^\"\\]*&seed=)", text)
    assert len(set(open_workload(f"{name}{seed}").job_user)) > 10


# The kernel talks over sockets that the garbage collector closes.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning:zmq")
@pytest.mark.parametrize(
    "path",
    [path if path.stem == "quickstart" else pytest.param(path, marks=pytest.mark.long) for path in EVERY],
    ids=lambda path: path.stem,
)
def test_it_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # settings of whoever runs the tests stay out
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(CONTENT))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]  # an error would have been raised
    assert not [output.text for output in shown if "Warning" in output.get("text", "")]
    kinds = {kind for output in shown for kind in output.get("data", ())}
    assert "text/html" in kinds  # tables without being asked for
    assert "image/png" in kinds or "plot" not in "".join(cell.source for cell in notebook.cells[:-1])
