"""The documentation site: its source is put together, links that lead nowhere are found, and Sphinx builds it."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fairopt as fo
from fairopt.cli import main
from fairopt.report import figures

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        spec = importlib.util.spec_from_file_location(f"{name}_of_site", ROOT / "tools" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def site() -> ModuleType:
    return load("build_site")


@pytest.fixture(scope="module")
def text() -> ModuleType:
    return load("docstring_text")


@pytest.fixture(scope="module")
def formula(text: ModuleType) -> ModuleType:
    return text.formula


@pytest.mark.slow
def test_every_mechanism_command_paper_and_figure_has_a_page(
    site: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    source = site.assemble(tmp_path / "source")
    for name in fo.mechanisms.names():
        assert "![What two users can have" in (source / "mechanisms" / f"{name}.md").read_text(encoding="utf-8")
    for name in fo.properties.names():
        page = (source / "properties" / f"{name}.md").read_text(encoding="utf-8")
        assert (fo.properties.get(name).__doc__ or "").splitlines()[0] in page
    assert "[proof B](../properties.md#proof-b)" in (source / "properties" / "strategy-proofness.md").read_text()
    assert "properties/envy-freeness.md" in (source / "theory.md").read_text(encoding="utf-8")
    for name in figures.known():
        assert figures.caption(name) in (source / "figures" / f"{name}.md").read_text(encoding="utf-8")
    command = (source / "commands" / "reproduce.md").read_text(encoding="utf-8")
    assert command.count("--smoke") >= 1
    assert "- [Reproduce a paper](../reproduce.md)\n" in command
    assert "TPDS 2018" in (source / "papers" / "pf.md").read_text(encoding="utf-8")
    assert (source / "schemas" / "cluster.schema.json").exists()
    framed = (source / "alpha-on-a-slider.md").read_text(encoding="utf-8")
    explorer = source / "_static" / "explorers" / "paper-pf-fig1-variant.html"
    assert f'src="{explorer.relative_to(source).as_posix()}"' in framed
    assert "fo-explorer" in explorer.read_text(encoding="utf-8")
    algorithm = (source / "algorithms" / "server-response.md").read_text(encoding="utf-8")
    assert '<a href="../code/fairopt/game/responses/_response.py.html#L-' in algorithm
    assert "```math" in algorithm
    assert "algorithms/server-response\n" in (source / "algorithms.md").read_text(encoding="utf-8")
    assert "mechanisms/drf.md" in (source / "theory.md").read_text(encoding="utf-8")
    listed = (source / "index.md").read_text(encoding="utf-8").partition("```{toctree}")[2]
    assert "tutorials" in listed
    # A link to a line of code leads to a page of code, and one out of docs/ nowhere.
    page = (source / "architecture.md").read_text(encoding="utf-8")
    assert '<a href="code/fairopt/model/cluster.py.html#L-' in page
    assert "](../" not in "".join(path.read_text(encoding="utf-8") for path in source.glob("*.md"))


def test_links_that_lead_nowhere_are_found(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">x</a><a href="b.html#gone">y</a><a href="https://x.y">z</a>'
    )
    (tmp_path / "b.html").write_text(
        '<p id="here"></p><a href="c.html">x</a><a href="a.html?v=1">y</a><img src="d.png">'
    )
    assert site.lost(tmp_path) == ["a.html: b.html#gone", "b.html: c.html", "b.html: d.png"]


def test_docstrings_become_pages(text: ModuleType) -> None:
    found = ["Dominant.", "", "    lex max s", "", "Parameters", "----------", "a : number", "", "Properties: SI.",
             "", "Source: DRF."]  # fmt: skip
    lines = list(found)
    text.process(None, "class", "x", None, None, lines)
    assert lines[lines.index(".. math::") + 3] == r"    & \text{ lex } \max s"
    assert lines.index("Notes") > lines.index("a : number")
    assert lines[lines.index("References") :] == ["References", "----------", "", "DRF."]
    shown = text.markdown("\n".join(found))
    assert "```math\n\\begin{aligned}\n& \\text{ lex } \\max s\n\\end{aligned}\n```" in shown
    assert "- `a`: number" in shown
    more = ["Parameters", "----------", "a : number", "", "Convex for some, and `a > 1`.", "", "Source: X."]
    assert "\n\nConvex for some" in text.markdown("\n".join(more))
    text.process(None, "class", "x", None, None, more)
    assert more.index("Notes") < more.index("Convex for some, and `a > 1`.") < more.index("References")
    code = "Do:\n\n    fo.DRF().solve(cluster)\n\nor not."
    assert "```text\nfo.DRF().solve(cluster)\n```" in text.markdown(code)
    lines = code.splitlines()
    text.process(None, "function", "x", None, None, lines)
    assert ".. math::" not in lines


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x_n / (gamma[n,i] phi_n)", r"\frac{x_{n}}{\gamma_{n,i} \varphi_{n}}"),
        ("phi_n / sum_m phi_m", r"\frac{\varphi_{n}}{\sum_{m} \varphi_{m}}"),
        ("(sum_n t_n^(1-beta))^(1/beta)", r"\left( \sum_{n} t_{n}^{1 - \beta} \right)^{1/\beta}"),
        ("x_n <= max_tasks[n]", r"x_{n} \le \mathrm{max\_tasks}_{n}"),
        ("lex max min_n  x_n", r"\operatorname{lex\,max\,min}_{n} \quad x_{n}"),
        ("a = 1,  b = 2", "a = 1 , \\\\\n& b = 2"),
        ("sum_{i: e[n,i]} x'[n,i]", r"\sum_{i : e_{n,i}} x'_{n,i}"),
        ("phi_n * d'_n >= 0 => d' > d", r"\varphi_{n} \cdot d'_{n} \ge 0 \Rightarrow d' > d"),
        ("x of a level k", r"x \text{ of a level } k"),
    ],
)
def test_formulas_become_mathematics(formula: ModuleType, written: str, meant: str) -> None:
    assert formula.tex(written) == f"\\begin{{aligned}}\n& {meant}\n\\end{{aligned}}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x_n/(phi_n gamma_ni)", r"x_{n}/( \varphi_{n} \gamma_{ni} )"),
        ("|log p_n - log m_n| / A", r"\left| \log p_{n} - \log m_{n} \right|/A"),
        ("X_n^-alpha", r"X_{n}^{-\alpha}"),
        ("exp(+-3 e) >> 2e-5", r"\exp( \pm 3 e ) \gg 2 \cdot 10^{-5}"),
        ("l*_i/l_i", r"l^*_{i}/l_{i}"),
        ("max_i (x_i / c)", r"\max_{i} ( x_{i}/c )"),
    ],
)
def test_formulas_in_sentences(formula: ModuleType, written: str, meant: str) -> None:
    assert formula.inline(written) == meant


@pytest.mark.parametrize("other", ["solve_many", "certificate.condition", "make test", "-m", "tol=1e-6", "DRF", "|x"])
def test_code_in_sentences_stays(formula: ModuleType, other: str) -> None:
    with pytest.raises(formula.NotAFormula):
        formula.inline(other)


def test_pages_of_theory_become_mathematics(text: ModuleType) -> None:
    made = text.typeset_page(
        "Tasks `x_n` of\n`a.py`:\n\n    x_n <= q_n\n\n- item\n\n    - `d[n,r]` `` `x` ``\n\n```\n`x_n`\n```\n"
    )
    assert made == (
        "Tasks {math}`x_{n}` of\n`a.py`:\n\n```math\n\\begin{aligned}\n& x_{n} \\le q_{n}\n\\end{aligned}\n```\n\n"
        "- item\n\n    - {math}`d_{n,r}` `` `x` ``\n\n```\n`x_n`\n```\n"
    )
    inside = text.typeset_page("1. One:\n\n       x_n = 1\n\n2. Two.\n")
    assert inside.splitlines()[2:5] == ["   ```math", "   \\begin{aligned}", "   & x_{n} = 1"]
    assert inside.endswith("   ```\n\n2. Two.\n")


@pytest.mark.parametrize("other", ["fo.DRF()", "x['a']", "/ x", "(x", "x)", "a.b = 1", "x = `a`"])
def test_what_is_no_formula_is_refused(formula: ModuleType, other: str) -> None:
    with pytest.raises(formula.NotAFormula):
        formula.tex(other)


@pytest.mark.parametrize("name", fo.mechanisms.names())
def test_every_programme_is_mathematics(text: ModuleType, name: str) -> None:
    shown = text.markdown(inspect.getdoc(fo.mechanisms.REGISTRY[name]))
    assert "```math" in shown
    assert "```text" not in shown


def test_answers_come_first_in_a_search_and_the_project_last(site: ModuleType) -> None:
    made = site.scorer("- [A](a.md), [B](b.md#x)\n- [A](a.md#y)")
    assert 'first: ["a", "b"]' in made
    assert 'page.startsWith("algorithms/")' in made
    known = {path.stem for path in (ROOT / "docs").glob("*.md")} | {"changelog", "contributing"}
    assert set(site.ABOUT) <= known


@pytest.mark.parametrize("name", fo.properties.names())
def test_every_definition_is_mathematics(text: ModuleType, name: str) -> None:
    assert "```text" not in text.markdown(inspect.getdoc(type(fo.properties.get(name))))


def test_a_page_that_lists_others_is_a_table_of_contents(site: ModuleType) -> None:
    text = "# A\n\n- [B](b.md): b\n- [C](notebooks/c.ipynb)\n- [D](mechanisms/d.md)\n\n```\n- [E](e.md)\n```\n"
    assert site.contents(text, "theory").split() == ["```{toctree}", ":hidden:", "b", "notebooks/c", "```"]
    assert site.contents(text, "mechanisms").split() == ["```{toctree}", ":hidden:", "mechanisms/d", "```"]
    assert site.contents(text, "choose") == site.contents("[B](b.md)", "theory") == ""


def test_the_command_opens_it_or_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fairopt import _shipped

    monkeypatch.setattr(_shipped, "folder", lambda name: tmp_path / name)
    assert main(["docs"]) == 2
    assert "make docs" in capsys.readouterr().err
    page = tmp_path / "build" / "site" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>")
    assert main(["docs", "--where"]) == 0
    assert capsys.readouterr().out == f"{page}\n"


@pytest.mark.long
def test_it_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="make docs installs Sphinx; here it is not")
    for name in ("furo", "myst_nb", "sphinx_gallery", "numpydoc", "sphinx_copybutton"):
        pytest.importorskip(name, reason=f"{name} is not installed: fairopt[docs]")
    environment = os.environ | {"FAIROPT_DOCS_NOTEBOOKS": "off", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "tools/build_site.py", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
