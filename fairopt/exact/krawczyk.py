"""Krawczyk's operator: a proof that equations have exactly one solution in a box, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .interval import Interval, interval

Array = NDArray[np.float64]
Box = list[Interval]


def contracted(residual: Box, slopes: Callable[[Box], list[Box]], slope: Array, widths: Sequence[float]) -> Box | None:
    """A box around 0 with exactly one solution of F(w) = 0; `None` if that cannot be proved.

    `residual` is F(0), `slopes` encloses all F'(w) of a box, `slope` is F'(0), nearly; `widths` of boxes are tried in
    turn. The image of the box under Krawczyk's operator is strictly inside of the box, and contains the solution.

    Source: Krawczyk 1969; Moore, SIAM J. Numer. Anal. 14(4), 1977.
    """
    inverse = [[Fraction(value) for value in row] for row in np.linalg.inv(slope)]
    for width in widths:
        half = Fraction(width)
        box = [Interval(-half, half)] * len(residual)
        image = list(_image(inverse, residual, slopes(box), box))
        if all(one.within(whole) for one, whole in zip(image, box, strict=True)):
            return image
    return None


def _image(
    inverse: list[list[Fraction]], residual: list[Interval], slopes: list[list[Interval]], box: list[Interval]
) -> Iterator[Interval]:
    """`-Y F(0) + (I - Y F'(W)) W`, row by row; Y is any matrix, here an approximate inverse."""
    for i, row in enumerate(inverse):
        found = interval(0)
        for k, by in enumerate(row):
            found -= residual[k] * by
        for j, width in enumerate(box):
            entry = interval(int(i == j))
            for k, by in enumerate(row):
                if slopes[k][j].low or slopes[k][j].high:
                    entry -= slopes[k][j] * by
            found += entry * width
        yield found


def middles(table: list[list[Interval]]) -> Array:
    """The middles of a table of intervals, as doubles."""
    return np.array([[float(one.low + one.high) / 2 for one in row] for row in table])


def rank(table: list[list[Fraction]]) -> int:
    """The rank of a small matrix, by elimination in fractions."""
    rows, rank = [list(row) for row in table], 0
    for k in range(len(rows[0])):
        at = next((j for j in range(rank, len(rows)) if rows[j][k]), None)
        if at is not None:
            rows[rank], rows[at] = rows[at], rows[rank]
            for row in rows[rank + 1 :]:
                by = row[k] / rows[rank][k]
                row[:] = [a - by * b for a, b in zip(row, rows[rank], strict=True)]
            rank += 1
    return rank
