"""Files shipped with the package besides code: docs, experiments, figures, notebooks.

In a checkout these are the folders beside the package; a wheel has them inside (`setup.py` puts them there).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """Folder of `docs`, `experiments`, `paper_figures` or `notebooks`; it may not exist."""
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name
