"""Keys of cells: what determines an answer, traces and other files included, and nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import fairopt as fo
from fairopt import harness
from fairopt.harness import Elsewhere
from fairopt.harness.run import run

from .small import CELLS, load

VMS = "bitbrains?vms=3&servers=2"


def cell(path: Path, source: str, traces: Path | None = None) -> harness.Cell:
    """The only one of an experiment on one cluster."""
    text = f'title = "T"\nclusters.b = "{source}"\n[[grid]]\nmechanisms = "drfh"\n'
    (found,) = harness.cells_of(load(path, text), None if traces is None else str(traces))
    return found


def test_keys_tell_what_determines_a_cell_and_nothing_else(path: Path, file: Path) -> None:
    def keys_of(text: str) -> list[str]:
        return [cell.key for cell in harness.cells_of(load(path, text))]

    text = file.read_text()
    keys = {*keys_of(text)}
    assert len(keys_of(text)) == len(keys) == CELLS
    # Labels, comments and the order of things do not matter.
    assert {*keys_of(text.replace("drawn", "others").replace('["drfh", "tsf",', '[\n"tsf", # first\n"drfh",'))} == keys
    for old, new in (("seed = 7", "seed = 8"), ("max_rounds = 60", "max_rounds = 61"), ("users = [4", "users = [5")):
        other = {*keys_of(text.replace(old, new))}
        assert other != keys
        assert other & keys  # the paper's cluster is the same


def test_a_trace_is_known_by_what_it_holds(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by its size and names; and it is another cell than its stand-in."""
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    without = cell(path, VMS)
    trace = tmp_path / "traces" / "bitbrains" / "1.csv"
    trace.parent.mkdir(parents=True)
    found = []
    for held, day in (("x", 1), ("y", 2), ("x", 3)):
        trace.write_text(held)
        os.utime(trace, (day * 86400, day * 86400))
        found.append(cell(path, VMS, tmp_path / "traces"))
    assert [one.origin.kind for one in (without, *found[:1])] == ["generator", "trace"]
    assert without.key != found[0].key == found[2].key != found[1].key
    shutil.copytree(tmp_path / "traces", tmp_path / "elsewhere")
    assert cell(path, VMS, tmp_path / "elsewhere").key == found[0].key
    with pytest.raises(Elsewhere, match="other files here than where the sweep was started"):
        run(found[0], None)  # no row: it is not the cell that is wrong


def test_a_paper_whose_example_is_corrected_is_another_cluster(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cell(path, "paper:drf-4.1")
    cluster = fo.papers.instance("drf-4.1")
    monkeypatch.setattr(harness.papers, "instance", lambda _: cluster.replace(capacity=[[9, 18.5]]))
    assert before.key != cell(path, "paper:drf-4.1").key


def test_a_cluster_file_is_known_by_what_it_holds(path: Path, tmp_path: Path) -> None:
    inside = "resources = ['cpu']\n[[servers]]\ncapacity = [2]\n[[users]]\ndemand = [1]\n"
    (tmp_path / "c.toml").write_text(inside)
    before = cell(path, "c.toml")
    (tmp_path / "c.toml").write_text(inside.replace("2", "3"))
    assert before.key != cell(path, "c.toml").key
