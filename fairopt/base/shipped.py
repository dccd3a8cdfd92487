"""Shipped files: data of the package, and folders beside it, which `setup.py` puts inside a wheel."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """Folder of `docs`, `experiments`, `paper_figures`, `notebooks`, `tools` or `vectors`, which may not exist."""
    inside = _PACKAGE / "shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def content(package: str, name: str) -> Any:
    """Content of a file within a package: a table or list if it is TOML or JSON, else its text."""
    text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
    reader = {".toml": tomllib.loads, ".json": json.loads}.get(Path(name).suffix)
    return reader(text) if reader else text
