"""Location of shipped files other than code: docs, experiments, figures, notebooks.

In a checkout these are folders beside the package; `setup.py` puts them inside a wheel.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """Folder of `docs`, `experiments`, `paper_figures` or `notebooks`, which may not exist."""
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name
