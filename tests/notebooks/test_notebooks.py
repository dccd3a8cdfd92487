"""Every notebook runs from top to bottom, and is kept without outputs."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

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
ROOT = Path(__file__).parents[2]
EVERY = sorted((ROOT / "notebooks").glob("*.ipynb"))
RUN = [path if path.stem == "quickstart" else pytest.param(path, marks=pytest.mark.long) for path in EVERY]


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)


# The kernel talks over sockets that the garbage collector closes.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning:zmq")
@pytest.mark.parametrize(
    "path",
    [p if p.stem == "quickstart" else pytest.param(p, marks=pytest.mark.long) for p in EVERY],
    ids=lambda p: p.stem,
)
def test_it_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # settings of whoever runs the tests stay out
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(CONTENT))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    assert not [output.text for output in shown if output.output_type == "stream" and "Warning" in output.text]
    results = [output for output in shown if output.output_type in ("display_data", "execute_result")]
    kinds = {kind for output in results for kind in output.data}
    assert "text/html" in kinds  # tables without being asked for
    assert "image/png" in kinds or "plot" not in "".join(cell.source for cell in notebook.cells[:-1])
