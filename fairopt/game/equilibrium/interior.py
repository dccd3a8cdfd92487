"""Equilibria of the per-server game by a primal-dual interior point, for every alpha in (0, infinity).

Unknowns: tasks x[n,i], level prices v[i,r] and every user's level `U_n` (what its tasks cost where they cost least).
With `p[n,i] = sum_r D[n,i,r] v[i,r]^a` the equilibrium conditions read

    slack_ni = p_ni^(k/a) (U_n / (phi_n gamma_ni))^k - 1  >= 0,    x_ni slack_ni / X_n = k mu,   sum_i x_ni = X_n(U_n),
    idle_ir = 1 - sum_n x_ni D_nir / gamma_ni             >= 0,    idle_ir part_ir^(e/a)  = mu,

and mu goes to 0. `part_ir` is the average part that r has in the prices its users pay. k = min(alpha, 4): with
k = a the slacks are linear in v^a and ten to twenty Newton steps do (a convex program's, at alpha = 1). For larger
alpha the first phase measures prices in v^k, follows a = min(alpha, c/mu) and searches along the line; the second
goes on in v^a, in which resources can leave the price of a server at any alpha.

There is no proof of convergence (the game is not monotone), which is why the caller judges, and why there are several
attempts with other parameters. Steps and tests are in units of users' own tasks and resources' own users.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..model.candidate import Candidate
from ..model.equilibrium_system import EquilibriumPoint, EquilibriumSystem
from .kkt_system import KKTSystem, Steps
from .screening import Screening


@dataclass(frozen=True)
class Attempt:
    """One run: `a <= homotopy/mu` in the first phase; the second begins at `mu < second`."""

    homotopy: float
    second: float


#: A run from its own start; and one from a point near the curve, at once in the second phase.
FIRST, FOLLOWED = Attempt(0.1, 1e-3), Attempt(np.inf, np.inf)
#: Steps of this length let mu fall in the first phase.
SHORT = 0.3


@dataclass
class _Progress:
    """How the steps of a run have gone: what begins its second phase, and what ends it."""

    attempt: Attempt
    still: int = 0
    stuck: int = 0
    short: int = 0
    since: int = 0
    least: float = np.inf

    def blocked(self, mu: float, at_alpha: bool) -> bool:
        """Does the first phase lead no further? `at_alpha`: does it follow alpha itself already?"""
        near = at_alpha and (mu < self.attempt.second or self.stuck > 5)
        return near or self.still > 2

    def looked(self, backward: float) -> None:
        """A point had this backward error, or an error next to what is aimed at; infinite where neither is known."""
        self.since = 0 if backward < 0.5 * self.least or np.isinf(backward) else self.since + 1
        self.least = min(self.least, backward)

    def took(self, t: float) -> None:
        """A step of this length was taken."""
        self.still = self.still + 1 if t < 3e-3 else 0
        self.stuck = self.stuck + 1 if t < SHORT else 0
        self.short += t < 0.1

    @property
    def jammed(self) -> bool:
        """Is the run over?"""
        return self.since >= 4 or self.still > 8 or self.short > 45


def run(
    equations: EquilibriumSystem,
    attempt: Attempt,
    tol: float,
    point: EquilibriumPoint | None = None,
    max_steps: int = 150,
    level: float = 0.0,
) -> Iterator[Candidate]:
    """Newton steps; yields before each.

    Ends when the error is below `tol` or the backward error below `level`, or when nothing moves any more.
    """
    alpha, k = equations.alpha, equations.power
    point = equations.begin(0.3) if point is None else point.measured(k)
    progress, screening = _Progress(attempt), Screening.of(equations)
    warm: EquilibriumPoint | None = None
    midway: EquilibriumPoint | None = None
    second, single, gap = False, True, np.inf
    for step_number in range(max_steps + 1):
        mu = point.mu
        a = alpha if second else min(alpha, max(attempt.homotopy / mu, k))
        if alpha > k and not second and progress.blocked(mu, a == alpha):
            second, a, progress.still = True, alpha, 0
            point = equations.lifted(point, a)
        equations, point = screening.screened(equations, point, a, gap)
        here = KKTSystem(equations, point, a, a if second else k, single)
        error, backward = _errors(here, screening, tol, level) if a == alpha else (np.inf, np.inf)
        solved = mu <= 1e-2 and step_number > 0 and (second or alpha <= k)
        warm = screening.whole(point, a, mu) if warm is None and solved else warm
        midway = screening.whole(point, a, mu) if midway is None and mu <= 1e-3 else midway  # later ones are jammed too
        yield Candidate(point, error, step_number, warm, midway, inside=screening.inside, backward=backward)
        progress.looked(error if error <= 10 * level < np.inf and np.isinf(backward) else backward)
        if error <= tol or backward <= level or progress.jammed or not np.isfinite(here.average):
            return
        aim = here.newton(0.0)
        t = here.longest(aim)
        after = here.mean(*here.moved_products(aim, t))
        centre = max(min(max((after / here.average) ** 3, 1e-6), 0.1), 0.5 * (1 - t) ** 3)
        single = here.factors.single or point.mu <= 1e-7
        residual = here.residual(screening.sums, screening.use)
        gap = max(here.average * len(point.tasks) / len(point.log_level), residual)
        target = max(centre * here.average, 1e-15, min(0.005 * residual, here.average))
        search = a > k and not second
        t, moved = _moved(here, screening, aim, target, search)
        progress.took(t)
        point = replace(moved, mu=mu if search and t < SHORT else target)


def _errors(here: KKTSystem, screening: Screening, tol: float, level: float) -> tuple[float, float]:
    """The error of a point, and its backward error (infinite if the error is above `level`)."""
    error, backward = here.error, np.inf
    if error <= level:
        backward = here.backward(level)
    if (error <= tol or backward <= level) and len(screening.outside):
        # Whoever is screened out may need what idles.
        point = screening.every.whole(here.point, screening.inside)
        every = KKTSystem(screening.every, point, here.a, here.a, here.single)
        error, backward = every.error, every.backward(level)
    return error, backward


def _moved(
    here: KKTSystem, screening: Screening, aim: Steps, target: float, search: bool
) -> tuple[float, EquilibriumPoint]:
    """The length of a step to products of `target`, and the point after it; `search`: along the line."""
    steps = here.newton(target) if search else here.corrected(target, aim)
    t = here.damped(steps, target)
    t, moved = here.searched(steps, t, target) if search else (t, here.moved(steps, t))
    if (part := screening.longest(moved, here.a)) < 1:
        t = part * t
        moved = here.moved(steps, t)
    screening.went(t)
    return t, moved
