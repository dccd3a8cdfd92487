"""The figures of `paper_figures/`: which there are, drawing one, and writing it as PDF and PNG."""

from __future__ import annotations

import importlib
import sys
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import matplotlib as mpl

from ..errors import DataError
from ..model import _files
from .stored import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "paper_figures"


def known() -> dict[str, Path]:
    """Every figure by its name: `fig_NAME.py`."""
    return {path.stem.removeprefix("fig_"): path for path in sorted(_folder().glob("fig_*.py"))}


def module(name: str) -> ModuleType:
    """The file of a figure, imported: `NEEDS` (experiments), `figure(results, width)`."""
    files = known()
    if name not in files:
        raise DataError(f"there is no figure {name!r}; known: {', '.join(files)}")
    root = str(_folder().parent)
    if root not in sys.path:
        sys.path.append(root)
    return importlib.import_module(f"{FOLDER}.fig_{name}")


def draw(name: str, results: Results, width: float | None = None) -> Figure:
    """A figure from stored results.

    Raises
    ------
    MissingCells
        With the sweep that computes them.
    """
    arguments = {} if width is None else {"width": width}
    figure: Figure = module(name).figure(results, **arguments)
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.pdf` (vectors) and `name.png`; the same figure gives the same PDF. The paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    style = mpl.rc_params_from_file(_folder() / "paper.mplstyle", use_default_template=False)
    with mpl.rc_context(style):  # some of it counts only now, such as how fonts are embedded
        write(figure, paths[0])
        write(figure, paths[1])
    return paths


def drawable(path: Path) -> str:
    """The format of a figure's file, by its suffix; `DataError` if there is none."""
    form = path.suffix.removeprefix(".").lower()
    if form not in ("pdf", "png", "svg"):
        raise DataError(f"cannot draw into {path.name}: choose .pdf, .png or .svg")
    return form


def write(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all, in the format of the suffix: `.pdf` or `.svg` (vectors), `.png`."""
    form = drawable(path)
    file = BytesIO()
    figure.savefig(file, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
    path.parent.mkdir(parents=True, exist_ok=True)
    _files.write(path, file.getvalue(), "figure")


def _folder() -> Path:
    for place in (Path(FOLDER), Path(__file__).resolve().parents[2] / FOLDER):
        if place.is_dir():
            return place.resolve()
    raise DataError(f"there is no folder {FOLDER} here or beside the package; figures are drawn from a checkout")
