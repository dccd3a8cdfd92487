"""Tables for LaTeX: rounding by meaning, half intervals behind means, nothing wider than the text; TeX compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairopt import report
from fairopt.report.export import latex

SWEPT = ("drf_figures", "mqdrf_dynamic", "pf_time")
WIDE = pd.DataFrame(
    {"cluster": ["three locations", "doubled"], "source": ["bitbrains?vms=100&servers=20", "bitbrains?vms=200"]}
    | {"mechanism": ["alphapf-vds(alpha=1.0)", "ps-dsf"], "n": [10, 10]}
    | {name: [0.4404 * k, 3.1e-7] for k, name in enumerate(("jain", "welfare", "rounds", "min_share"), 1)}
    | {f"+- {name}": [0.0418, 2e-9] for name in ("jain", "welfare", "rounds", "min_share")}
)
NASTY = pd.DataFrame({"a_b & c%$#{}~^\\": ["x_y", "100% & $ # {} ~ ^ \\ <a> |"], "α × ∞": ["long words " * 12, "±"],
                      "number": [1.674e-16, 5.0]})  # fmt: skip


def rows(text: str) -> list[list[str]]:
    """Cells of all rows."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]
            for line in text.splitlines() if line.endswith(r" \\")]  # fmt: skip


def test_rounding_is_by_meaning() -> None:
    frame = pd.DataFrame({"tasks": [1.674e-16, 2.5], "certificate": [3e-16, 2.34e-8], "seconds": [0.5, 1.25],
                          "price": [3.25e-7, 1.0]})  # fmt: skip
    found = rows(latex(frame))
    assert found[-2] == ["0", "$< 10^{-12}$", "0.50", r"$3.25 \cdot 10^{-7}$"]
    assert found[-1] == ["2.5", r"$2.3 \cdot 10^{-8}$", "1.25", "1"]


def test_half_intervals_stand_behind_their_means() -> None:
    frame = pd.DataFrame({"jain": [0.49335, 1.0, 0.5], "+- jain": [0.16007, 0.0, np.nan], "use_cpu": [0.5, 0.25, 1.0],
                          "+- use_cpu": [0.0123, 0.1, 0.002], "small": [1.00494e-2] * 3,
                          "+- small": [3e-5, 1e-5, 2e-3]})  # fmt: skip
    found = rows(latex(frame))
    assert found[-3] == [r"$0.49 \pm 0.16$", r"$50.0 \pm 1.2$\%", r"$(1.0049 \pm 0.0030) \cdot 10^{-2}$"]
    assert found[-2][:2] == ["1", r"$25 \pm 10$\%"]
    assert found[-1] == ["0.5", r"$100.00 \pm 0.20$\%", r"$0.0100 \pm 0.0020$"]
    assert found[0] == ["jain", "cpu", "small"]


def test_wide_tables_go_on_and_name_their_rows() -> None:
    text = latex(WIDE, "A title. A note", "tab:wide", single=True)
    tables = text.split(r"\end{table}")[:-1]
    assert len(tables) > 1
    assert text.count(r"\label{tab:wide}") == 1
    assert text.count("(continued)") == len(tables) - 1
    assert "A note" in tables[-1]
    assert "In every row: n 10." in tables[-1]
    for table in tables:
        assert {"three locations", "doubled"} == {row[0] for row in rows(table)[1:]}
    heads = [head for table in tables for head in rows(table)[0]]
    assert heads.count("source") == 1, "what another column says is not repeated"
    assert {"jain", "welfare", "rounds", r"min\_share"} <= set(heads)


def test_tables_of_one_column_end_with_the_page() -> None:
    """What floats is not broken: rows go on in a further table, folded ones sooner."""
    short = pd.DataFrame({"name": [f"user{k}" for k in range(100)], "tasks": np.arange(100.0)})
    folded = short.assign(name=[f"{'long words ' * 6}{k}" for k in range(100)])
    for frame, least in ((short, 3), (folded, 9)):
        text = latex(frame, "A title. A note", "tab:tall", single=True)
        tables = text.split(r"\end{table}")[:-1]
        assert least <= len(tables) <= 2 * least
        assert [row[1] for table in tables for row in rows(table)[1:]] == [str(k) for k in range(100)]
        assert text.count("(continued)") == len(tables) - 1
        assert text.count("A note") == 1
    assert latex(short, "A title").count(r"\begin{longtable}") == 1


@pytest.mark.long
@pytest.mark.parametrize("single", [False, True], ids=["page", "column"])
def test_it_compiles_without_a_warning(single: bool, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("there is no pdflatex here: Debian's texlive-latex-recommended has it")
    results = report.Results(_swept(tmp_path), smoke=True)
    tables = [
        table for name in ("drf_figures", "mqdrf_dynamic", "pf_time") for table in report.tables_of(name, results)
    ]
    texts = [latex(WIDE, "Wide. With a note", "tab:wide", single), latex(NASTY, "Nasty: 100% of $ & _", None, single)]
    texts += [latex(table.frame, table.caption, f"tab:{k}", single) for k, table in enumerate(tables)]
    texts += [latex(pd.concat([WIDE] * 40), "Tall", "tab:tall", single)]
    options = "twocolumn,10pt" if single else "10pt"
    body = "\n\n\\clearpage\n".join(texts)
    (tmp_path / "t.tex").write_text(
        f"\\documentclass[{options}]{{article}}\n\\usepackage{{booktabs,longtable,array}}\n"
        f"\\usepackage[margin=0.75in]{{geometry}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n",
        encoding="utf-8",
    )
    for _ in range(3):
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    log = (tmp_path / "t.log").read_text(errors="replace")
    assert "Overfull" not in log
    assert "Warning" not in log.replace("LaTeX Warning: No file t.aux", "")


def _swept(folder: Path) -> Path:
    from fairopt import sweeps

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FAIROPT_TRACES", raising=False)
        for name in SWEPT:
            sweeps.sweep(name, store=folder / "store", smoke=True, progress=False)
    return folder / "store"
