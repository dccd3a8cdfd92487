"""Search for a certified answer: candidates of engines in turn, each certified, until one reaches the tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from .. import _clock
from ..certificates import Certificate
from ..certificates.backward import backward_error
from ..certificates.ill_scaled import beyond_doubles
from ..core import last_digits
from ..engines.base import LAST_DIGITS, Run, Solution
from ..errors import SolverError
from ..model._arrays import Array
from ..model.fairness_efficiency import FairnessEfficiency
from ..model.merging import Merging, unmerged
from ..model.problem import Problem
from ..model.split import Split
from .patience import within
from .solvable import Solvable

#: Errors above this have their last digits looked for unasked, on clusters up to this number of pairs.
_FINE, _SMALL = 1e-10, 500
#: The error of what a solver makes of the right formulation is below this.
_FORMULATED = 5e-3
#: Up to this number of pairs a linear program is asked where a jammed answer leads.
_VERTEX = 20_000
#: Where numbers are beyond doubles solvers are tried for so many CPU seconds.
HOPELESS_SECONDS = 1.0


def with_last_digits(problem: Problem, offer: Solution) -> Solution | None:
    """An offer with its last digits found, or None where it has no prices or that is not for its criterion."""
    return _moved(problem, offer, LAST_DIGITS, partial(last_digits.refined, aim=1e-12))


def at_vertex(problem: Problem, offer: Solution) -> Solution | None:
    """Candidate from a linear program, near an offer at which Newton steps jam.

    Where task counts bind the game has a continuum of equilibria, and this would lead to another.
    """
    bound = problem.criterion.scope == "game" and len(problem.polytope.limited)
    if bound or not 0 < problem.criterion.alpha < np.inf:
        return None
    return _moved(problem, offer, "HiGHS", last_digits.vertex)


def _moved(
    problem: Problem, offer: Solution, by: str, find: Callable[..., last_digits.Refined | None]
) -> Solution | None:
    polytope, criterion, begun = problem.polytope, problem.criterion, _clock.now()
    if offer.log_prices is None or isinstance(criterion, FairnessEfficiency) or criterion.floor.any():
        return None
    log_rows = polytope.log_row_prices(offer.log_prices)
    if offer.log is None:  # a solver's, which may be in a unit of every server
        log_rows = backward_error(polytope, criterion, offer.tasks, log_rows).every_row
    found = find(polytope, criterion, polytope.gamma * polytope.fractions(offer.tasks), log_rows)
    if found is None:
        return None
    return replace(
        offer,
        tasks=polytope.allocation(polytope.inside(found.tasks / polytope.gamma)),
        prices=None,
        log=polytope.log_unit_prices(found.log_rows),
        runs=(*offer.runs, Run(by, _clock.now() - begun)),
        rounds=offer.rounds + found.steps,
    )


@dataclass
class Candidates:
    """Candidates of a mechanism's engines on one (merged) cluster.

    The smallest residual over all candidates is kept.
    """

    mechanism: Solvable
    problem: Problem
    tol: float
    best: Solution | None = None
    verdict: tuple[Certificate, Array | None] | None = None
    answered: str = ""
    tried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failure: SolverError | None = None
    seconds: float = 0.0  # of judging

    @property
    def residual(self) -> float:
        """Residual of the best candidate."""
        return np.inf if self.verdict is None else self.verdict[0].residual

    def search(self, engines: tuple[str, ...], solver: str | None, warm: object) -> Solution | None:
        """The first candidate that reaches the tolerance, or the best one."""
        for name in engines:
            try:
                first = name == engines[0]
                offers = (
                    self.mechanism.solutions(self.problem, name, self.tol, solver, warm)
                    if first
                    else self._stand_in(name)
                )
                if offers is None:
                    self.notes += (f"on such a cluster {name} is not tried unasked; engine={name!r} does",)
                    continue
                self.tried += (name,)
                if any(self.reaches(offer, name) for offer in offers):
                    break
            except SolverError as error:
                self._failed(error)
            except MemoryError:
                users, servers, resources = self.problem.cluster.shape
                size = f"{users} users x {servers} servers x {resources} resources, {self.eligible} pairs"
                self._failed(SolverError(f"the {name} engine ran out of memory on {size}"))
        if self.best is not None and self.answered != engines[0]:
            note = f"the {engines[0]} engine did not reach the tolerance: this is the {self.answered} one's answer"
            self.notes += (note,)
        return self.best

    def _failed(self, error: SolverError) -> None:
        """Record a failure, keeping earlier messages."""
        self.failure = error if self.failure is None else SolverError(f"{self.failure}; {error}")

    def _stand_in(self, name: str) -> Iterator[Solution] | None:
        """Candidates of another engine; solvers get little time where data are beyond their range."""
        offers = self.mechanism.stand_in(self.problem, name, self.tol)
        far = name == "declarative" and beyond_doubles(self.problem.cluster, self.problem.criterion)
        if offers is None or not far:
            return offers
        return within(HOPELESS_SECONDS, offers) if self.eligible <= 100 else None

    @cached_property
    def unmerged(self) -> Merging:
        """Each server by itself: the cluster has been merged."""
        return unmerged(self.problem.cluster)

    @property
    def eligible(self) -> int:
        """Pairs of users and servers."""
        return int(np.count_nonzero(self.problem.cluster.eligible))

    def reaches(self, offer: Solution, name: str) -> bool:
        """True if an offer reaches the tolerance, by itself, refined, or by a linear program."""
        residual = self._least(offer, name)
        for _ in range(4):
            # A jammed answer with a small error is given to a linear program.
            jams = self.tol < residual <= 1e-3 and name != "declarative" and self.mechanism.met_by_criterion
            nearer = at_vertex(self.problem, offer) if jams and self.eligible <= _VERTEX else None
            if nearer is None:
                break
            before, offer = residual, nearer
            residual = self._certified(offer, name)
            if residual > self.tol and (better := self._refined(offer, name, residual)) is not None:
                residual = min(residual, self._certified(better, name))
            if residual > 0.5 * before:
                break
        return residual <= self.tol

    def _least(self, offer: Solution, name: str) -> float:
        """The smaller residual of an offer and of the same with its last digits found, if both are needed.

        Last digits are found first where they are known to be missing, and on small clusters, where that takes a
        millisecond; elsewhere, and where the engine has found them, where the offer does not do. The criterion must
        not answer for a formulation that states another: of that one the offer itself is judged first.
        """
        first = name != "declarative" and not offer.fine and (offer.rough or self.eligible <= _SMALL)
        if first and (better := self._refined(offer, name, np.inf)) is not None:
            if self._astray(offer, better) and (residual := self._certified(offer, name)) <= self.tol:
                return residual
            if (residual := self._certified(better, name)) <= self.tol:
                return residual
            return min(residual, self._certified(offer, name))
        residual = self._certified(offer, name)
        if not first and (residual > self.tol or (residual > _FINE and self.eligible <= _SMALL)):
            better = self._refined(offer, name, residual)
            residual = residual if better is None else min(residual, self._certified(better, name))
        if name == "declarative" and residual > self.tol and self.eligible <= _SMALL:
            # Steep welfare: a solver's tasks may be right where none of its prices has a digit.
            residual = min(residual, self._certified(replace(offer, prices=None, log=None), name))
        return residual

    def _refined(self, offer: Solution, name: str, residual: float) -> Solution | None:
        """An offer with its last digits found.

        That of a formulation only where little changes: the criterion must not answer for one that states another.
        """
        if np.isinf(self.problem.criterion.alpha) or not self.mechanism.met_by_criterion:
            return None
        better = with_last_digits(self.problem, offer)
        formulated = name == "declarative" and residual > _FORMULATED
        return None if better is None or (formulated and self._apart(offer, better) > _FORMULATED) else better

    def _astray(self, offer: Solution, better: Solution) -> bool:
        """True if refinement led to another equilibrium, of which there may be a continuum where a task count binds."""
        # Last digits that change a user's tasks by so much belong to another equilibrium.
        return self.problem.criterion.scope == "game" and self._apart(offer, better) > 1e-3

    def _apart(self, offer: Solution, better: Solution) -> float:
        """The mean relative change of tasks, users counted by their part in welfare at the margin."""
        before, after = offer.tasks.sum(axis=1), better.tasks.sum(axis=1)
        runs = (before > 0) & (after > 0)
        change = np.abs(np.log(after[runs] / before[runs]))
        if self.problem.criterion.scope == "game":
            return float(change.max(initial=0.0))
        part = self.problem.criterion.restrict(np.flatnonzero(runs)).log_marginal(after[runs]) + np.log(after[runs])
        return float(np.average(change, weights=np.exp(part - part.max()))) if len(change) else 0.0

    def _certified(self, candidate: Solution, name: str) -> float:
        """The residual of a candidate, which is kept if it is the best."""
        begun = _clock.now()
        found = self.mechanism.certified(self.problem, Split(self.unmerged, candidate.tasks), candidate.log_prices)
        self.seconds += _clock.now() - begun
        if self.best is None or found[0].residual < self.residual:
            self.best, self.verdict, self.answered = candidate, found, name
        return found[0].residual
