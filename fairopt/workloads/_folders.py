"""Find a trace below (or at, or just above) a folder that a person named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from ..errors import DataError

SUFFIXES = (".csv", ".csv.gz")


def table_files(folder: Path, start: str = "") -> list[Path]:
    """The `.csv` and `.csv.gz` files of a folder whose names begin with `start`, by name."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.startswith(start) and path.name.endswith(SUFFIXES))


def locate(
    directory: str | Path, known_as: str, holds: Callable[[Path], bool], layout: str, parts: Collection[str] = ()
) -> Path:
    """The folder that `holds` the trace: `directory`, or a sub-folder whose name begins with `known_as`.

    Where `directory` is one of the `parts` of a trace, a folder by that name, its parent is meant.

    Raises
    ------
    DataError
        When there is none, with the expected `layout`.
    """
    root = existing(directory, layout)
    for folder in (root.parent if root.name in parts else root, *_subfolders(root, known_as)):
        if holds(folder):
            return folder
    raise DataError(f"{root} holds no trace that can be read here; expected {layout}")


def existing(directory: str | Path, layout: str) -> Path:
    """`directory` as a path, if it is a folder."""
    root = Path(directory)
    if not root.is_dir():
        raise DataError(f"{root} is not a folder; expected {layout}")
    return root


def _subfolders(root: Path, known_as: str) -> Iterable[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir() and path.name.startswith(known_as))
