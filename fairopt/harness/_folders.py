"""Where experiments are found by name."""

from __future__ import annotations

from pathlib import Path

from .. import _shipped


def folders() -> list[Path]:
    """Where experiments are looked for by name: `experiments` here, and those that come with the package."""
    places = [Path("experiments"), _shipped.folder("experiments")]
    return [place for k, place in enumerate(places) if place.is_dir() and place.resolve() not in
            [other.resolve() for other in places[:k]]]  # fmt: skip


def known() -> dict[str, Path]:
    """Every experiment that can be called by its name."""
    found: dict[str, Path] = {}
    for folder in folders():
        for path in sorted(folder.glob("*.toml")):
            found.setdefault(path.stem, path)
    return found
