"""Colours of users by their positions in a cluster, the same in every figure and in the explorer."""

from __future__ import annotations

from collections.abc import Sequence

#: Colours by position in the cluster, each for a light and a dark background. The first nine colours are Paul Tol's
#: muted scheme, with dark and light colours in turn; each further colour is far from all earlier colours (in CIELAB,
#: also as seen without red or green cones).
USERS = (
    ("#332288", "#8c86e8"), ("#88ccee", "#bfe6fa"), ("#117733", "#2f9e58"), ("#ddcc77", "#efe19a"),
    ("#aa4499", "#c85fb6"), ("#44aa99", "#5fd0bd"), ("#882255", "#b0406f"), ("#999933", "#b9b94a"),
    ("#cc6677", "#e58a98"), ("#4040f0", "#b44cfe"), ("#3ad23a", "#7feb13"), ("#e02a10", "#fd5a0d"),
    ("#6b2f05", "#b66342"), ("#f03cf0", "#ff6efb"), ("#ffc814", "#eedd17"), ("#1e8cff", "#72b5f9"),
    ("#14e0a0", "#57f698"), ("#006987", "#408aa2"), ("#ff96ff", "#eab7fb"),
)  # fmt: skip
#: Colours of all other users together, for a light and a dark background.
OTHERS = ("#c8c8c8", "#484848")


def of_users(positions: Sequence[int]) -> list[int]:
    """Indices in `USERS` of the users at the given positions of a cluster, distinct for at most 19 positions.

    The index of a user is its position modulo 19, or, if a user of an earlier position has that index, the next unused
    index.

    >>> from fairopt.result.palette import of_users
    >>> of_users([4, 0, 19])
    [4, 0, 1]
    """
    given: dict[int, int] = {}
    for n in sorted(positions):
        following = [(n + k) % len(USERS) for k in range(len(USERS))]
        given[n] = next((k for k in following if k not in given.values()), following[0])
    return [given[n] for n in positions]
