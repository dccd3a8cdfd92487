"""Every figure is drawn from the tiny experiments; what is missing is named; nothing is ever solved."""

from __future__ import annotations

import math
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose
from PIL import Image
from processes import ROOT

from fairopt import harness, papers
from fairopt.app.cli import main
from fairopt.harness.report import figures, judging
from fairopt.harness.report.figures import caption, draw, known, save
from fairopt.harness.report.stored import StoredCells
from fairopt.mechanisms import Mechanism
from fairopt.report import Results
from fairopt.result.palette import USERS

EVERY = sorted(known())


#: At the width of a page as well, of which `make test-long` draws all.
WIDE = "drfh", "frontier", "pf_comparison_google", "two_users"


@pytest.mark.parametrize(
    ("name", "width"),
    [
        *((name, 3.4) for name in EVERY),
        *(pytest.param(name, 7.0, marks=() if name in WIDE else pytest.mark.long) for name in EVERY),
    ],
)
def test_it_is_drawn_without_solving(name: str, width: float, smoke: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a figure solves")

    monkeypatch.setattr(Mechanism, "solve", refuse)
    figure = draw(name, smoke, width)
    assert all(axes.has_data() for axes in figure.axes)
    if width > 4:  # a layout that does not fit warns, and a warning is an error
        figure.get_layout_engine().execute(figure)
    else:
        figure.draw_without_rendering()
    assert figure.get_figwidth() == width
    assert width > 4 or figure.get_figheight() <= 7, "no room for a caption beneath a figure of one column"
    inside = figure.get_tightbbox()
    assert min(inside.min) > -0.02, "cut on the left, or below"
    assert (inside.max < figure.get_size_inches() + 0.02).all(), "cut on the right, or above"


@pytest.mark.parametrize(("style", "size"), [("paper", 7), ("none", 31), ("ggplot", 31), ("mine.mplstyle", 13)])
def test_it_has_the_style_that_is_asked_for_and_leaves_the_callers_alone(
    smoke: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str, size: float
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.mplstyle").write_text("xtick.labelsize: 13\n")
    with mpl.rc_context({"xtick.labelsize": 31.0}):
        figure = draw("drfh", smoke, like=style)
        assert mpl.rcParams["xtick.labelsize"] == 31.0
    assert {text.get_fontsize() for axes in figure.axes for text in axes.get_xticklabels()} == {size}
    assert (to_hex(figure.axes[0].get_facecolor()) == "#e5e5e5") == (style == "ggplot")
    with figures.style(style):
        figures.write(figure, tmp_path / "x.pdf")
    written = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in written, "fonts that are not embedded as TrueType"
    assert b"/Type3" not in written
    assert main(["figures", "drfh", "--style", "nowhere", "--smoke", "--store", str(smoke.store), "--out", "out"]) == 2


def test_captions_name_panels_by_their_titles() -> None:
    """Panels of a figure of one column stand elsewhere than those of two."""
    place = re.compile(r"\b(left|right|above|below|top|bottom|upper|lower)\b", re.IGNORECASE)
    assert [name for name in EVERY if place.search(caption(name))] == []


def test_a_figure_without_a_width_of_its_own(smoke: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`figure(results, width)`, as docs/plugins.md has it, and the width of one column unless another is asked for."""
    monkeypatch.chdir(tmp_path)
    text = "from paper_figures.style import new\n\nNEEDS = ('drfh_figures',)\n\n\n"
    text += "def figure(results, width):\n    drawn, table = new(width, 2)\n    return drawn\n"
    Path("mine.py").write_text(text)
    for words, inches in (([], 3.4), (["--width", "5"], 5.0)):
        given = ["figures", "mine.py", "--smoke", "--store", str(smoke.store), "--out", "out", *words]
        assert main(given) == 0
        with Image.open("out/mine.png") as picture:
            assert picture.width == round(200 * inches)


def test_the_corner_of_two_users_is_what_a_claim_states(smoke: Results) -> None:
    """Alpha-fairness leaves it at ln 2/ln(5/3): between two alphas of the grid, of which the figure once had one."""
    number = f"{math.log(2) / math.log(5 / 3):.3f}"
    [axes] = draw("two_users", smoke).axes
    [label] = [text.get_text() for text in axes.texts if "CEEI" in text.get_text()]
    assert number in label
    assert number in caption("two_users")
    assert number in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_users_have_the_colours_of_all_pictures(smoke: Results) -> None:
    for name, of in (("drf_allocations", "user"), ("drfh_dynamic", "user"), ("drf_dynamic", "job")):
        parts, labels = draw(name, smoke).axes[0].get_legend_handles_labels()
        first = [one[0] if isinstance(one, tuple) else one for one in parts]
        fills = [to_hex(one.get_color() if hasattr(one, "get_color") else one.get_facecolor()) for one in first]
        users = [fill for fill, label in zip(fills, labels, strict=True) if label.startswith(of)]
        assert users == [light for light, _ in USERS[: len(users)]]
        assert len(users) >= 2


def test_lines_that_coincide_can_be_told_apart(smoke: Results) -> None:
    """By width and dashes, and by markers of which no two stand on one another."""
    use, _, completion, *_ = draw("drfh_day", smoke).axes
    for axes in (use, completion):
        widths = [line.get_linewidth() for line in axes.lines]
        assert widths == sorted(widths, reverse=True)
        assert len({(line.get_linewidth(), line.get_linestyle()) for line in axes.lines}) == len(widths) > 1
        assert not any(line.get_clip_on() for line in axes.lines)
    assert len({line.get_markevery() for line in use.lines}) == len(use.lines)


def test_bars_are_what_the_paper_prints(smoke: Results) -> None:
    axes = draw("pf_example", smoke).axes[0]
    heights = np.array([[bar.get_height() for bar in bars] for bars in axes.containers[:3]])
    printed = {claim.statement: claim.correct for claim in papers.claims("PF", 33) if claim.instance == "pf-fig1"}
    wanted = [printed[f"{mechanism}: tasks"] for mechanism in ("PS-DSF", "DRFH", "TSF")]
    assert_allclose(heights, np.array(wanted, dtype=float), rtol=1e-4)
    marks = [line.get_ydata() for line in axes.lines if line.get_marker() == "D"]
    assert_allclose(marks, heights, rtol=1e-4)


def test_mqdrf_takes_back_what_is_above_a_cap_as_the_next_user_comes(smoke: Results) -> None:
    """MQDRF figure 2: .2 of the CPU and .4 of the memory for user 1 alone; .3 once there is another."""
    for axes, one, two in zip(draw("mqdrf_dynamic", smoke).axes, (0.2, 0.4, 0.4), (0.15, 0.3, 0.3), strict=False):
        time, value = axes.lines[0].get_data()
        assert_allclose(value, np.where(time < 100, one, two))


def test_mqdrf_may_be_cut_short(smoke: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of figure 3 before its third user comes: the first is in the second queue then, and nobody in the third."""
    long = StoredCells.long
    monkeypatch.setattr(StoredCells, "long", lambda cells, name: long(cells, name).query("time < 250"))
    axes = draw("mqdrf_dynamic", smoke).axes[3]
    assert axes.get_title() == "CPU, queues"
    assert [line.get_label() for line in axes.lines] == ["queue 1", "queue 2"]


def test_the_caption_says_on_which_clusters_rounds_grow(smoke: Results) -> None:
    games = smoke.of("alpha_convergence").long("reached").query("order == 'cyclic' and damping != damping")
    wide = (
        games[np.isclose(games["level"], 1e-3)].pivot(index="cluster", columns="alpha", values="rounds").fillna(np.inf)
    )
    grow = (wide[np.inf] >= wide[3.0]).sum()
    said = caption("alpha_convergence", smoke).partition("rounds grow with alpha throughout on ")[2]
    assert len(re.findall("x|Bitbrains|Google", said.partition(" of the clusters")[0])) == grow


def test_alpha_goes_to_infinity(smoke: Results) -> None:
    axes = draw("frontier", smoke).axes[9]
    assert_allclose(axes.lines[0].get_xdata(), [0, 1 / 2, 3 / 4, 1])
    assert axes.get_xticklabels()[-1].get_text() == "∞"
    # CPU, RAM, bandwidth of PF figure 1's variant at alpha = infinity, by hand: 14, 2 x 8 / 3 of server 2
    use = smoke.of("frontier").long("use")
    of = use[(use["cluster"] == "paper") & (use["name"] == "ps-dsf") & (use["class"] == "8 x 16 x 0")]
    assert of.set_index("resource")["utilization"]["RAM"] == pytest.approx(5 / 6, rel=1e-4)


def test_the_command(smoke: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, empty = tmp_path / "out", tmp_path / "empty"
    assert main(["figures", "drfh", "scaling", "--smoke", "--store", str(smoke.store), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert f"drfh -> {out / 'drfh.pdf'}, {out / 'drfh.png'}, {out / 'drfh.txt'}\n" in said
    assert "cells missed their tolerance and are kept" in said
    assert {path.name for path in out.glob("drfh*")} == {"drfh.pdf", "drfh.png", "drfh.txt"}
    empty.mkdir()
    assert main(["figures", "drfh", "pf_time", "--store", str(empty), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert f"4 of 4 cells of drfh_figures are not in {empty}" in error
    assert f"fairopt sweep pf_time --store {empty}" in error
    assert main(["figures", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}: " in listed for name in EVERY)
    assert main(["figures", "drhf"]) == 2
    assert "there is no figure 'drhf'" in capsys.readouterr().err


def test_the_same_results_give_the_same_files(smoke: Results, tmp_path: Path) -> None:
    first, second = (
        [path.read_bytes() for path in save(draw("drf_lie", smoke), tmp_path / place, "x")] for place in "ab"
    )
    assert first == second
    assert b"/FontFile2" in first[0]  # text as text in TrueType, which publishers ask for


def test_cells_are_known_by_the_experiment_that_asks(smoke: Results) -> None:
    """PS-DSF is shared by two experiments, and was computed for one of them."""
    ours = smoke.of("pf_utilization").cells
    assert set(ours["experiment"]) == {"pf_utilization"}
    assert set(ours["key"]) & set(smoke.of("pf_comparison_bitbrains").cells["key"])


def test_failed_cells_and_traces_that_are_not_there_are_said(tmp_path: Path) -> None:
    path = tmp_path / "fails.toml"
    path.write_text(
        'title = "x"\n[clusters]\na = "paper:drf-4.1"\nb = "bitbrains?vms=4&servers=3"\n'
        '[[grid]]\nmechanisms = ["maxmin", "drf"]\n[[grid]]\nclusters = ["a"]\nmechanisms = "ceei"\n'
    )
    harness.sweep(path, store=tmp_path / "store", progress=False)
    found = Results(tmp_path / "store").of(path)
    assert any("failed and are left out" in note and "--retry" in note for note in found.notes)
    assert "maxmin" not in set(found.cells["name"])
    assert "no trace here: calibrated generators stand in (bitbrains?vms=4&servers=3)" in found.notes


def test_tables_have_means_and_intervals(smoke: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tables", "pf_utilization", "--smoke", "--store", str(smoke.store), "--out", str(tmp_path)]) == 0
    assert "\\toprule" in (tmp_path / "pf_utilization.tex").read_text()
    table = pd.read_csv(tmp_path / "pf_utilization.csv").query("cluster == 'bitbrains'").set_index("mechanism")
    cells = smoke.of("pf_utilization").cells
    a, b = cells[(cells["name"] == "ps-dsf") & (cells["cluster"] == "bitbrains")]["utilization"]
    assert table.loc["ps-dsf", "n"] == 2
    assert table.loc["ps-dsf", "utilization"] == pytest.approx((a + b) / 2)
    assert table.loc["ps-dsf", "+- utilization"] == pytest.approx(12.706204736 * abs(a - b) / 2)  # t(0.975, 1)
    capsys.readouterr()
    assert main(["tables", "drfh_figures", "--store", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert "fairopt sweep drfh_figures" in capsys.readouterr().err


def test_pictures_for_the_site_are_drawn_where_the_store_has_their_cells(
    smoke: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import figure_pictures

    nothing = Results(tmp_path / "empty", smoke=True)
    assert figure_pictures.draw("drfh", smoke, tmp_path)
    with Image.open(tmp_path / "drfh.png") as picture:
        assert (picture.width, picture.mode) == (840, "P")
    assert not figure_pictures.draw("drf_lie", nothing, tmp_path)
    assert not (tmp_path / "drf_lie.png").exists()


def test_captions_of_tiny_versions_have_no_verdict(smoke: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have those on the results that they stand under, and name generators in place of traces."""
    assert judging.caption("drfh_dynamic", smoke).startswith("Tiny version, not a result: Parts of CPU")
    for name in ("drf_figures", "drfh_dynamic"):
        smoke.of(name)
    monkeypatch.setattr(smoke, "smoke", False)
    said = judging.caption("drfh_dynamic", smoke)
    assert "Cannot be judged here: not decided by 1 draw: two users have dominant shares of 44%" in said
    assert judging.caption("drf_lie", smoke).endswith("under DRF 4.17 and 33.3 become 4.17 and 33.3.")
