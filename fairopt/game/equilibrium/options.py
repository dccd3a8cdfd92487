"""Tuning of the algorithms for equilibria: a frozen dataclass per algorithm, with the values that are used.

A study varies them where it enters an algorithm: `equilibria(system, tol, options=replace(OPTIONS, near=1e-3))`, or
`replace(OPTIONS, interior=replace(OPTIONS.interior, patience=8))`. t is the length of a step, from 0 to 1; errors are
relative, in tasks; a system is one matrix, factorised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...engines.linalg.arclength import CorrectionOptions
from ...engines.linalg.column_screening import ScreeningOptions
from ...engines.linalg.damped_newton import DampingOptions
from ...engines.linalg.gondzio import CorrectorOptions
from ...engines.linalg.step_control import StepControl


@dataclass(frozen=True)
class KKTOptions:
    """Newton's equations of the interior point (`kkt_system`)."""

    #: Factors are tried in single precision while `mu > single` and there are at least `single_rows` rows.
    single: float = 1e-7
    single_rows: int = 250
    #: While `mu <= sparse`, pairs with `tasks/slack < least_weight slope` (of the user's tasks over the log of its
    #: price) are left out off the diagonal.
    sparse: float = 1e-4
    least_weight: float = 1e-5
    #: Gondzio's correctors, for alpha > 1 (below, steps do not get fewer),
    correctors: CorrectorOptions = CorrectorOptions(most=5, low=0.1, high=10.0)
    #: at most `rows // rows_per_corrector` of them: in small matrices a step costs no more than a corrector.
    rows_per_corrector: int = 200


@dataclass(frozen=True)
class Attempt:
    """One run of the interior point."""

    #: `a <= homotopy/mu` in the first phase.
    homotopy: float
    #: The second phase begins at `mu < second`.
    second: float
    #: The first mu.
    mu: float = 0.3
    #: The run ends after more than `patience` steps with `t < InteriorOptions.poor`.
    patience: int = 45


@dataclass(frozen=True)
class InteriorOptions:
    """The interior point (`interior`)."""

    #: A run from its own start; and one from a point near the curve, at once in the second phase.
    attempt: Attempt = Attempt(0.1, 1e-3)
    follow: Attempt = Attempt(np.inf, np.inf)
    #: mu is never below this.
    least_mu: float = 1e-15
    #: In the first phase mu falls if `t >= short` only; after more than `stuck` steps below, the second phase begins.
    short: float = 0.3
    stuck: int = 5
    #: Steps with `t < tiny` in a row: more than `still_first` begin the second phase, more than `still` end the run.
    tiny: float = 3e-3
    still_first: int = 2
    still: int = 8
    #: Steps with `t < poor` are counted for `Attempt.patience`.
    poor: float = 0.1
    #: A run ends whose backward error, known once products are small, is not halved in `patience` steps.
    patience: int = 4
    #: Another alpha starts from the first point with `mu <= kept`.
    kept: float = 1e-2
    #: The smoothed path starts from the first point with `mu <= midway`: earlier ones save no systems, later ones are
    #: jammed as well.
    midway: float = 1e-3
    kkt: KKTOptions = KKTOptions()
    screening: ScreeningOptions = ScreeningOptions(far=5.0)


@dataclass(frozen=True)
class WarmStartOptions:
    """From a point at one alpha to the like point at another (`warm_start`)."""

    #: Reached once `residual < near`, after at most `most` steps.
    near: float = 0.1
    most: int = 12
    #: `mu = max(lower mu of the last alpha, least / max(1, alpha/k))`, k = min(alpha, 4).
    lower: float = 0.5
    least: float = 1e-3
    #: After a step with `t < short`, `mu = min(raised mu, largest)`.
    short: float = 0.3
    raised: float = 3.0
    largest: float = 0.1
    #: Not tried between alphas further apart than this factor: it saves nothing there.
    far: float = 2.5


@dataclass(frozen=True)
class SmoothingOptions:
    """The smoothed path, by the length of the curve (`smoothing`)."""

    #: (mu at the start, near): on the curve what is wrong is below `near mu`. In turn, the next one more careful.
    paths: tuple[tuple[float, float], ...] = ((3.0, 0.3), (1.0, 0.1))
    #: `length^2 = (d log mu)^2 + min(1, typical/prices) (|d prices|^2 + |d tasks|^2)`.
    typical: float = 10.0
    #: Lengths along the curve between two points.
    steps: StepControl = StepControl(0.5, 2.0, 1e-7, 0.4, (2.0, 2.0, 1.7, 1.4, 1.1, 0.9, 0.7, 0.6, 0.6, 0.6))
    #: Below the length `rescale_below` units may be the reason: on with those of the point before, from `restart`.
    rescale_below: float = 1e-4
    restart: float = 0.1
    #: Ends where `mu > min(start_rise mu at the start, mu_rise least mu so far)`: mu rises where the curve bends, but
    #: seldom so far unless another curve, which leads back, has been met.
    start_rise: float = 10.0
    mu_rise: float = 30.0
    corrections: CorrectionOptions = CorrectionOptions(most=9, serves=0.3)
    #: A correction is left that would change log mu by more.
    jump: float = 1.5
    #: Newton steps to the curve at the start, and how they are damped.
    start_steps: int = 39
    start_damping: DampingOptions = DampingOptions(shorter=0.5, shortest=1e-3)
    #: Factors in single precision while `mu > single` and there are at least `single_rows` prices.
    single: float = 1e-5
    single_rows: int = 200


@dataclass(frozen=True)
class CouplingOptions:
    """One game of the entropy homotopy (`coupling`)."""

    #: Weight of the barrier terms, relative to tau and to a price at which the server alone is full.
    barrier: float = 0.01
    #: Their power of prices, unless alpha is less. For alpha > 1 curves bend less than with 1, and take a half to a
    #: quarter of the systems.
    power: float = 0.5
    #: Levels are carried while `max |a log(v/v of the origin)| <= carried`.
    carried: float = 30.0


@dataclass(frozen=True)
class HomotopyOptions:
    """The entropy homotopy (`entropy_homotopy`)."""

    #: Lengths of log tau between two games.
    steps: StepControl = StepControl(0.5, 4.0, 1e-4, 0.35, (2.0, 2.0, 1.7, 1.4, 1.2, 1.0, 0.8, 0.7, 0.6))
    #: Across a bend the curve is followed by its length until tau has fallen by the part `past`, for at most
    #: `bend_systems` systems.
    bend: CorrectionOptions = CorrectionOptions(most=8)
    bend_systems: int = 200
    past: float = 0.02
    #: `length^2 = (d log tau)^2 + min(1, typical/prices) |d log price|^2/tau^2`.
    typical: float = 10.0
    #: On the curve `max |F| < max(near tau, exact)`, exact as numbers are rounded.
    near: float = 0.1
    exact: float = 1e-12
    damping: DampingOptions = DampingOptions(shorter=0.4, shortest=0.02)
    #: Newton steps to the solution at tau = 1.
    start_steps: int = 60
    #: Most prices: every system takes the third power of it.
    largest: int = 1000
    coupling: CouplingOptions = CouplingOptions()


@dataclass(frozen=True)
class EquilibriumOptions:
    """Which algorithm is tried when, and to what end (`equilibria`)."""

    #: Where runs end, for a tolerance tol: last digits may be found (`augmented`) where the error is `first tol`; if
    #: that fails the interior point goes on to `inside tol`, or to the backward error `level tol`, as the judge sees
    #: the larger factor of a product; the path goes on to `path tol`. None need be less than `least`.
    first: float = 1.0
    inside: float = 1e-3
    level: float = 0.9
    path: float = 3e-4
    least: float = 1e-11
    #: Where no candidate will do, runs are made once more as for this tolerance.
    finest: float = 1e-9
    #: A candidate is offered with `error <= near`; of the path, whose products are of two alike factors, with
    #: `error <= on_path`, and again at the part `on_path_again` of that.
    near: float = 1e-2
    on_path: float = 3e-8
    on_path_again: float = 0.1
    #: Newton steps of a run of the interior point, and of one from a point near the curve.
    steps: int = 150
    short_steps: int = 60
    #: For alpha > 4, where some users do not need a resource, the first run of the interior point is left after
    #: `max(patience_with_zeros, prices // prices_per_step)` short steps, and the path is followed; likewise after a
    #: whole run up to `small` prices. (In larger games the path takes hundreds of systems, and other runs may succeed.)
    patience_with_zeros: int = 6
    prices_per_step: int = 20
    small: int = 500
    #: Systems on the path from a point of the interior point, for every price; mostly one does.
    midway_systems: int = 3
    #: Systems on the path from its own start: `max(whole_systems, whole_systems_per_price prices)`.
    whole_systems: int = 1000
    whole_systems_per_price: int = 5
    #: The interior point goes on from the first place of the homotopy with `tau <= coupled`, then whenever tau fell to
    #: the part `coupled_further`.
    coupled: float = 0.1
    coupled_further: float = 0.25
    #: With at least this number of users, and for every price, the homotopy comes first, and goes on to these
    #: temperatures, from where last digits may be found.
    many_users: int = 500
    users_per_price: int = 5
    homotopy_ends: tuple[float, ...] = (1e-9, 1e-11)
    #: The level at which the backward error of such a point is taken.
    undecided: float = 1e-6
    #: Systems of the homotopy before another path is tried.
    homotopy_systems: int = 120
    #: Best responses in a row between two looks, and looks.
    sweeps: int = 40
    looks: int = 8
    interior: InteriorOptions = InteriorOptions()
    warm_start: WarmStartOptions = WarmStartOptions()
    smoothing: SmoothingOptions = SmoothingOptions()
    homotopy: HomotopyOptions = HomotopyOptions()


#: What is used unless a caller says otherwise.
OPTIONS = EquilibriumOptions()
