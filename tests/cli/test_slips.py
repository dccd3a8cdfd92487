"""What goes wrong on the command line: one line that says what to do, and nothing half written."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
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
SLIPS = [
    ("solve paper:drf-4.1 --alpha 3", "did you mean --mechanism 'alphapf-vds(alpha=3)'?"),
    ("solve paper:drf-4.1 --tolerance 1", "did you mean --tol?"),
    ("solve paper:drf-4.1 drf", "unrecognized arguments: drf"),
    ("slove paper:drf-4.1", "did you mean solve?"),
    ("compare -m drf paper:drf-4.1", "write FILE first, or --mechanisms a,b"),
    ("", "the following arguments are required: COMMAND"),
    ("solve paper:drf-4.1 -m drf,tsf", "'drf,tsf' is not a mechanism; write a name"),
    (f"solve paper:drf-4.1 -m 'alphapf-vds(alpha={BIG})'", "alpha is a whole number of more than 20 digits"),
    ("compare paper:drf-4.1 -m ,", "the list of mechanisms is empty; known: alpha-fair"),
    ("compare paper:drf-4.1 -m drff", "did you mean drf?"),
    ("compare paper:drf-4.1 -m drf --out x.xls", "cannot export to x.xls: choose .csv, .parquet, .json"),
    ("compare paper:drf-4.1 -m drf --out a-file/x.csv", "a file is where a folder is needed"),
    ("solve paper:drf-4.1 -m drf --save nowhere/x.json", "No such file or directory"),
    ("solve paper:drf-4.1 -m drf --save \x00.json", "null"),
    ("solve .", "there is no source of clusters"),
    ("compare snap.yaml", "YAML, which is read as what kubectl prints: name it kubernetes:snap.yaml"),
    ("check .", "Is a directory"),
    ("notebooks \x00", "cannot make the folder"),
    ("check /dev/zero", "it is a device; name a file"),
    ("mechanisms --plugin nowhere.py", "cannot read the plug-in 'nowhere.py': there is no such file"),
    ("path paper:drfh-fig1 --alphas 0:1:3", "both ends must be finite and > 0"),
    ("path paper:drfh-fig1 --alphas 1:2", "write numbers, inf, or LOW:HIGH:COUNT"),
    (f"path paper:drfh-fig1 --alphas 1:2:{BIG}", "write numbers, inf, or LOW:HIGH:COUNT"),
    ("path paper:drfh-fig1 --alphas 1,x", "write numbers, inf, or LOW:HIGH:COUNT"),
    ("path paper:drfh-fig1 --alphas ,", "write numbers, inf, or LOW:HIGH:COUNT"),
    ("path paper:drfh-fig1 -m drf", "DRF has no parameter alpha"),
    ("path paper:drfh-fig1 --alphas 1 --plot x.xls", "cannot draw into x.xls: choose .pdf, .png or .svg"),
    ("results", "there is no store at results"),
    ("tables --smoke", "there is no store at results/smoke/store"),
    ("tables pf_table1 pf_time", "there is no store at results/store; 16 of 16 cells of pf_table1"),
    ("figures", "there is no store at results/store; fairopt sweep NAME makes one"),
    ("sweep nothing", "there is no experiment 'nothing'; known:"),
    ("sweep orders.toml", "must be one of elastic, cyclic"),
    ("sweep big.toml", "big.toml:2: "),
    ("figures frontier --width -1", "--width: it must be"),
    ("completion cmd", "invalid choice: 'cmd'"),
    ("solve paper:drf-4.2", "drf-4.1"),
    ("solve paper:drf-4.1 -m alphapf-vds", "choose one with its parameters"),
    ("solve paper:drf-4.1 -m 'alpha-fair(beta=2)'", "does not take beta; its parameters: alpha"),
    ("solve paper:drf-4.1 -m 'alpha-fair(2)'", "must be parameter=value"),
    ("solve paper:drf-4.1 --tol -1", "tol is -1"),
    ("solve paper:drf-4.1 --solver gurobi", "not one of CLARABEL"),
    ("solve paper:drf-4.1 -m cmmf", "choose it with cluster.select"),
    ("solve bad.toml", "bad.toml:4: user 'user1' (row 0) has demand -3"),
    ("sweep", "name an experiment or its file"),
    ("sweep nonsense.toml", "cannot read the experiment nonsense.toml"),
    ("sweep drfh_figures --jobs 0", "--jobs is 0; it must be a whole number, at least 1"),
    ("results --store . --where jain", "write COLUMN=VALUE"),
    ("results --store . --where alpha=x", "alpha is a number"),
    ("results --store . --columns jane", "there is no column 'jane'"),
    ("properties -p kindness", "no property 'kindness'"),
    ("properties -m drf --trials 0", "trials is 0"),
    ("properties -m drf --conditions sunshine", "give a list of some of: positive demands"),
    ("properties -m drf --seconds 3", "--seconds is about a FILE"),
    ("properties paper:drf-4.1 --save folder", "--save is not about the cluster"),
]


@pytest.mark.parametrize(("words", "expected"), SLIPS, ids=[words[:60] for words, _ in SLIPS])
def test_slips_are_one_line_with_a_remedy(
    words: str, expected: str, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = 'title = "x"\nseed = {}\nclusters.a = "paper:drf-4.1"\n[[grid]]\nmechanisms = "alphapf-vds"\norders = {}\n'
    (empty / "orders.toml").write_text(grid.format(1, "{cpu = 1}"))
    (empty / "big.toml").write_text(grid.format(BIG, '"cyclic"'))
    (empty / "bad.toml").write_text("[[servers]]\ncapacity = [9]\n[[users]]\ndemand = [-3]\n")
    before = {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()}
    assert run(*shlex.split(words)) == 2
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
