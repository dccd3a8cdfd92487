"""Location of shipped files other than the package: docs, experiments, figures, notebooks, the verifier, vectors.

In a checkout these are folders beside the package; `setup.py` puts them inside a wheel.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """Folder of `docs`, `experiments`, `paper_figures`, `notebooks`, `tools` or `vectors`, which may not exist."""
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name
