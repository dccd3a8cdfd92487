"""The figures of `paper_figures/`: which there are, drawing one, and writing it as PDF and PNG."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from ..errors import DataError
from .stored import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "paper_figures"

#: What is written across figures of tiny versions: nobody must take them for results.
_MARK: dict[str, Any] = {
    "ha": "center", "va": "center", "rotation": 8, "color": "#c00000", "alpha": 0.55,
    "fontweight": "bold", "zorder": 1000,
}  # fmt: skip


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
    if results.smoke:
        size = min(6.0 * figure.get_figwidth(), 13.0 * figure.get_figheight())
        figure.text(0.5, 0.5, "TINY VERSION\nnot a result", fontsize=size, **_MARK)
    return figure


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.pdf` (vectors) and `name.png`; the same figure gives the same PDF. The paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    style = mpl.rc_params_from_file(_folder() / "paper.mplstyle", use_default_template=False)
    with mpl.rc_context(style):  # some of it counts only now, such as how fonts are embedded
        figure.savefig(paths[0], metadata={"CreationDate": None})
        figure.savefig(paths[1])
    return paths


def _folder() -> Path:
    for place in (Path(FOLDER), Path(__file__).resolve().parents[2] / FOLDER):
        if (place / "paper.mplstyle").is_file():  # not the folder that figures are written into
            return place.resolve()
    raise DataError(f"there is no folder {FOLDER} here or beside the package; figures are drawn from a checkout")
