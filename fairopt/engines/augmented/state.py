"""Options and points of `augmented`, and the residuals at a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """How the last digits are found."""

    #: Pairs take part with a slack (relative, in tasks) below a hundred times the root of mu, between these, and with
    #: more tasks than slack.
    near: float = 3e-3
    nearest: float = 1e-5
    #: They leave with less than this part of their slack in tasks, where fewer than that part of all would stay.
    leave: float = 1e-3
    marginal_leaving: float = 0.8
    #: Of those without tasks at most so many times users and rows, the least slacks first.
    most_pairs: float = 2.0
    #: Rows whose part in what their users pay is above this take part, and so does every row that idles less.
    priced: float = 1e-9
    full: float = 1e-2
    #: mu begins between these, and ends at the last.
    most_mu: float = 1e-2
    least_start: float = 1e-14
    #: and at this part of the tasks of pairs that do not take part.
    start_of_lost: float = 1e-3
    least_mu: float = 1e-26
    #: Most steps, in systems of more unknowns than `large` fewer; steps without progress; times that pairs or rows come
    #: back.
    steps: int = 40
    large: int = 600
    large_steps: int = 30
    patience: int = 8
    returns: int = 5
    #: Pairs and rows come back where the run without them ended below this error.
    solved: float = 1e-6
    #: Multiple of the identity that makes up for splits and prices that are not unique, and where pairs are eliminated.
    regular: float = 1e-9
    regular_of_many: float = 1e-8
    #: Up to so many unknowns the matrix is dense.
    dense: int = 150
    #: Refinements of a solution: at most so many, until so small a part is left, while each leaves less than this part.
    refinements: int = 8
    exact: float = 1e-13
    closer: float = 0.5
    #: How much of the way to the boundary, at least and at most, and the most that a cost changes, in a step.
    part: float = 0.99
    whole: float = 1 - 1e-10
    nearly: float = 0.9
    short_part: float = 0.8
    longest: float = 3.0
    #: Where the step to mu = 0 is shorter than this, products are brought to their average first.
    blocked: float = 0.1


@dataclass(frozen=True)
class State:
    """A point, of the pairs, rows and limits that take part."""

    part: Array  # (pairs,), y: tasks over those of the user at the start
    slack: Array  # (pairs,), z
    log_row: Array  # (rows,), log price of the whole capacity
    weight: Array  # (rows,), sigma
    idle: Array  # (rows,), w
    room: Array  # (limited,), v over q
    excess: Array  # (limited,), xi over A


@dataclass(frozen=True)
class Residuals:
    """What is wrong at a point: the largest error, relative in tasks, and the equations that do not involve mu."""

    error: float
    pair: Array  # (pairs,), by what true slacks exceed z
    row: Array  # (rows,)
    limit: Array  # (limited,)
    share: Array  # (pairs, resources), parts in what pairs pay
    total: Array  # (users,), tasks over those at the start
