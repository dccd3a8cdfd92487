"""Tuning of `few_prices`: mu is the mean product over its weight, t the length of a step, from 0 to 1."""

from __future__ import annotations

from dataclasses import dataclass

from ...linalg.gondzio import CorrectorOptions
from ...linalg.structured import FactorOptions


@dataclass(frozen=True)
class StartOptions:
    """Where users are spread over all servers (`start`)."""

    #: What products are of what users and servers turn over.
    spread: float = 1.0
    #: At least this part of every capacity idles.
    idle: float = 0.5
    #: Newton steps until `|log use| < near` for every capacity, at most `steps`.
    near: float = 1e-2
    steps: int = 40
    #: In a step no price falls below the part `fall`.
    fall: float = 0.05
    #: A step of length t is taken once the dual function's slope there is at most `slope` times that at its beginning,
    #: upwards; otherwise `t = shorter t`, until `t < shortest`.
    slope: float = 0.9
    shorter: float = 0.4
    shortest: float = 1e-3


@dataclass(frozen=True)
class StepOptions:
    """A step, and what products aim at (`step`)."""

    #: Of a step to the boundary the part `part` is taken, or `1 - target` where its length is above `full`.
    part: float = 0.9
    full: float = 0.5
    closest: float = 1e-6
    #: `target = min(max((mu after the predictor / mu)^3, least_target), most_target) mu`, or `poor_target mu` where the
    #: predictor's length is `t <= short`; at least the part that demand and use are missed by, on average.
    least_target: float = 1e-6
    most_target: float = 0.3
    poor_target: float = 0.8
    short: float = 0.1
    #: What a user with this part of its full elasticity pays falls to the part `1 - user_price` at most.
    elastic: float = 0.3
    user_price: float = 0.9
    #: The target is at least `curvature` times the part by which a user's tasks miss its demand at most.
    curvature: float = 1e-7
    #: While `mu > ordered` a user that misses by more than the part `missed` is put in order by itself. (Later, users
    #: tie: alone, they would take all their tasks to one server.)
    missed: float = 0.2
    ordered: float = 1e-2
    #: After a step of length t tasks and slacks are at least the part `floor (1 - min(t, whole))` of those before, and
    #: products at least the part `least_product` of their target.
    floor: float = 1e-4
    whole: float = 0.999
    least_product: float = 1e-6
    #: The second-order term of demand is at most this part of demand.
    bend: float = 0.5
    correctors: CorrectorOptions = CorrectorOptions(most=2, full=1.0, longer=0.1, gain=0.5, least_gain=0.0)
    factors: FactorOptions = FactorOptions()


@dataclass(frozen=True)
class FewPricesOptions:
    """When the engine is asked, and when a run ends (`engine`)."""

    #: With limits, or alpha above `without_limits`; at most `prices` prices, at least `users` users, and
    #: `users_per_price` for every price, for alpha between these: beyond, prices differ by more than doubles hold.
    without_limits: float = 4.0
    prices: int = 100
    users: int = 100
    users_per_price: int = 3
    least_alpha: float = 0.05
    largest_alpha: float = 16.0
    #: Weights of products fall to the part `follow` in a step at most, to `follow_late` once `mu < late`.
    follow: float = 0.7
    follow_late: float = 0.3
    late: float = 1e-4
    #: The error is looked at where `mu < looked` and demand and use are missed by less than `fitting`, on average.
    looked: float = 1e-6
    fitting: float = 1e-5
    #: A run ends after a look with an error below the part `target` of the tolerance, if `mu < fine` (tasks of users at
    #: their limits miss these by about mu) or it is not below the part `better` of the best one; after `steps` steps;
    #: or after more than `patience` looks without a better one.
    target: float = 0.5
    fine: float = 1e-12
    steps: int = 60
    patience: int = 6
    better: float = 0.7
    #: An answer is offered with an error below this, for last digits to be found.
    offered: float = 1e-2
    start: StartOptions = StartOptions()
    step: StepOptions = StepOptions()


#: What is used unless a caller says otherwise.
OPTIONS = FewPricesOptions()
