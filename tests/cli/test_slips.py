"""What goes wrong on the command line: one line that says what to do, and nothing half written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from fairopt.cli import main

CSV = "kind,name,count,weight,cpu,memory\nserver,s,1,,9,18\nuser,A,,1,1,4\nuser,B,,1,3,1\n"
CLUSTER = "paper:drf-4.1"
TWO = "paper:drfh-fig1"
TOO_LONG = "a" * 300


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands run in a folder of their own."""
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "c.csv").write_text(CSV)
    (folder / "a-file").write_text("")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FAIROPT_TRACES", raising=False)
    return folder


def run(*words: str) -> int:
    """The exit status, that of argparse too."""
    try:
        return main(list(words))
    except SystemExit as stopped:
        return int(str(stopped.code))


BIG = str(10**400)
SLIPS = [
    (["solve", CLUSTER, "--alpha", "3"], "did you mean --mechanism 'alphapf-vds(alpha=3)'?"),
    (["solve", CLUSTER, "-m", "alpha-fair", "--alpha=3"], "did you mean --mechanism 'alpha-fair(alpha=3)'?"),
    (["compare", CLUSTER, "--beta", "2"], "did you mean --mechanisms 'fds(beta=2)'?"),
    (["solve", CLUSTER, "--tolerance", "1"], "did you mean --tol?"),
    (["solve", CLUSTER, "drf"], "unrecognized arguments: drf"),
    (["slove", CLUSTER], "did you mean solve?"),
    (["compare", "-m", "drf", CLUSTER], "write FILE first, or --mechanisms a,b"),
    ([], "the following arguments are required: COMMAND"),
    (["solve", CLUSTER, "-m", "drf,tsf"], "solve takes one mechanism, and these are 2; compare takes several"),
    (["solve", CLUSTER, "-m", "alphapf-vds(alpha=1)(alpha=2)"], "is not parameter=value"),
    (["solve", CLUSTER, "-m", f"alphapf-vds(alpha={BIG})"], "alpha is a whole number of more than 20 digits"),
    (["solve", CLUSTER, "-m", f"alphapf-vds(alpha={BIG * 20})"], "is not parameter=value"),
    (["solve", CLUSTER, "--tol", BIG], "tol is inf"),
    (["compare", CLUSTER, "-m", ","], "the list of mechanisms is empty; known: alpha-fair"),
    (["compare", CLUSTER, "-m", "drff"], "did you mean drf?"),
    (["compare", CLUSTER, "-m", "drf", "--out", "x.xls"], "cannot export to x.xls: choose .csv, .parquet, .json"),
    (["compare", CLUSTER, "-m", "drf", "--out", "a-file/x.csv"], "a file is where a folder is needed"),
    (["compare", CLUSTER, "-m", "drf", "--out", f"{TOO_LONG}.csv"], "File name too long"),
    (["solve", CLUSTER, "-m", "drf", "--save", "nowhere/x.json"], "No such file or directory"),
    (["solve", CLUSTER, "-m", "drf", "--save", "\0.json"], "null"),
    (["solve", "."], "there is no source of clusters"),
    (["compare", "snap.yaml"], "YAML, which is read as what kubectl prints: name it kubernetes:snap.yaml"),
    (["solve", "nowhere.csv"], "cannot read the CSV file nowhere.csv"),
    (["check", "."], "Is a directory"),
    (["notebooks", "\0"], "cannot make the folder"),
    (["check", "/dev/zero"], "it is a device; name a file"),
    (["mechanisms", "--plugin", "nowhere.py"], "cannot read the plug-in 'nowhere.py': there is no such file"),
    (["mechanisms", "--plugin", "/dev/zero"], "cannot read the plug-in '/dev/zero': there is no such file"),
    (["path", TWO, "--alphas", "0:1:3"], "both ends must be finite and > 0"),
    (["path", TWO, "--alphas", "1:2"], "write numbers, inf, or LOW:HIGH:COUNT"),
    (["path", TWO, "--alphas", "1:2:0"], "a whole number from 1 to 10,000"),
    (["path", TWO, "--alphas", f"1:2:{BIG}"], "a whole number from 1 to 10,000"),
    (["path", TWO, "--alphas", "1,x"], "'x' is not a number"),
    (["path", TWO, "--alphas", "-1"], "alpha is -1"),
    (["path", TWO, "--alphas", ","], "--alphas is empty"),
    (["path", TWO, "-m", "drf"], "DRF has no parameter alpha"),
    (["path", TWO, "--alphas", "1", "--plot", "x.xls"], "cannot draw into x.xls: choose .pdf, .png or .svg"),
    (["results"], "there is no store at results"),
    (["results", "--store", "nowhere"], "there is no store at nowhere; fairopt sweep NAME makes one"),
    (["tables"], "there is no store at results/store; fairopt sweep NAME makes one"),
    (["tables", "--smoke"], "there is no store at results/smoke/store"),
    (["tables", "pf_table1", "--store", "nowhere"], "compute them with: fairopt sweep pf_table1 --store nowhere"),
    (["tables", "pf_table1", "pf_time"], "there is no store at results/store; 20 of 20 cells of pf_table1"),
    (["figures"], "there is no store at results/store; fairopt sweep NAME makes one"),
    (["figures", "drfh", "--store", "nowhere"], "there is no store at nowhere; 4 of 4 cells of drfh_figures"),
    (["sweep", "nothing"], "there is no experiment 'nothing'; known:"),
    (["sweep", "orders.toml"], "must be one of elastic, cyclic"),
    (["sweep", "big.toml"], "big.toml:2: "),
    (["figures", "alpha", "--width", "-1"], "--width must be"),
    (["figures", "alpha", "--width", "nan"], "--width must be"),
    (["completion", "cmd"], "invalid choice: 'cmd'"),
    (["solve", "paper:drf-4.2"], "drf-4.1"),
    (["solve", "nonsense:x"], "nonsense"),
    (["solve", CLUSTER, "-m", "alphapf-vds"], "give its parameters"),
    (["solve", CLUSTER, "-m", "alpha-fair(beta=2)"], "does not take beta; its parameters: alpha"),
    (["solve", CLUSTER, "-m", "alpha-fair(2)"], "is not parameter=value"),
    (["solve", CLUSTER, "--tol", "-1"], "tol is -1"),
    (["solve", CLUSTER, "--solver", "gurobi"], "not one of CLARABEL"),
    (["solve", CLUSTER, "-m", "cmmf"], "choose it with cluster.select"),
    (["claims", "--paper", "nobody"], "nobody"),
    (["solve", "bad.toml"], "bad.toml:4: user 'user1' (row 0) has demand -3"),
    (["sweep"], "name an experiment or its file"),
    (["sweep", "nonsense.toml"], "cannot read the experiment nonsense.toml"),
    (["sweep", "drfh_figures", "--jobs", "0"], "--jobs must be at least 1"),
    (["results", "--store", ".", "--where", "jain"], "write COLUMN=VALUE"),
    (["results", "--store", ".", "--where", "alpha=x"], "alpha is a number"),
    (["results", "--store", ".", "--columns", "jane"], "there is no column 'jane'"),
    (["results", "--store", ".", "--export", "x.docx"], "choose .csv"),
    (["properties", "-p", "kindness"], "no property 'kindness'"),
    (["properties", "-m", "kind"], "no mechanism 'kind'"),
    (["properties", "-m", "drf", "--trials", "0"], "--trials is 0"),
    (["properties", "-m", "drf", "--jobs", "0"], "--jobs is 0"),
    (["properties", "--replay", "nowhere.json"], "cannot read the witness file"),
    (["properties", CLUSTER, "--store", "folder"], "--store is not about the cluster"),
    (["properties", CLUSTER, "--matrix"], "--matrix is not about the cluster"),
]


@pytest.mark.parametrize(("words", "expected"), SLIPS, ids=[" ".join(words)[:60] for words, _ in SLIPS])
def test_slips_are_one_line_with_a_remedy(
    words: list[str], expected: str, empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = 'title = "x"\nseed = {}\nclusters.a = "paper:drf-4.1"\n[[grid]]\nmechanisms = "alphapf-vds"\norders = {}\n'
    (empty / "orders.toml").write_text(grid.format(1, "{cpu = 1}"))
    (empty / "big.toml").write_text(grid.format(BIG, '"cyclic"'))
    (empty / "bad.toml").write_text("[[servers]]\ncapacity = [9]\n[[users]]\ndemand = [-3]\n")
    before = {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()}
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert expected in captured.err
    assert captured.err.startswith("fairopt: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert {path: path.read_bytes() for path in empty.rglob("*") if path.is_file()} == before


def test_lists_are_parted_by_spaces_or_commas(capsys: pytest.CaptureFixture[str]) -> None:
    outs = []
    several = "drf", "alpha-fair(alpha=5, share=asset)"
    for words in (several, [",".join(several)], [f"{several[0]},", several[1]]):
        assert run("compare", CLUSTER, "--json", "-m", *words) == 0
        outs.append([row["mechanism"] for row in json.loads(capsys.readouterr().out)])
    assert outs[0] == outs[1] == outs[2] == ["DRF", "alpha-fair(alpha=5, share=asset)"]


@pytest.mark.parametrize(
    ("command", "expected"),
    [("mechanisms", "alphapf-vds"), ("instances", "paper:drf-4.1"), ("sources", "bitbrains-like")],
)
def test_lists(
    command: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(command, "--out", "list.csv") == 0
    assert expected in capsys.readouterr().out
    assert expected in set(pd.read_csv("list.csv")["name"])
    assert run(command, "--json") == 0
    assert expected in {row["name"] for row in json.loads(capsys.readouterr().out)}
    monkeypatch.setenv("COLUMNS", "60")
    assert run(command) == 0
    out = capsys.readouterr().out
    assert expected in out
    assert max(map(len, out.splitlines())) <= 60


def test_out_writes_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("solve", "c.csv", "-m", "drf", "--out", "new/users.csv") == 0
    assert "DRF: 2 users" in capsys.readouterr().out
    assert pd.read_csv("new/users.csv").set_index("user")["tasks"].round(6).to_dict() == {"A": 3, "B": 2}
    assert run("compare", "c.csv", "-m", "drf,ceei", "--out", "table.parquet") == 0
    assert pd.read_parquet("table.parquet")["mechanism"].tolist() == ["DRF", "CEEI"]


def test_path(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["path", TWO, "-m", "alpha-fair", "--alphas", "0.5:2:3,8", "inf", "--plot", "p.png", "--out", "p.csv"]
    assert run(*words) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "alpha-fair on drfh-fig1" in captured.out
    frame = pd.read_csv("p.csv")
    assert frame["alpha"].tolist() == pytest.approx([0.5, 1, 2, 8, float("inf")])
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")
    assert run(*words[:4], "--alphas", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["utilization"] > 0


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
    assert out.count("mechanism") > 1 or columns == 80


def test_dust_is_nothing_where_the_certificate_says_so() -> None:
    import numpy as np

    import fairopt as fo
    from fairopt.result import _show

    found = fo.AlphaFair(1).solve(fo.Cluster([[9, 9], [9, 9]], [[1, 2], [2, 1]]))
    frame = found.to_frame()
    least = max(found.certificate.residual, 1e-12)
    frame.iloc[0, 3:] = [5.0, 0.5 * least * frame["tasks"].iloc[0]]
    frame.iloc[1, 3:] = [1e-5, 5.0]
    first, second = frame.columns[3:]
    shown = _show.certain({name: frame[name].to_numpy() for name in frame}, found.certificate)
    assert shown[second][0] == "0"
    assert float(shown[first][1]) == pytest.approx(1e-5)
    assert not np.isclose(frame.iloc[0, 4], 0, atol=0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("completion", shell) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("--mechanism", "alphapf-vds", "compare", "frontier"))
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=out, text=True, check=True)


def outside(words: list[str], **more: object) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "fairopt.cli", *words], stderr=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload,no-any-return]


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
