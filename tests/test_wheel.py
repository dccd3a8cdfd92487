"""A wheel, installed into a fresh environment, used in an empty folder: with nothing of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from processes import ROOT

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def fairopt(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The command of a fresh environment; what fairopt depends on is lent by this one."""
    place = tmp_path_factory.mktemp("wheel")
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "FAIROPT_TRACES")}
    environment |= {"MPLBACKEND": "Agg", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    said = partial(subprocess.run, env=environment, cwd=place, stdout=subprocess.PIPE, text=True, check=True)
    pip = [sys.executable, "-m", "pip"]
    source = place / "source"  # no build folder is left in the checkout
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".venv", ".git", "build", "results", "*.egg-info", "__pycache__")
    )
    said([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(source)])
    (wheel,) = place.glob("*.whl")
    venv.create(place / "env", with_pip=False)
    python = str(place / "env" / "bin" / "python")
    said([*pip, "--python", python, "install", "--quiet", "--no-deps", str(wheel)])  # not ours, were it on the path
    purelib = said([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).stdout.strip()
    lent = [sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith(("site-packages", "_site")))]
    Path(purelib, "lent.pth").write_text("\n".join(dict.fromkeys(lent)))  # its own .pth files, as ours, do not count
    command = str(place / "env" / "bin" / "fairopt")

    def run(*words: str, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([command, *words], cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    assert said([python, "-c", "import fairopt; print(fairopt.__file__)"]).stdout.startswith(purelib)
    return run


@pytest.mark.long
def test_from_an_empty_folder(fairopt: Run, tmp_path: Path) -> None:
    # What the package would run if it took Python files from the current folder.
    for trap in ("paper_figures/__init__.py", "paper_figures/fig_frontier.py", "numpy.py", "experiments/x.py"):
        (tmp_path / trap).parent.mkdir(exist_ok=True)
        (tmp_path / trap).write_text("raise SystemExit('imported unasked')")
    assert "DRF: 2 users" in fairopt("solve", "paper:drf-4.1", "-m", "drf", folder=tmp_path).stdout
    assert "TSF" in fairopt("compare", "paper:drfh-fig1", "-m", "drfh,tsf", folder=tmp_path).stdout
    assert "1 instances" in fairopt("bench", "export", "queues-kai-2", folder=tmp_path).stdout
    for path in (ROOT / "docs").glob("*.md"):
        assert fairopt("docs", path.stem, folder=tmp_path).stdout == path.read_text(encoding="utf-8")
    place = Path(fairopt("docs", "choose", "--where", folder=tmp_path).stdout.strip()).parent
    fairopt("properties", "--replay", str(place / "witnesses" / "drf--population-monotonicity.json"), folder=tmp_path)
    listed = {line.partition(":")[0] for line in fairopt("sweep", "--list", folder=tmp_path).stdout.splitlines()}
    assert listed == {path.stem for path in (ROOT / "experiments").glob("*.toml")}
    figures = fairopt("figures", "--list", folder=tmp_path).stdout
    assert len(figures.splitlines()) == len([*(ROOT / "paper_figures").glob("fig_*.py")])
    fairopt("sweep", "pf_example", folder=tmp_path)
    fairopt("tables", "pf_example", folder=tmp_path)
    assert [*(tmp_path / "results").glob("*pf*.csv")]
    fairopt("figures", "pf_example", "--out", "drawn", folder=tmp_path)
    assert (tmp_path / "drawn" / "pf_example.pdf").stat().st_size > 0
    fairopt("claims", "--item", "2", folder=tmp_path)
    fairopt("claims", "--item", "35", folder=tmp_path)  # judged by what was measured, which comes with the package

    fairopt("notebooks", "books", folder=tmp_path)
    books, ours = (tmp_path / "books").iterdir(), (ROOT / "notebooks").glob("*.ipynb")
    assert {path.name for path in books} == {path.name for path in ours}
    assert "is there already" in fairopt("notebooks", "books", folder=tmp_path, status=2).stderr
