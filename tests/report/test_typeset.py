"""Tables for LaTeX: nothing wider than asked for, rounding by meaning, the field's notation; TeX compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairopt import harness, papers, report
from fairopt.errors import DataError
from fairopt.harness.experiment import known, load
from fairopt.harness.papers import KEPT
from fairopt.harness.report.typeset import latex, typeset, words

#: Widths, and classes of documents whose columns have them.
LAYOUTS = {
    "page": (6.5, "10pt", "[margin=1in]"),
    "both": (6.5, "twocolumn,10pt", "[margin=0.75in]"),
    "column": (3.3, "twocolumn,10pt", "[margin=0.75in]"),
    "article": (4.77, "10pt", None),
    "narrow": (2.76, "twocolumn,10pt", None),
}
WIDE = pd.DataFrame(
    {"cluster": ["three locations", "doubled"], "source": ["bitbrains?vms=100&servers=20", "bitbrains?vms=200"]}
    | {"mechanism": ["alphapf-vds(alpha=1.0)", "ps-dsf"], "n": [10, 10]}
    | {name: [0.4404 * k, 3.1e-7] for k, name in enumerate(("jain", "welfare", "rounds", "min_share"), 1)}
    | {f"+- {name}": [0.0418, 2e-9] for name in ("jain", "welfare", "rounds", "min_share")}
)
NASTY = pd.DataFrame({"a_b & c%$#{}~^\\": ["x_y", "100% & $ # {} ~ ^ \\ <a> |"], "α × ∞": ["long words " * 12, "±"],
                      "number": [1.674e-16, 5.0]})  # fmt: skip


@pytest.fixture(scope="module")
def tables(store: Path) -> list[report.Table]:
    """All that `make tables` writes, of the tiny versions."""
    results = report.Results(store, smoke=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        harness.sweep("pf_time", smoke=True, store=store, progress=False)
        names = [name for name in known() if load(name).quick or name == "pf_time"]
        made = [table for name in names for table in report.tables_of(name, results)]
    frame = papers.check(papers.claims("LEC")).drop(columns=["seconds", "correct"])
    long = pd.concat([frame] * 3).assign(instance="alpha_convergence")
    return [report.mechanism_table(), *made, report.Table("claims", "Claims of the papers, checked", long, keep=KEPT)]


def every(tables: list[report.Table], inches: float) -> list[str]:
    texts = [latex(NASTY, "Nasty: 100% of $ & _", None, inches), latex(WIDE, "Wide", "tab:wide", inches)]
    return texts + [
        latex(one.frame, one.caption, f"tab:{k}", inches, notes=one.notes, groups=one.groups)
        for k, one in enumerate(tables)
    ]


def rows(text: str) -> list[list[str]]:
    """Cells of all rows."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]
            for line in text.splitlines() if line.endswith(r" \\")]  # fmt: skip


def test_data_of_one_cluster_are_told_apart_by_their_parameters() -> None:
    sources = [f"bitbrains?vms={count}&servers=20" for count in (25, 50)] + ["three.json"]
    frame = pd.DataFrame({"cluster": ["a", "a", "b"], "source": sources, "n": 3, "jain": [0.5, 0.25, 0.125]})
    for shown in (frame, frame.rename(columns={"cluster": "workload"})):
        assert [row[1] for row in rows(latex(shown, inches=3.3))][1:] == ["data", "vms = 25", "vms = 50", ""]
        assert [row[0] for row in rows(latex(shown))][-3:] == ["a", "", "b"]  # the same name stands once
    assert rows(latex(frame.drop(columns="cluster")))[-2][0] == "bitbrains, vms = 50, servers = 20"
    assert "data" not in latex(frame.iloc[1:])


def test_ends_of_intervals_stand_behind_medians() -> None:
    frame = pd.DataFrame(
        [[0.1, 2.0, 1.0, 3.0], [1e-3, 15.5, 8.0, np.inf], [1e-5, np.inf, 40.0, np.inf]],
        columns=["level", "rounds", "rounds low", "rounds high"],
    ).assign(**{"seconds": 0.5, "seconds low": np.nan, "seconds high": np.nan})
    cells = [row[1] for row in rows(latex(frame))]
    assert cells == ["rounds", "2.0 [1.0, 3.0]", r"15.5 [8.0, $\infty$]", r"$\infty$ [40.0, $\infty$]"]
    assert "In every row: seconds 0.5." in latex(frame)
    chosen = report.Table("x", "X", frame).chosen(["rounds"], None)
    assert chosen is not None
    assert list(chosen.frame) == ["rounds", "rounds low", "rounds high"]


TWO = r"$\alpha$PF-VDS ($\alpha = 2$)"


@pytest.mark.parametrize(
    ("label", "set_as"),
    [
        ("alphapf-vds(alpha=1.0)*", r"$\alpha$PF-VDS ($\alpha = 1$)*"),
        ("first-fit-drfh(strict=True)", "First-Fit DRFH (strict)"),
        ("slots(n=6, whole=False)", "slots ($n = 6$, whole = no)"),
        ("fluid:alphapf-vds(alpha=2.0)", f"fluid {TWO}"),
        ("N_1 = .. for alpha = 0.5.", r"$N_{1}$ = .. for $\alpha = 0.5$."),
        ("drfh: tasks at alpha=inf", r"DRFH: tasks at $\alpha = \infty$"),
        ("TSF, alphaPF-VDS(alpha=2): d4 = (1, 0.5)", f"TSF, {TWO}: $d_{{4}} = (1, 0.5)$"),
        ("alphaPF-VDS(alpha=2), alphaPF-VDS(alpha=2): others", f"{TWO}, {TWO}: others"),
        ("phi_n / sum_m phi_m and d4", r"$\phi_{n}$ / $\sum_{m}$ $\phi_{m}$ and $d_{4}$"),
    ],
)
def test_mechanisms_have_their_names(label: str, set_as: str) -> None:
    assert typeset(label) == set_as


def test_headers_are_words(tables: list[report.Table]) -> None:
    for text in every(tables, 6.5)[1:]:
        assert not re.search(r"\\_|\(continued\)|alphapf-vds|alphaPF-VDS|(?<!\\)\balpha\b", text), text
    named = {"min_share": "smallest share", "n": "$n$", "cpu": "CPU", "r1": "$r_{1}$"}
    assert {name: words(name) for name in named} == named


def test_rounding_is_by_meaning() -> None:
    frame = pd.DataFrame(
        [[1.674e-16, 3e-16, 0.5, 3.25e-7], [2.5, 2.34e-8, 1.25, 1.0]],
        columns=["tasks", "certificate", "seconds", "price"],
    )
    assert rows(latex(frame))[-2:] == [
        ["0", "$< 10^{-12}$", "0.5", r"$3.25 \cdot 10^{-7}$"],
        ["2.5", r"$2.3 \cdot 10^{-8}$", "1.2", "1.000"],
    ]


def test_no_more_digits_than_are_certain() -> None:
    """What a certificate leaves open is not printed; columns under one head have the same decimals."""
    frame = pd.DataFrame({"mechanism": ["a", "b", "c"], "user 1": [12.3456, 1.23456, 1.23456],
                          "user 2": [1.0, 2.0, 3.0], "certificate": [1e-9, 1e-3, 1e-2]})  # fmt: skip
    found = rows(latex(frame, groups={"tasks of": ["user 1", "user 2"]}))
    assert [row[1:3] for row in found[-3:]] == [["12.35", "1.00"], ["1.23", "2.00"], ["1.2", "3.0"]]
    assert r"\multicolumn{2}{@{}c@{\hspace{0.9em}}}{tasks of user}" in found[0][1]
    assert found[-4][1:3] == ["1", "2"]


def test_half_intervals_stand_behind_their_means() -> None:
    frame = pd.DataFrame(
        [[0.49335, 0.16007, 0.5, 0.0123, 3e-5], [1.0, 0.0, 0.25, 0.1, 1e-5], [0.5, np.nan, 1.0, 0.002, 2e-3]],
        columns=["jain", "+- jain", "use_cpu", "+- use_cpu", "+- small"],
    )
    frame.insert(4, "small", 1.00494e-2)
    found = rows(latex(frame))
    assert found[-3] == [r"$0.49 \pm 0.16$", r"$50.0 \pm 1.2$", r"$(1.0049 \pm 0.0030) \cdot 10^{-2}$"]
    assert found[-2][:2] == ["1.000", r"$25 \pm 10$"]
    assert found[-1] == ["0.500", r"$100.00 \pm 0.20$", r"$0.0100 \pm 0.0020$"]
    assert found[0][1] == r"\multicolumn{1}{@{}c@{\hspace{0.9em}}}{use (\%)}"
    assert found[1:3] == [["Jain's", "", ""], ["index", "CPU", "small"]]


def test_what_does_not_fit_is_left_out_and_named() -> None:
    text = latex(WIDE, "A title", "tab:wide", 3.3, notes=["A note"])
    assert text.count(r"\begin{table}") == text.count(r"\label{tab:wide}") == 1
    body = rows(text)[-2:]
    assert [row[:2] for row in body] == [["three locations", r"$\alpha$PF-VDS (\allowbreak{}$\alpha = 1$)"],
                                         ["doubled", "PS-DSF"]]  # fmt: skip
    assert text.startswith("% no room in 3.3 inches for welfare, rounds, min_share\n")
    assert "A note" in text
    assert "In every row: $n = 10$." in text
    assert "bitbrains" not in text, "captions say what clusters stand for"
    assert not latex(WIDE, inches=7).startswith("%")
    with pytest.raises(DataError, match=r"welfare, rounds, min_share do not fit into 3.3 inches"):
        latex(WIDE, inches=3.3, whole=True)


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x85", "\u2028", "\x1b"])
def test_no_name_ends_a_comment(end: str) -> None:
    name = f"cpu{end}\\input{{x}}%"
    frame = pd.DataFrame({f"{name}{k}": [0.5, 0.25] for k in range(30)} | {"user": [name, "b"]})
    text = latex(frame, f"of {name}", f"tab:{name}", 3.3, notes=[name])
    assert [line for line in text.splitlines() if "no room" in line] == [text.splitlines()[0]]
    assert not re.search(r"(?m)^(?!%).*(?<!\\textbackslash\{\})\\?\\input", text)
    assert end not in text or end == "\n"


def test_what_matters_least_is_left_out_first() -> None:
    frame = pd.DataFrame({"mechanism": ["a", "b"], "seconds": [1.0, 2.0], "certificate": [1e-9, 1e-8],
                          "tasks": [1234.5, 2345.6], "jain": [0.5, 0.7]})  # fmt: skip
    left = [re.findall(r"inches for (.*)", latex(frame, inches=inches)) for inches in (3.0, 2.0, 1.5)]
    assert left == [[], ["seconds"], ["seconds, certificate"]]


def test_no_table_is_without_what_was_measured() -> None:
    labels = {"cluster": ["dense", "sparse"], "order": ["over-relaxed", "asynchronous"], "damping": [0.25, 0.125]}
    frame = pd.DataFrame(labels | {"mechanism": ["alphapf-vds(alpha=0.5)", "alphapf-vds(alpha=8)"], "alpha": [0.5, 8]})
    text = latex(frame.assign(rounds=[123456.5, 2]), inches=2.76)
    assert r"\begin{table*}" in text
    assert rows(text)[0] == ["cluster", "order", "damping", "mechanism", "rounds"]
    assert r"\begin{table}" in latex(frame, inches=2.76)


@pytest.mark.parametrize("inches", [6.5, 3.3])
def test_no_table_is_without_what_it_is_about(tables: list[report.Table], store: Path, inches: float) -> None:
    """At any width: what names rows, and the measures that an experiment names; a comment names all that is dropped."""
    for table in tables:
        text = table.latex(inches)
        named = re.search(r"% no room in [\d.]+ inches for (.*)", text)
        dropped = named[1].split(", ") if named else []
        assert table.keep
        assert not [name for name in dropped if any(fnmatchcase(name, each) for each in table.keep)], table.name
    times = next(table for table in tables if table.name == "pf_time").latex(inches)
    assert re.search(r"& rounds &.*& seconds (&|\\\\)", times), "processing times"


def test_a_table_ends_with_the_page() -> None:
    """What floats is not broken: rows go on in a further table with the same columns, folded ones sooner."""
    short = pd.DataFrame({"name": [f"user{k}" for k in range(100)], "tasks": np.arange(100.0)})
    folded = short.assign(name=[f"{'long words ' * 6}{k}" for k in range(100)])
    for frame, least in ((short, 3), (folded, 5)):
        text = latex(frame, "A title", "tab:tall", 3.3, notes=["A note"])
        parts = text.split(r"\end{table}")[:-1]
        assert least <= len(parts) <= 2 * least
        assert [row[1] for part in parts for row in rows(part)[1:]] == [str(k) for k in range(100)]
        assert all(f"A title ({k} of {len(parts)})" in part for k, part in enumerate(parts, 1))
        assert text.count("A note") == text.count(r"\label") == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_compiles_without_a_warning(tables: list[report.Table], layout: str, tmp_path: Path) -> None:
    if (
        shutil.which("pdflatex") is None
        or subprocess.run(["kpsewhich", "booktabs.sty"], capture_output=True).returncode
    ):
        pytest.skip("there is no pdflatex here: Debian's texlive-latex-recommended has it")
    inches, options, geometry = LAYOUTS[layout]
    texts = [*every(tables, inches), latex(pd.concat([WIDE] * 40), "Tall", "tab:tall", inches)]
    body = "\n\n".join(f"{text}\n\\clearpage" if k % 6 == 5 else text for k, text in enumerate(texts))
    page = f"\\usepackage{geometry}{{geometry}}\n" if geometry else ""
    (tmp_path / "t.tex").write_text(
        f"\\documentclass[{options}]{{article}}\n\\usepackage{{booktabs,array}}\n{page}"
        f"\\begin{{document}}\n{body}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = (tmp_path / "t.log").read_text(errors="replace")
    assert not re.search(r"Overfull|Warning: (?!Label\(s\) may have changed)", log), log
