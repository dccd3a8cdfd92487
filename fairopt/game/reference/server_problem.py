"""A server's best response: its program, compiled once, solved until the answer is good enough.

No answer is believed: each is held against the conditions that define a best response (`server_conditions`). Users
whose welfare cannot be seen beside the largest (at alpha = 20 ten times the tasks count 1e19 times less) are settled in
later solves, one scale at a time, while the others keep their tasks. What is not good enough is solved again with
shares in other units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ..._libraries import cp
from ...engines.base import Run
from ...engines.reference import solvers
from ...engines.reference.program import Formulation, Leximin, Program
from ...engines.reference.successive_lp import LeximinProblem
from ...errors import SolverError
from ...model._arrays import Array, Mask
from ...model.criterion import Criterion
from ...model.polytope import Polytope
from .server_conditions import residual
from .server_program import ServerProgram

#: Users whose welfare at the margin is below this part of the largest are settled in a later solve.
_VISIBLE = 1e-5
#: Prices below this part of the largest of a solve are the solver's inaccuracy.
_PRICED = 1e-9
#: An answer is taken with `residual <= sufficient` (see `server_conditions`).
_SUFFICIENT = 1e-7
#: Most solves that are measured in the shares of the one before.
_RESCALINGS = 4
#: Users so near their limit are at it in the next solve.
_FULL = 1e-6
#: The least unit of a virtual dominant share.
SMALLEST = 1e-12


@dataclass(frozen=True)
class Response:
    """Fractions (users here,), log prices of whole capacities (rows here,), and their residual, in tasks."""

    fraction: Array
    log_price: Array
    residual: float


class ServerProblem:
    """The best response of one server, as its mechanism formulates it."""

    def __init__(
        self, polytope: Polytope, criterion: Criterion, server: int, formulate: Callable[[Program], Formulation]
    ) -> None:
        self.program = ServerProgram(polytope, criterion, server)
        self.formulation = formulate(self.program)
        self.runs: list[Run] = []
        self._maxmin: LeximinProblem | None = None
        self._fill: LeximinProblem | None = None
        if isinstance(self.formulation.objective, Leximin):
            self._maxmin = LeximinProblem(self.formulation, self._cost, runs=self.runs)
        else:
            self._problem = cp.Problem(self.formulation.objective, list(self.formulation.constraints.values()))

    def respond(self, elsewhere: Array, share: Array, solver: str | None = None) -> tuple[Array, Array]:
        """The server's best fractions (users here,), and prices of its whole capacities (rows here,), the largest 1.

        `elsewhere` is what its users have on other servers, in tasks; `share` their present virtual dominant share.
        """
        found = self.best(elsewhere, share, solver)
        top = found.log_price.max(initial=-np.inf)
        return found.fraction, np.exp(found.log_price - top) if top > -np.inf else np.zeros(len(found.log_price))

    def best(self, elsewhere: Array, share: Array, solver: str | None = None) -> Response:
        """The least wrong of the answers tried; prices are marginal utilities per fraction."""
        best: Response | None = None
        failure: SolverError | None = None
        full = np.zeros(len(share), dtype=bool)
        room, last = self.program.room(elsewhere), share
        for wanted in self._units(elsewhere, share):
            unit = last if wanted is None else wanted
            try:
                found = self._solve(elsewhere, np.maximum(unit, SMALLEST), full, solver)
            except SolverError as error:
                failure = failure or error
                continue
            if best is None or not best.residual <= found.residual:
                best = found
            if best.residual <= _SUFFICIENT:
                break
            # What those are worth who are at their limit may hide all prices; but they may be there wrongly.
            full = (found.fraction >= (1 - _FULL) * room) & (not full.any())
            last = elsewhere / self.program.gamma + found.fraction
        if best is None:
            assert failure is not None
            raise failure
        return best

    def _units(self, elsewhere: Array, share: Array) -> Iterator[Array | None]:
        """Units of shares to try: present shares, max-min levels (docs/architecture.md), and None for the last ones."""
        p = self.program
        if np.isinf(p.alpha) or p.alpha == 0 or not p.scale_free:
            yield np.ones(len(share))
            return
        if (share > 0).all():
            yield share
        with suppress(SolverError):  # other units may do
            yield self.maxmin_share(elsewhere)
        yield from [None] * _RESCALINGS

    def maxmin_share(self, elsewhere: Array) -> Array:
        """Virtual dominant shares (users here,) under max-min at this server."""
        p = self.program
        if self._fill is None:
            rows = {name: row for name, row in p.constraints.items() if name in ("capacity", "max_tasks")}
            self._fill = LeximinProblem(Formulation(Leximin(p.share / p.weight), rows), self._cost, runs=self.runs)
        p.give(elsewhere, np.ones(len(elsewhere)))
        self._fill.solve()
        return np.asarray(elsewhere / p.gamma + np.maximum(p.fraction.value, 0.0))

    def _solve(self, elsewhere: Array, unit: Array, full: Mask, solver: str | None) -> Response:
        if self._maxmin is not None:
            self.program.give(elsewhere, unit)
            self._maxmin.solve(solver)
            return self._response(elsewhere, np.maximum(self.program.fraction.value, 0.0), self._log_price())
        p, alpha = self.program, self.program.alpha
        room = p.room(elsewhere)
        fixed = np.where(full | (room <= 0), room, np.nan)
        stages: list[Array] = []
        while (waiting := np.isnan(fixed)).any():
            log_unit = p.give(elsewhere, unit, fixed)
            self.runs.append(self._run(solver))
            stages.append(self._log_price() + log_unit)
            fraction = np.clip(p.fraction.value, 0.0, room)
            share = np.maximum(elsewhere / p.gamma + fraction, np.finfo(float).tiny)
            marginal = p.log_worth(share) + np.log(share)
            seen = waiting & (marginal >= marginal[waiting].max() + np.log(_VISIBLE))
            solved = seen if alpha > 0 and p.scale_free else waiting  # who else is seen depends on no unit
            fixed[solved] = fraction[solved]
        found = [self._response(elsewhere, fixed, prices) for prices in _together(stages, len(p.rows))]
        return min(found, key=lambda response: response.residual)

    def _run(self, solver: str | None) -> Run:
        if self._problem.is_lp():
            return solvers.first_success(self._problem, solver)
        return solvers.solve(self._problem, solvers.solvers_for(self._problem, solver)[0])  # others are less accurate

    def _response(self, elsewhere: Array, fraction: Array, log_price: Array) -> Response:
        p = self.program
        fraction = fraction / max(1.0, float((p.use @ fraction).max(initial=0.0)))
        return Response(fraction, log_price, residual(p, elsewhere, fraction, log_price))

    def _log_price(self) -> Array:
        """Logs of the duals of capacity, without what is only inaccuracy."""
        prices = self.formulation.constraints["capacity"].dual_value
        rows = np.zeros(len(self.program.rows)) if prices is None else np.abs(prices)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(rows > _PRICED * rows.max(initial=0.0), rows, 0.0)))

    def _cost(self) -> Array:
        """Cost of the whole server for each user at the last prices; a binding limit counts too."""
        constraints = self.formulation.constraints
        prices = np.abs(constraints["capacity"].dual_value)
        cost = self.program.use.T @ prices / max(prices.max(initial=0.0), np.finfo(float).tiny)
        if "max_tasks" in constraints:
            cost = cost + np.where(np.abs(constraints["max_tasks"].dual_value) > 0, 1.0, 0.0)
        return np.asarray(cost)


def _together(stages: list[Array], rows: int) -> Iterator[Array]:
    """Log prices of all solves, added, or a later one in place of what an earlier could not tell from nothing."""
    yield np.asarray(np.logaddexp.reduce(stages, axis=0)) if stages else np.full(rows, -np.inf)
    if len(stages) > 1:
        result = stages[0]
        for later in stages[1:]:
            vague = result < result.max() + np.log(_VISIBLE)
            result = np.where(vague & (later > -np.inf), later, result)
        yield result
