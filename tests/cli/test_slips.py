"""What goes wrong on the command line: one line that says what to do, and nothing half written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairopt as fo
from fairopt.app.cli import main
from fairopt.result import _show

CSV = "kind,name,count,weight,cpu,memory\nserver,s,1,,9,18\nuser,A,,1,1,4\nuser,B,,1,3,1\n"
CLUSTER = "paper:drf-4.1"
TWO = "paper:drfh-fig1"


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run in a folder of their own."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "c.csv").write_text(CSV)
    (folder / "a-file").write_text("")
    monkeypatch.chdir(folder)
    return folder


def run(*words: str) -> int:
    """The exit status, that of argparse too."""
    try:
        return main(list(words))
    except SystemExit as stopped:
        return int(str(stopped.code))


BIG = str(10**400)
SLIPS = tomllib.loads(Path(__file__).with_name("slips.toml").read_text(encoding="utf-8"))["slips"]


@pytest.mark.parametrize(("words", "expected"), SLIPS, ids=[words[:60] for words, _ in SLIPS])
def test_slips_are_one_line_with_a_remedy(
    words: str, expected: str, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = 'title = "x"\nseed = {}\nclusters.a = "paper:drf-4.1"\n[[grid]]\nmechanisms = "alphapf-vds"\norders = {}\n'
    (empty / "orders.toml").write_text(grid.format(1, "{cpu = 1}"))
    (empty / "big.toml").write_text(grid.format(BIG, '"cyclic"'))
    (empty / "bad.toml").write_text("[[servers]]\ncapacity = [9]\n[[users]]\ndemand = [-3]\n")
    before = {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()}
    assert run(*shlex.split(words.replace("BIG", BIG))) == 2
    captured = capsys.readouterr()
    assert expected in captured.err
    assert captured.err.startswith("fairopt: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()} == before


def test_lists_are_parted_by_spaces_or_commas(answer: Callable[..., Any]) -> None:
    several = "drf", "alpha-fair(alpha=5, share=asset)"
    for words in (several, [",".join(several)], [f"{several[0]},", several[1]]):
        names = [row["mechanism"] for row in answer("compare", CLUSTER, "-m", *words)]
        assert names == ["DRF", "alpha-fair(alpha=5, share=asset)"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [("mechanisms", "alphapf-vds"), ("instances", "paper:drf-4.1"), ("sources", "bitbrains-like")],
)
def test_lists(
    command: str,
    expected: str,
    answer: Callable[..., Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert expected in {row["name"] for row in answer(command)}
    monkeypatch.setenv("COLUMNS", "60")
    assert run(command, "--out", "list.csv") == 0
    out = capsys.readouterr().out
    assert expected in out
    assert expected in set(pd.read_csv("list.csv")["name"])
    assert max(map(len, out.splitlines())) <= 60


def test_out_writes_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("solve", "c.csv", "-m", "drf", "--out", "new/users.csv") == 0
    assert "DRF: 2 users" in capsys.readouterr().out
    assert pd.read_csv("new/users.csv").set_index("user")["tasks"].round(6).to_dict() == {"A": 3, "B": 2}


def test_path(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["path", TWO, "-m", "alpha-fair", "--alphas", "0.5:2:3,8", "inf", "--plot", "p.png", "--out", "p.csv"]
    assert run(*words) == 0
    assert capsys.readouterr().err == ""
    frame = pd.read_csv("p.csv")
    assert frame["alpha"].tolist() == pytest.approx([0.5, 1, 2, 8, float("inf")])
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("columns", [20, 44, 80])
def test_nothing_is_wider_than_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run("compare", TWO, "-m", "drfh,tsf,cmmf") == 0
    assert run("path", TWO, "--alphas", "1,2") == 0
    if columns > 20:  # names and numbers of an allocation need more
        assert run("solve", TWO, "-m", "per-server-drf") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns


def test_dust_is_nothing_where_the_certificate_says_so() -> None:
    found = fo.AlphaFair(1).solve(fo.Cluster([[9, 9], [9, 9]], [[1, 2], [2, 1]]))
    dust, columns = (
        0.5 * max(found.certificate.residual, 1e-12),
        dict.fromkeys(("tasks", "share", "weight"), np.ones(2)),
    )
    shown = _show.certain(columns | {"s": np.array([1.0, 1e-5]), "t": np.array([dust, 1.0])}, found)
    assert shown["t"][0] == "0"
    assert float(shown["s"][1]) == pytest.approx(1e-5)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("completion", shell) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("--mechanism", "alphapf-vds", "compare", "frontier"))
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=out, text=True, check=True)


def outside(words: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "fairopt.app.cli", *words], stderr=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload,no-any-return]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_device_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = outside(["mechanisms"], stdout=full)
    assert done.returncode == 2
    assert done.stderr == "fairopt: the output: No space left on device; free some space, or write elsewhere\n"


def test_an_output_that_is_closed() -> None:
    """As `fairopt mechanisms >&-` has it; a file of the command would be the output otherwise."""
    if os.name == "posix":
        for closed in ((1,), (0, 1, 2)):
            words = ["mechanisms", "--json"]
            done = outside(words, stdout=subprocess.DEVNULL, preexec_fn=lambda closed=closed: [*map(os.close, closed)])
            assert (done.returncode, done.stderr) == (0, "")


def test_an_output_that_lacks_a_character() -> None:
    Path("c.csv").write_text(CSV.replace("A", "Zoë"), encoding="utf-8")
    done = outside(
        ["solve", "c.csv", "-m", "drf"], stdout=subprocess.PIPE, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Zo\\xeb" in done.stdout
