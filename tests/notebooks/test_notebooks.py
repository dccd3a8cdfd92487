"""Every notebook runs from top to bottom, is kept without outputs, and ends with something to try."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
EVERY = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_some() -> None:
    names = {path.stem for path in EVERY}
    assert names >= {"quickstart", "alpha_tradeoff", "convergence", "day_in_a_cluster", "fairness_properties", "traces"}


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs_and_ends_with_something_to_try(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert notebook.cells[-1].cell_type == "markdown"
    assert "## Try this" in notebook.cells[-1].source


# The kernel talks over sockets that the garbage collector closes.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning:zmq")
@pytest.mark.slow
@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))  # settings of whoever runs the tests stay out
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    assert not [output.text for output in shown if output.output_type == "stream" and "Warning" in output.text]
    results = [output for output in shown if output.output_type in ("display_data", "execute_result")]
    kinds = {kind for output in results for kind in output.data}
    assert "text/html" in kinds  # tables without being asked for
    assert "image/png" in kinds or "plot" not in "".join(cell.source for cell in notebook.cells)
