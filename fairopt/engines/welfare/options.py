"""Tuning of the interior point for welfare: a frozen dataclass per part, with the values that are used.

A study varies them where it enters: `solutions(problem, tol, options=replace(OPTIONS, near=100.0))`. t is the length of
a step, from 0 to 1; the estimate is what products come to, as a part of what users spend.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..linalg.column_screening import ScreeningOptions
from ..linalg.conjugate_residuals import RefinementOptions
from ..linalg.gondzio import CorrectorOptions


@dataclass(frozen=True)
class ConditionsOptions:
    """Where a run starts, and what a step may do to what users pay (`conditions`, `efficiency`)."""

    #: At the start the part `use` of everything is in use, and at least the part `idle` idles.
    use: float = 0.4
    idle: float = 0.1
    #: Users with `spent < counts` times the average may fall short: what they pay does not bound the step.
    counts: float = 0.1
    #: In one step what they pay falls to the part `fall` at most, and for users who count to `counted_fall`.
    fall: float = 0.05
    counted_fall: float = 1e-3
    #: Products of a start from another alpha are at least the part `centred` of their average.
    centred: float = 0.1
    #: In one step f falls to the part `fair_fall` at most, unless it is below `little` times what efficiency is worth.
    fair_fall: float = 0.05
    little: float = 0.1


@dataclass(frozen=True)
class NewtonOptions:
    """Newton's equations (`newton`)."""

    #: Factors are tried in single precision while `mu > single`.
    single: float = 1e-8
    #: Refinement may leave the part `sufficient` of what is left of the gap.
    sufficient: float = 1e-3
    refinement: RefinementOptions = RefinementOptions()


@dataclass(frozen=True)
class StepOptions:
    """Where a step aims at, and how far it goes (`mehrotra`)."""

    #: A step that would reach the boundary goes the part `part` of the way, or `1 - target` where its length is above
    #: `full`.
    part: float = 0.9
    full: float = 0.9
    #: After a predictor of length t, `target = min(max((mu after / mu)^3, least_target), most_target) mu`; if what
    #: tasks are worth is off by more than `off`, or `t < short`, it is `2 most_target mu`, or `poor_target mu` for
    #: `t <= short`.
    least_target: float = 1e-6
    most_target: float = 0.05
    poor_target: float = 0.3
    off: float = 0.5
    short: float = 0.1
    #: After so many steps that got no closer, equations that waver (`Welfare.wavers`) take the part `halved` of a step.
    wavering: int = 3
    halved: float = 0.5
    correctors: CorrectorOptions = CorrectorOptions(most=5, low=0.2, high=5.0)
    screening: ScreeningOptions = ScreeningOptions()


@dataclass(frozen=True)
class WelfareOptions:
    """When a run ends (`interior_point`)."""

    #: The engine aims at the part `target` of the tolerance.
    target: float = 0.9
    #: The judge is asked from `near` times the tolerance on.
    near: float = 0.1
    #: A run ends with `estimate <= least`, whatever the judge says; with more than `many` pairs at `least_of_many`, as
    #: a step here is then much cheaper than one on the augmented system. With at most `few` pairs for each row, where
    #: it is no cheaper, a first run ends at `least_of_few`.
    least: float = 1e-11
    many: int = 10_000
    least_of_many: float = 1e-16
    few: float = 5.0
    least_of_few: float = 1e-8
    #: It ends that got no closer (by the factor `better`) in more than `patience_near` steps once the judge is asked,
    #: in more than `patience` before; once it is asked, with an estimate above `lost` times the smallest one, and
    #: `lost least`; and with `mu <= least_mu`.
    better: float = 0.9
    lost: float = 1e2
    patience_near: int = 5
    patience: int = 25
    least_mu: float = 1e-25
    #: Most steps of a run, and of one from a start for another alpha.
    steps: int = 100
    warm_steps: int = 12
    #: A start for another alpha is kept where `kept_from < estimate < kept_to`.
    kept_from: float = 0.003
    kept_to: float = 0.1
    conditions: ConditionsOptions = ConditionsOptions()
    newton: NewtonOptions = NewtonOptions()
    step: StepOptions = StepOptions()


#: What is used unless a caller says otherwise.
OPTIONS = WelfareOptions()
