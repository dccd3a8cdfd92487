"""Snapshots over time: who is below since when, memory of use, and going on where a computation stopped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from workloads.test_kubernetes import node, pod

import fairopt as fo
from fairopt.app.cli import main
from fairopt.app.explorer.shadow import Shadow, _Step, snapshots
from fairopt.errors import DataError

NAMES = [f"c-2026-11-29T0{k}00.json" for k in range(4)]
#: Running pods of namespaces a and b on a node of 8 CPUs, of 8 that each wants.
RUNS = [(8, 0), (6, 2), (4, 4), (8, 0)]


def write(path: Path, *running: int, tree: bool = False) -> None:
    pods = [pod(space, f"{space}{k}", {"cpu": "1"}, "n1" if k < running[space == "b"] else "")
            for space in "ab" for k in range(8)]  # fmt: skip
    objects = []
    for one in pods if tree else ():
        one["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": f"q{one['metadata']['namespace']}"}
    for name in ("qa", "qb") if tree else ():
        objects.append({"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": "lab"}})
    path.write_text(json.dumps({"items": [node("n1", {"cpu": "8", "pods": "110"}), *pods, *objects]}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "snapshots"
    made.mkdir()
    for name, running in zip(NAMES, RUNS, strict=True):
        write(made / name, *running)
    return made


def column(found: Shadow, queue: str, name: str) -> list[object]:
    return list(found.frame.loc[found.frame["queue"] == queue, name].tolist())


def hours(found: Shadow, queue: str) -> list[object]:
    return [time.hour if time == time else None for time in column(found, queue, "since")]  # type: ignore[attr-defined]


def test_who_is_below_since_when_and_what_holds_it(folder: Path) -> None:
    found = fo.shadow(folder)
    assert column(found, "a", "running") == [8, 6, 4, 8]
    assert column(found, "b", "entitled") == pytest.approx([4] * 4)
    assert column(found, "b", "shortfall_share") == pytest.approx([0.5, 0.25, 0, 0.5])
    assert hours(found, "b") == [0, 0, None, 3]
    assert hours(found, "a") == [None] * 4
    assert column(found, "b", "held_by") == ["b: cpu on n1"] * 2 + ["", "b: cpu on n1"]
    assert found.last["queue"].tolist() == ["b", "a"]


def test_memory_reduces_the_weight_of_who_used_more(folder: Path) -> None:
    r"""After an hour with half-life 1 h: :math:`U_a = 1/2, U_b = 0`, hence weights :math:`2^{-1/(1/2)}` and 1."""
    found = fo.shadow(folder, "drfh", half_life="1h")
    assert column(found, "a", "usage") == pytest.approx([0, 0.5, 0.25 + 0.375, 0.3125 + 0.25])
    assert column(found, "b", "usage") == pytest.approx([0, 0, 0.125, 0.0625 + 0.25])
    weights = [2 ** (-2 * 0.625 / 0.75), 2 ** (-2 * 0.125 / 0.75)]
    assert column(found, "a", "entitled")[:3] == pytest.approx([4, 8 * 0.25 / 1.25, 8 * weights[0] / sum(weights)])


def test_memory_is_that_of_siblings_in_a_tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fo.workloads.Snapshot, "tree")  # another solve, of quotas that cannot be met together
    for name, running in zip(NAMES, RUNS, strict=True):
        write(folder / name, *running, tree=True)
    found = fo.shadow(folder, half_life="1h")
    assert {*found.frame["mechanism"]} == {"tree, half-life 3600 s of past use"}
    assert found.frame.groupby("queue")["parent"].first().to_dict() == {"lab": "", "qa": "lab", "qb": "lab"}
    assert column(found, "qa", "entitled")[:2] == pytest.approx([4, 8 * 0.25 / 1.25])
    assert column(fo.shadow(folder, "drfh"), "qa", "entitled") == pytest.approx([4] * 4)
    spec = '"qb"}, "spec": {'
    for path in folder.iterdir():
        path.write_text(path.read_text().replace(spec, spec + '"capability": {"cpu": "3"}, '))
    chosen = fo.shadow(folder, "tree(combine=vector)")
    assert {*chosen.frame["mechanism"]} == {"tree(combine=vector)"}
    assert column(chosen, "qa", "entitled") == pytest.approx([5] * 4)


def test_a_computation_goes_on_where_it_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, whole = tmp_path / "out.csv", fo.shadow(folder, half_life=7200.0)
    rows = _Step.rows

    def once(self: _Step, time: object, name: str, snapshot: object) -> object:
        if name == NAMES[2]:
            raise KeyboardInterrupt
        return rows(self, time, name, snapshot)  # type: ignore[arg-type]

    monkeypatch.setattr(_Step, "rows", once)
    assert main(["shadow", str(folder), "--half-life", "2h", "--out", str(out)]) == 130
    monkeypatch.undo()
    text = out.read_text()
    assert text.count("\n") == 5
    out.write_text(text[:-9])  # it was ended while it wrote
    (folder / NAMES[0]).write_text("not read again")
    found = fo.shadow(folder, half_life="2h", out=out)
    assert not found.notes
    assert found.frame.equals(whole.frame)
    assert main(["shadow", str(folder), "--half-life", "2h", "--out", str(out), "--json"]) == 0
    assert "c-2026-11-29T0300.json" in capsys.readouterr().out
    with pytest.raises(DataError, match="another --half-life"):
        fo.shadow(folder, out=out)
    with pytest.raises(DataError, match=r"is of alphaPF-VDS\(alpha=1\)"):
        fo.shadow(folder, "tsf", half_life="2h", out=out)


def test_a_snapshot_that_cannot_be_read_is_left_out_with_the_reason(folder: Path) -> None:
    (folder / NAMES[1]).write_text('{"items": [3]}')
    found = fo.shadow(folder)
    assert found.frame["snapshot"].nunique() == 3
    assert "item 1" in found.notes[NAMES[1]]
    assert hours(found, "b") == [0, None, 3]
    out = folder.parent / "shadow.csv"
    for _ in range(2):  # again when the computation goes on
        again = fo.shadow(folder, out=out)
        assert again.frame.equals(found.frame)
        assert again.notes == found.notes


def test_one_snapshot_counts_at_a_time(folder: Path) -> None:
    write(folder / NAMES[0].replace("c", "d"), 1, 1)
    (folder / "link.json").symlink_to("nowhere")
    found = fo.shadow(folder)
    assert found.frame["snapshot"].unique().tolist() == NAMES
    assert "same time as c-2026" in found.notes["d-2026-11-29T0000.json"]
    found.draw()


def test_times_are_those_of_the_names_or_else_of_the_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [time.hour for time, _, _ in snapshots(folder)] == [0, 1, 2, 3]
    (folder / NAMES[0]).rename(folder / "1764374400.json")  # 2025-11-29, in Unix seconds
    assert snapshots(folder)[0][0].isoformat() == "2025-11-29T00:00:00"
    (folder / NAMES[1]).rename(folder / "latest.json")
    os.utime(folder / "latest.json", (1_795_919_400,) * 2)  # 2026-11-29T02:30
    write(folder / NAMES[3], 1, 1)
    assert [name for _, name, _ in snapshots(folder)] == ["1764374400.json", NAMES[2], "latest.json", NAMES[3]]
    assert main(["shadow", str(folder)]) == 0
    assert "the last change of the file counts: latest.json" in capsys.readouterr().err
    with pytest.raises(DataError, match="has no snapshot"):
        snapshots(folder.parent / "snapshots" / "..")


def test_the_figure_has_a_row_for_each_queue(folder: Path) -> None:
    ax = Figure().subplots()
    assert fo.shadow(folder).draw(ax) is ax.figure
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]


@pytest.mark.parametrize(("memory", "problem"), [("soon", "write seconds"), (0, "must be a time > 0")])
def test_half_lives_are_durations(folder: Path, memory: object, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        fo.shadow(folder, half_life=memory)  # type: ignore[arg-type]
