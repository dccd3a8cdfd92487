"""Tuning of the algorithms for PS-DSF: a frozen dataclass per algorithm, with the values that are used.

A study varies them where it enters: `limit(polytope, weight, tol, options=replace(OPTIONS, stays=1e-6))`. Temperatures
tau are those of logs of levels; a system is one matrix, factorised.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engines.linalg.step_control import FactorControl
from ..equilibrium.entropy_homotopy import STEPS


@dataclass(frozen=True)
class FewZerosOptions:
    """The beginning near the end where few users can do without a resource (`few_zeros`)."""

    #: It is tried where at most the part `part` of the users can do without a resource, and there are at least
    #: `users_per_price` users for every price (of a resource of a server): with fewer it often fails, and saves little.
    part: float = 0.1
    users_per_price: int = 2
    #: The temperature.
    tau: float = 1e-5
    #: A resource is full of which this part idles at most; others are cheaper by `below tau`, in logs.
    full: float = 1e-3
    below: float = 3.0
    #: Newton steps.
    most: int = 24


@dataclass(frozen=True)
class ContinuationOptions:
    """The games of the entropy homotopy, followed to 1/alpha = 0 (`continuation`)."""

    #: alpha at first and at last.
    low: float = 2.0**16
    high: float = 2.0**20
    #: `alpha tau` while alpha grows, at last, and the most for an answer.
    warm: float = 0.1
    cold: float = 1e-5
    cool: float = 1e-4
    #: Systems until alpha grows, and after that for each of the two stages.
    systems_before: int = 1200
    systems_after: int = 400
    #: Not tried if pairs times prices exceed `work`: systems take longer than best responses there.
    work: float = 4e6
    #: Nor with more than `rows` prices where more than the part `lacking` of (user, server) can do without a resource:
    #: it was never the limit there (docs/psdsf.md).
    rows: int = 64
    lacking: float = 0.5
    #: Temperatures at which prices are kept for other users, and Newton steps from there to theirs; where these do not
    #: do, a higher temperature is tried, and at last the whole stage.
    kept: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
    restart: int = 8
    #: Factors of alpha.
    factors: FactorControl = FactorControl(4.0, 16.0, 1.002, 0.4, STEPS.grow)
    #: Random weights by which an answer is tried.
    weights: int = 8
    #: Barriers of the first power of prices: with less the limit was lost on one of the clusters tried.
    power: float = 1.0
    few: FewZerosOptions = FewZerosOptions()


@dataclass(frozen=True)
class LimitOptions:
    """PS-DSF as a limit (`limit`)."""

    #: Temperatures of choices at which the greatest allocation is looked for.
    tries: tuple[float, ...] = (1e-5, 1e-7)
    #: By what part the limit may change with weights that mean nothing, whatever the tolerance: seen were changes below
    #: 1e-9 and above 1e-3.
    unmoved: float = 1e-7
    #: By what part exact responses may move it.
    stays: float = 1e-5
    #: alpha of the system where it is not followed.
    large: float = 64.0
    #: Rounds of elastic responses between two looks.
    rounds: tuple[int, ...] = (2, 48, 50, 100, 200, 400, 800, 1600, 3200, 6400)
    continuation: ContinuationOptions = ContinuationOptions()


#: What is used unless a caller says otherwise.
OPTIONS = LimitOptions()
