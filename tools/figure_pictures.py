"""Pictures of figures for the site, from full stores: `python tools/figure_pictures.py STORE...`.

Figures that no store has all cells of are named, and keep the picture they have in docs/figures."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # of this checkout, whatever is installed

from fairopt.errors import DataError  # noqa: E402
from fairopt.report import MissingCells, Results, figures  # noqa: E402

PICTURES = ROOT / "docs" / "figures"
#: Of the dots that `fairopt figures` draws; a figure as wide as two columns has 840.
SMALLER = 0.6
COLOURS = 128


def draw(name: str, stores: Sequence[Results], folder: Path = PICTURES) -> bool:
    """Draw a figure from the first store that has its cells; is there one?"""
    for results in stores:
        try:
            picture = figures.draw(name, results)
        except (MissingCells, DataError):
            continue
        with tempfile.TemporaryDirectory() as place:
            _, drawn, *_ = figures.save(picture, Path(place), name)
            with Image.open(drawn) as whole:
                small = whole.convert("RGB").resize((round(SMALLER * whole.width), round(SMALLER * whole.height)))
        few = small.quantize(COLOURS, dither=Image.Dither.NONE)  # a third as large
        few.save(folder / f"{name}.png", optimize=True)
        return True
    return False


if __name__ == "__main__":
    # Cells of older code do: pictures show results, and what changes these is noticed by tests.
    stores = [Results(Path(store), accept_older=True) for store in sys.argv[1:]]
    for one in sorted(figures.known()):
        sys.stdout.write(f"{one}: {'drawn' if draw(one, stores) else 'kept, as cells are missing'}\n")
