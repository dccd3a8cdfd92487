"""Figures of `paper_figures/` and of files named by the user: drawing from stored results, and export."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import Parameter, signature
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib import style as styles

from ...base import files as _files
from ...base import plugins
from ...base import shipped as _shipped
from ...base.errors import DataError
from .stored import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = "paper_figures"
#: Styles besides the styles of Matplotlib: `PAPER` is the style of the papers, `NONE` keeps the current settings.
PAPER, NONE = "paper", "none"
#: Width in inches of a figure that states no width: one column.
COLUMN = 3.4

#: Format of the mark across figures of tiny versions, which must not be mistaken for results.
_MARK: dict[str, Any] = {
    "ha": "center", "va": "center", "rotation": 8, "color": "#c00000", "alpha": 0.55,
    "fontweight": "bold", "zorder": 1000,
}  # fmt: skip


def known() -> dict[str, Path]:
    """Files of all figures by name: shipped files `fig_NAME.py`, and plug-ins."""
    shipped = {path.stem.removeprefix("fig_"): path for path in sorted(_folder().glob("fig_*.py"))}
    return shipped | {name: Path(str(module.__file__)) for name, module in _plugged().items()}


def _plugged() -> dict[str, ModuleType]:
    """Plug-ins that define a figure, by the names of their files."""
    return {title(str(one.__file__)): one for one in plugins.modules() if _is_one(one)}


def _is_one(made: ModuleType) -> bool:
    return hasattr(made, "NEEDS") and hasattr(made, "figure")


def out() -> str:
    """Default output folder: `paper_figures/out` in a checkout, else `figures`, below the current folder."""
    return f"{FOLDER}/out" if Path(FOLDER).is_dir() else "figures"


def title(name: str) -> str:
    """Base name of a figure's output files."""
    return Path(name).stem.removeprefix("fig_")


def module(name: str) -> ModuleType:
    """Import the module of a figure by name or file (`.py`), which defines `NEEDS`, experiments, and `figure(results)`.

    An unknown name, or a file without these definitions, raises `DataError`.
    """
    _package()
    if name.endswith(".py"):
        return _of_file(Path(name))
    if name not in (files := known()):
        raise DataError(f"there is no figure {name!r}; known: {', '.join(files)}; or name a file, fig_NAME.py")
    return _plugged().get(name) or importlib.import_module(f"{FOLDER}.fig_{name}")


def _package() -> None:
    """Import the package of figures from fairopt's own folder, regardless of the current folder."""
    folder, loaded = _folder(), sys.modules.get(FOLDER)
    if loaded is None or Path(str(loaded.__file__)).resolve().parent != folder:
        for name in [name for name in sys.modules if name.partition(".")[0] == FOLDER]:
            del sys.modules[name]
        sys.path.insert(0, str(folder.parent))
        try:
            importlib.import_module(FOLDER)
        finally:
            sys.path.remove(str(folder.parent))


def _of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise DataError(f"there is no file {path}; fairopt new figure NAME writes one")
    made = plugins.load(path).module
    if not _is_one(made):
        raise DataError(f"{path} is no figure: it must define NEEDS = (experiment, ...) and figure(results, width)")
    return made


def caption(name: str, results: Results | None = None) -> str:
    """Caption of a figure: the constant `CAPTION` of its module, or the first paragraph of the module's docstring.

    If the module has a function `caption`, the text that it returns for the results follows.
    """
    found = module(name)
    if results is not None and hasattr(found, "caption"):
        return f"{caption(name)} {found.caption(results)}"
    return " ".join(str(getattr(found, "CAPTION", (found.__doc__ or "").partition("\n\n")[0])).split())


@contextmanager
def style(name: str = PAPER) -> Iterator[None]:
    """Context with the style of the papers, the current settings (`none`), or a style of Matplotlib by name or file.

    An unknown style raises `DataError`.
    """
    with mpl.rc_context():
        if name == PAPER:
            mpl.rcdefaults()
        try:
            styles.use(_folder() / "paper.mplstyle" if name == PAPER else {} if name == NONE else name)
        except OSError:
            raise DataError(
                f"there is no style {name!r}; known: {PAPER}, {NONE}, a file .mplstyle, {', '.join(styles.available)}"
            ) from None
        yield


def draw(name: str, results: Results, width: float | None = None, like: str = PAPER) -> Figure:
    """Draw a figure from stored results; `width` is in inches, and `like` is a style (`style`).

    Raises
    ------
    MissingCells
        The store lacks cells; the message has the command that computes them.
    """
    drawn = module(name).figure
    if width is None and signature(drawn).parameters["width"].default is Parameter.empty:
        width = COLUMN
    with style(like):
        figure: Figure = drawn(results) if width is None else drawn(results, width)
        if results.smoke:
            size = min(6.0 * figure.get_figwidth(), 13.0 * figure.get_figheight())
            figure.text(0.5, 0.5, "TINY VERSION\nnot a result", fontsize=size, **_MARK)
    return figure


def save(figure: Figure, folder: Path, name: str, said: str | None = None, like: str = PAPER) -> list[Path]:
    """Write `name.pdf` (vector graphics), `name.png`, and a caption `said`, if given, as `name.txt`; return the paths.

    Equal figures yield equal PDF files.
    """
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    with style(like):  # some settings take effect on export, such as the embedding of fonts
        for path in paths:
            write(figure, path)
    if said is not None:
        paths.append(folder / f"{name}.txt")
        _files.write(paths[-1], f"{said}\n", "caption")
    return paths


def drawable(path: Path) -> str:
    """Format of a figure's file by its suffix; `DataError` if it is not supported."""
    form = path.suffix.removeprefix(".").lower()
    if form not in ("pdf", "png", "svg"):
        raise DataError(f"cannot draw into {path.name}: choose .pdf, .png or .svg")
    return form


def write(figure: Figure, path: Path) -> None:
    """Write a figure atomically, in the format of the suffix: `.pdf` or `.svg` (vector graphics), or `.png`.

    Fonts of a PDF file are embedded as TrueType (Type 42) whatever the style: publishers reject Type 3. Another suffix,
    or a failure to write, raises `DataError`.
    """
    form = drawable(path)
    file = BytesIO()
    with mpl.rc_context({"pdf.fonttype": 42}):
        figure.savefig(file, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
    _files.folder(path.parent)
    _files.write(path, file.getvalue(), "figure")


def _folder() -> Path:
    return _shipped.folder(FOLDER).resolve()
