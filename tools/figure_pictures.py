"""Pictures of figures for the site, from a complete store: `python tools/figure_pictures.py STORE`.

Figures without cells in the store are reported, and keep their pictures in docs/figures.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # the modules of this checkout take precedence over installed ones

from fairopt.errors import DataError  # noqa: E402
from fairopt.harness.report import figures  # noqa: E402
from fairopt.report import MissingCells, Results  # noqa: E402

PICTURES = ROOT / "docs" / "figures"
#: Scale of the pictures relative to those of `fairopt figures`, for a width of 840 pixels of figures of two columns.
SMALLER = 0.6
COLOURS = 128


def draw(name: str, results: Results, folder: Path = PICTURES) -> bool:
    """Draw a figure; False if the store lacks its cells."""
    try:
        picture = figures.draw(name, results)
    except (MissingCells, DataError):
        return False
    with tempfile.TemporaryDirectory() as place:
        _, drawn, *_ = figures.save(picture, Path(place), name)
        with Image.open(drawn) as whole:
            small = whole.convert("RGB").resize((round(SMALLER * whole.width), round(SMALLER * whole.height)))
    few = small.quantize(COLOURS, dither=Image.Dither.NONE)  # a palette reduces the file to a third
    few.save(folder / f"{name}.png", optimize=True)
    return True


if __name__ == "__main__":
    # Results of older code are accepted, since tests detect changes of results.
    store = Results(Path(sys.argv[1]), accept_older=True)
    for one in sorted(figures.known()):
        sys.stdout.write(f"{one}: {'drawn' if draw(one, store) else 'kept, as cells are missing'}\n")
