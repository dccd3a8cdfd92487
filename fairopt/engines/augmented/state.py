"""Options and points of `augmented`, and the residuals at a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """How the last digits are found. Slacks and parts y are relative, in tasks; mu is a product of two of them."""

    #: (n, i) takes part with `slack < min(near, max(nearest, 100 sqrt(mu)))`, or `y > slack`; comes back with
    #: `slack < near/10`.
    near: float = 3e-3
    nearest: float = 1e-5
    #: It leaves with `y < leave slack`, once fewer than the part `marginal_leaving` of all would stay.
    leave: float = 1e-3
    marginal_leaving: float = 0.8
    #: Of pairs without tasks at most `most_pairs (users + rows)`, the least slacks first.
    most_pairs: float = 2.0
    #: A row takes part whose part in what its users pay is above `priced`, or above the part of it that idles; and one
    #: that idles by less than `full`. (An interior point leaves parts of mu over what idles, and the matrix is as large
    #: as the number of rows: with 1e-9 all of 400 took part on 100 servers, and a step cost three times as much.)
    priced: float = 1e-6
    full: float = 1e-2
    #: mu begins between `least_start` and `most_mu`, and is at least `least_mu`.
    most_mu: float = 1e-2
    least_start: float = 1e-14
    least_mu: float = 1e-26
    #: mu begins at `start_of_lost` times the tasks of pairs that do not take part, or more.
    start_of_lost: float = 1e-3
    #: Most steps: `steps`, or `large_steps` with more than `large` unknowns.
    steps: int = 40
    large: int = 600
    large_steps: int = 30
    #: Most steps without progress.
    patience: int = 8
    #: Pairs and rows come back at most `returns - 1` times, if the run without them ended with `error <= solved`.
    returns: int = 5
    solved: float = 1e-6
    #: Where they are violated by more than `astray`, steps begin again from where the run came from.
    astray: float = 1e-4
    #: Multiple of the identity that makes up for splits and prices that are not unique: in a dense matrix, and where
    #: pairs are eliminated.
    regular: float = 1e-9
    regular_of_many: float = 1e-8
    #: The matrix is dense with at most `dense` unknowns.
    dense: int = 150
    #: A solution is refined at most `refinements` times, until `residual <= exact |rhs|`, while each leaves less than
    #: the part `closer` of the residual.
    refinements: int = 8
    exact: float = 1e-13
    closer: float = 0.5
    #: Of a step to the boundary of length t the part `min(max(part, 1 - target), whole)` is taken, `short_part` for
    #: `t <= nearly`.
    part: float = 0.99
    whole: float = 1 - 1e-10
    nearly: float = 0.9
    short_part: float = 0.8
    #: Costs and totals change by at most this factor in a step.
    longest: float = 3.0
    #: Where the step to mu = 0 is shorter than `blocked`, products are brought to their average first.
    blocked: float = 0.1
    #: Users are served in full with `x_n >= (1 - at_limit) q_n`.
    at_limit: float = 1e-6
    #: The error that is aimed at whatever the tolerance: a judge measures a little otherwise, and the last steps square
    #: the error.
    target: float = 1e-12
    #: How often the tangent of a utility that is no power is taken.
    tangents: int = 8


#: What is used unless a caller says otherwise.
OPTIONS = Options()


@dataclass(frozen=True)
class AugmentedState:
    """A point, of the pairs, rows and limits that take part."""

    part: Array  # (pairs,), y: tasks over those of the user at the start
    slack: Array  # (pairs,), z
    log_row: Array  # (rows,), log price of the whole capacity
    weight: Array  # (rows,), sigma
    idle: Array  # (rows,), w
    room: Array  # (limited,), v over q
    excess: Array  # (limited,), xi over A


@dataclass(frozen=True)
class AugmentedResiduals:
    """What is wrong at a point: the largest error, relative in tasks, and the equations that do not involve mu."""

    error: float
    pair: Array  # (pairs,), by what true slacks exceed z
    row: Array  # (rows,)
    limit: Array  # (limited,)
    share: Array  # (pairs, resources), parts in what pairs pay
    total: Array  # (users,), tasks over those at the start
