"""Colours that can be told apart, also by those who see few of them.

Deuteranopia and protanopia are simulated by the matrices (severity 1) of Machado, Oliveira and Fernandes, "A
physiologically-based model for simulation of color vision deficiency", IEEE TVCG 15(6), 2009, on linear RGB;
colours are as far apart as in CIELAB (1976), where 2.3 is a just noticeable difference.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from numpy.typing import NDArray

from fairopt.explorer.module import style

Array = NDArray[np.float64]

SEEN = {
    "all": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def lab(colour: str, seen: Array) -> Array:
    """CIELAB of a colour such as #332288, as somebody sees it."""
    value = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    ratio = _XYZ @ np.clip(seen @ linear, 0, 1) / _WHITE
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


SCHEMES = [block for block in re.findall(r"\{([^{}]*)\}", style()) if "--fo-user-0" in block]


def test_there_are_three_schemes() -> None:
    """Light, dark by the system, dark by JupyterLab; the last two are one."""
    assert len(SCHEMES) == 3
    assert SCHEMES[1].split() == SCHEMES[2].split()


@pytest.mark.parametrize("scheme", SCHEMES[:2], ids=["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize(("kind", "count", "apart"), [("user", 10, 12.0), ("line", 3, 20.0)])
def test_colours_are_far_apart(scheme: str, seen: str, kind: str, count: int, apart: float) -> None:
    colours = dict(re.findall(rf"--fo-({kind}-\w+): (#[0-9a-f]{{6}})", scheme))
    assert len(colours) == count
    colours |= dict(re.findall(r"--fo-(ground|empty): (#[0-9a-f]{6})", scheme)) if kind == "user" else {}
    at = {name: lab(colour, SEEN[seen]) for name, colour in colours.items()}
    pairs = [pair for pair in itertools.combinations(at, 2) if {*pair} != {"ground", "empty"}]
    near = {pair: float(np.linalg.norm(at[pair[0]] - at[pair[1]])) for pair in pairs}
    assert min(near.values()) >= apart, min(near, key=lambda pair: near[pair])


def test_black_and_white_are_a_hundred_apart() -> None:
    for seen in SEEN.values():
        assert np.linalg.norm(lab("#ffffff", seen) - lab("#000000", seen)) == pytest.approx(100, abs=0.1)
