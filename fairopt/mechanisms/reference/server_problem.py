"""The per-server game in CVXPY: the problem of one server, best responses, and the reference engine.

Arrays `(users here,)` hold values of the users that can run tasks on the server in question, and arrays `(rows here,)`
values of the resources of that server. Tasks are work if the cluster has rates.

Every solution of a server's problem is verified by the optimality conditions of a best response (`residual`). The
marginal welfare of a user, `t U'(t)` at its share t, can differ by many orders of magnitude between users: at alpha =
20, ten times the share divides it by 1e19. Users whose marginal welfare is negligible beside the largest are optimised
in later solves, one scale at a time, with the tasks of the other users fixed. After an inaccurate solve the problem is
solved again with another normalisation of shares.

The engine starts from the solution of the proportionally fair program, which is the equilibrium for alpha = 1; at
alpha = 0 it starts from zero tasks, as best responses are independent. Then servers respond in turn (Gauss-Seidel),
each at least once, until the residual is within the tolerance. The engine serves as a reference on small clusters;
convergence is observed, not proved, for alpha other than 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ...base.errors import DataError, SolverError
from ...base.libraries import cp, sp
from ...certificates import backward_error, bottleneck, by_server, exploitability
from ...core.game.equilibrium_system import EquilibriumSystem
from ...core.game.response import fill
from ...core.game.rounds import State, Sweeps
from ...core.solution import Run, Solution
from ...model._arrays import Array, Index, Mask
from ...model.cluster import Cluster
from ...model.criterion import ConcaveWelfare, Criterion
from ...model.polytope import Polytope
from ...model.problem import Problem
from . import declarative, solvers
from .declarative import LeximinProblem
from .program import Leximin, Program, Statement, Textbook
from .scaled import Scaled, statement, welfare_factor

if TYPE_CHECKING:
    from .named_problem import NamedProblem


class ServerProgram(Scaled):
    r"""Scaled program of one server i, with virtual dominant shares :math:`\sigma_{ni} = (y_n + x_{ni}) / \gamma_{ni}`.

    The tasks on other servers, :math:`y_n`, and the normalisation of shares are parameters of the CVXPY problem, set
    by `give`, so that the problem is compiled once. alpha is no parameter, since CVXPY fixes the exponents of power
    cones at compilation.
    """

    def __init__(self, polytope: Polytope, criterion: Criterion, server: int) -> None:
        self.polytope, self.cluster, self.criterion = polytope, polytope.cluster, criterion
        self.alpha, self.servers = criterion.alpha, np.array([server])
        self.pairs: Index = np.flatnonzero(polytope.pair_server == server)
        self.members: Index = polytope.pair_user[self.pairs]
        self.users: Index = polytope.users[self.members]
        self.rows: Index = np.flatnonzero(polytope.row_server == server)
        self.gamma: Array = polytope.gamma[self.pairs]
        self.limit: Array = polytope.limit[self.members]
        count = len(self.pairs)
        self.weight = criterion.weight[self.users]
        self.unit = np.ones(count)
        self.fraction = cp.Variable(count, nonneg=True, name="fraction")
        self._elsewhere = cp.Parameter(count, nonneg=True, name="share_elsewhere")
        self._scaled_elsewhere = cp.Parameter(count, nonneg=True, name="scaled_share_elsewhere")
        self._inverse_unit = cp.Parameter(count, nonneg=True, name="inverse_unit")
        self.factor = self._factor = cp.Parameter(count, nonneg=True, name="factor")
        self._room = cp.Parameter(count, nonneg=True, name="room")
        self._floor = cp.Parameter(count, nonneg=True, value=np.zeros(count), name="fixed_fraction")
        self.sigma = self._elsewhere + self.fraction
        self.user_tasks = cp.multiply(self.gamma, self.sigma)
        # An auxiliary variable: a product of two parameters (factor and inverse unit) would violate the rules of
        # disciplined parametrized programming (DPP).
        self.scaled_share = cp.Variable(count, name="scaled_share")
        self.use = sp.csr_matrix(polytope.use[self.rows][:, self.pairs])
        self.constraints = {"capacity": cp.Constant(self.use, name="use") @ self.fraction <= 1}
        if not criterion.scale_free:
            self.scaled_share = self.sigma
        elif not np.isinf(self.alpha):
            scaled = self._scaled_elsewhere + cp.multiply(self._inverse_unit, self.fraction)
            self.constraints["scaled_share"] = self.scaled_share <= scaled
            self.constraints["fixed"] = self.fraction >= self._floor
        if np.isfinite(self.limit).any():
            self.constraints["max_tasks"] = self.fraction <= self._room

    def log_marginal(self, share: Array) -> Array:
        """Log marginal utilities per fraction of the server, (users here,), at virtual dominant shares `share`."""
        if isinstance(self.criterion, ConcaveWelfare):
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.criterion.slope(share / self.weight)))
        return np.asarray(self.alpha * (np.log(self.weight) - np.log(share)))

    def give(self, elsewhere: Array, unit: Array, fixed: Array | None = None) -> float:
        """Set the users' tasks on other servers, and the normalisation `unit` of their shares, both (users here,).

        `fixed`, (users here,), are the fractions of fixed users, and NaN for free users. The result is the log of one
        unit of the objective in units of welfare; 0 for max-min, and for criteria that are not scale-free.
        """
        self._elsewhere.value = elsewhere / self.gamma
        self._scaled_elsewhere.value = self._elsewhere.value / unit
        self._inverse_unit.value = 1 / unit
        self._room.value = self.room(elsewhere)
        if np.isinf(self.alpha) or not self.criterion.scale_free:
            return 0.0
        waiting = np.isnan(fixed) if fixed is not None else np.ones(len(unit), dtype=bool)
        self._floor.value = np.zeros(len(unit)) if fixed is None else np.where(waiting, 0.0, fixed * (1 - 1e-9))
        self._factor.value, log_unit = welfare_factor(self.weight, unit, self.alpha, ~waiting)
        return log_unit

    def give_others(self, tasks: Array) -> None:
        super().give_others(tasks)
        here, present = tasks[self.users, self.servers], tasks.sum(axis=1)[self.users]
        elsewhere = np.maximum(present - here, 0.0)
        powers = self.criterion.scale_free and 0 < self.alpha < np.inf
        if powers and here.any() and (present > 0).all():
            unit = present / self.gamma
        elif powers:
            unit = np.maximum(self.maxmin_share(elsewhere), SMALLEST)
        else:  # normalise by the shares on other servers plus the shares under a partition of this server by weight
            unit = elsewhere / self.gamma + self.weight / self.weight.sum()
        self.log_unit = self.give(elsewhere, unit)

    def maxmin_share(self, elsewhere: Array) -> Array:
        """Virtual dominant shares (users here,) under max-min at this server, by progressive filling."""
        tasks, per_task = np.empty(len(self.pairs)), self.use.toarray().T / self.gamma[:, None]
        room = np.maximum(self.limit - elsewhere, 0.0)
        fill(self.weight * self.gamma, per_task, elsewhere, room, np.empty(len(self.rows)), tasks)
        return np.asarray((elsewhere + tasks) / self.gamma)

    def room(self, elsewhere: Array) -> Array:
        """Largest fractions of the server that task limits permit, (users here,), but at most 2.

        Capacity bounds fractions by 1. A bound of 1 could be active together with the capacity constraint, so that the
        dual would be divided between them.
        """
        return np.asarray(np.clip((self.limit - elsewhere) / self.gamma, 0.0, 2.0))


def residual(program: ServerProgram, elsewhere: Array, fraction: Array, log_price: Array) -> float:
    """Largest violation of the optimality conditions of a best response, relative to tasks.

    `elsewhere` are tasks on other servers, (users here,); `fraction` are the fractions of this server, (users here,);
    `log_price` are log prices of the server's whole capacities, (rows here,). At alpha = 0 the relative duality gap of
    the server's linear program replaces the violation of conditions, but not that of capacities and limits.
    """
    has, room = elsewhere / program.gamma, program.room(elsewhere)
    use = program.use.toarray()
    over = max(float((use @ fraction).max(initial=0.0)) - 1, float((fraction - room).max(initial=0.0)))
    if np.isinf(program.alpha):
        share = has + fraction
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = bottleneck.rises(
                use.T.copy(), np.ones(len(use)), fraction, share / program.weight, share, has + room
            )
        return max(over, float(rises.max(initial=0.0)))
    if program.alpha == 0:
        prices = np.exp(log_price)
        return max(over, _duality_gap(fraction, room, use.T @ prices, float(prices.sum())))
    with np.errstate(all="ignore"):
        return max(over, _violation(program, has, fraction, room, use, log_price))


def _duality_gap(fraction: Array, room: Array, cost: Array, value: float) -> float:
    """Relative duality gap of the linear program at alpha = 0, which maximises the sum of fractions.

    `cost` is the cost of a whole server for each user, (users here,), and `value` the sum of prices of capacities.
    """
    bound = value + float((np.maximum(1 - cost, 0.0) * np.minimum(room, 1.0)).sum())
    return (bound - float(fraction.sum())) / max(bound, np.finfo(float).tiny)


def _violation(program: ServerProgram, has: Array, fraction: Array, room: Array, use: Array, log_price: Array) -> float:
    alpha, share = program.alpha, has + fraction
    paid = np.log(use) + log_price[:, None]  # (rows, users)
    cost = np.logaddexp.reduce(paid, axis=0)
    marginal = program.log_marginal(share)
    off = (marginal - cost) / alpha
    under_allocation = np.minimum(np.expm1(np.minimum(off, 700.0)), (room - fraction) / share)
    here = -fraction / share * np.expm1(off)
    part = np.exp(np.minimum(paid - np.maximum(cost, marginal), 0.0)).max(axis=1)
    idle_priced = np.maximum(1 - use @ fraction, 0.0) * part
    values = np.concatenate([np.where(off > 0, under_allocation, np.where(fraction > 0, here, 0.0)), idle_priced])
    return float(values.max(initial=0.0)) if not np.isnan(values).any() else np.inf


#: Fraction of the largest marginal welfare below which a user is optimised in a later solve.
_VISIBLE = 1e-5
#: Fraction of a solve's largest price below which a price is attributed to the solver's inaccuracy.
_PRICED = 1e-9
#: `residual` up to which a best response is accepted without a further solve.
_SUFFICIENT = 1e-7
#: Largest number of solves that are normalised by the shares of the previous solve.
_RESCALINGS = 4
#: A user within the relative distance `_FULL` from its limit is fixed there in the next solve; the distance is
#: multiplied by `_FULL_GROWTH` after every solve, to allow for the solver's error.
_FULL, _FULL_GROWTH = 1e-6, 10.0
#: Smallest normalisation of a virtual dominant share.
SMALLEST = 1e-12


@dataclass(frozen=True)
class Response:
    """Best response: fractions (users here,), log prices of whole capacities (rows here,), and their `residual`."""

    fraction: Array
    log_price: Array
    residual: float


class ServerProblem:
    """Best-response problem of one server; `state` formulates it, by default from the criterion."""

    def __init__(
        self,
        polytope: Polytope,
        criterion: Criterion,
        server: int,
        state: Callable[[Program], Statement] = statement,
    ) -> None:
        self.program = ServerProgram(polytope, criterion, server)
        self.statement = state(self.program)
        self.runs: list[Run] = []
        self._maxmin: LeximinProblem | None = None
        if isinstance(self.statement.objective, Leximin):
            self._maxmin = LeximinProblem(self.statement, self._cost, runs=self.runs)
        else:
            self._problem = cp.Problem(self.statement.objective, list(self.statement.constraints.values()))

    def respond(self, elsewhere: Array, share: Array, solver: str | None = None) -> tuple[Array, Array]:
        """Fractions (users here,) of a best response, and prices of whole capacities (rows here,), scaled to maximum 1.

        Prices are zero if no capacity has a price.

        `elsewhere` are the users' tasks on other servers, and `share` the users' present virtual dominant shares, both
        (users here,).
        """
        found = self.best(elsewhere, share, solver)
        top = found.log_price.max(initial=-np.inf)
        return found.fraction, np.exp(found.log_price - top) if top > -np.inf else np.zeros(len(found.log_price))

    def best(self, elsewhere: Array, share: Array, solver: str | None = None) -> Response:
        """Solution of the smallest residual among several normalisations; prices are in utility per whole capacity.

        Normalisations are tried until the residual suffices. Raises the first `SolverError` if all solves fail.
        """
        best: Response | None = None
        failure: SolverError | None = None
        full = np.zeros(len(share), dtype=bool)
        room, last, near = self.program.room(elsewhere), share, _FULL
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
            # Large marginal utilities of users at their limits can mask prices; the next solve fixes them tentatively.
            full = (found.fraction >= (1 - near) * room) & (not full.any())
            near *= _FULL_GROWTH
            last = elsewhere / self.program.gamma + found.fraction
        if best is None:
            assert failure is not None
            raise failure
        return best

    def _units(self, elsewhere: Array, share: Array) -> Iterator[Array | None]:
        """Yield normalisations to try: present shares, max-min shares, and None for the shares of the previous solve.

        At alpha 0 or infinity, and for criteria that are not scale-free, the only normalisation is 1.
        """
        p = self.program
        if np.isinf(p.alpha) or p.alpha == 0 or not p.criterion.scale_free:
            yield np.ones(len(share))
            return
        if (share > 0).all():
            yield share
        yield p.maxmin_share(elsewhere)
        yield from [None] * _RESCALINGS

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
            marginal = p.log_marginal(share) + np.log(share)
            seen = waiting & (marginal >= marginal[waiting].max() + np.log(_VISIBLE))
            # At alpha = 0, and for criteria that are not scale-free, one solve determines all users.
            solved = seen if alpha > 0 and p.criterion.scale_free else waiting
            fixed[solved] = fraction[solved]
        found = [self._response(elsewhere, fixed, prices) for prices in _combined(stages, len(p.rows))]
        return min(found, key=lambda response: response.residual)

    def _run(self, solver: str | None) -> Run:
        if self._problem.is_lp():
            return solvers.first_success(self._problem, solver)
        # Only the first solver is used, as further solvers are less accurate.
        return solvers.solve(self._problem, solvers.solvers_for(self._problem, solver)[0])

    def _response(self, elsewhere: Array, fraction: Array, log_price: Array) -> Response:
        p = self.program
        fraction = fraction / max(1.0, float((p.use @ fraction).max(initial=0.0)))
        return Response(fraction, log_price, residual(p, elsewhere, fraction, log_price))

    def _log_price(self) -> Array:
        """Log duals of capacity, (rows here,); -inf for duals below the solver's accuracy."""
        prices = self.statement.constraints["capacity"].dual_value
        rows = np.zeros(len(self.program.rows)) if prices is None else np.abs(prices)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(rows > _PRICED * rows.max(initial=0.0), rows, 0.0)))

    def _cost(self) -> Array:
        """Cost of the whole server by user, relative to the largest price, plus 1 where a limit has a nonzero dual."""
        constraints = self.statement.constraints
        prices = np.abs(constraints["capacity"].dual_value)
        cost = self.program.use.T @ prices / max(prices.max(initial=0.0), np.finfo(float).tiny)
        if "max_tasks" in constraints:
            cost = cost + np.where(np.abs(constraints["max_tasks"].dual_value) > 0, 1.0, 0.0)
        return np.asarray(cost)


def _combined(stages: list[Array], rows: int) -> Iterator[Array]:
    """Yield one or two candidates of log prices, (rows here,), from the log prices of all solves.

    The first candidate is the log of the sum of prices. The second has the prices of the first solve, and a later
    solve's price where the earlier price is below the solver's accuracy.
    """
    yield np.asarray(np.logaddexp.reduce(stages, axis=0)) if stages else np.full(rows, -np.inf)
    if len(stages) > 1:
        result = stages[0]
        for later in stages[1:]:
            vague = result < result.max() + np.log(_VISIBLE)
            result = np.where(vague & (later > -np.inf), later, result)
        yield result


def server_problem(
    cluster: Cluster,
    criterion: Criterion,
    server: str | int,
    tasks: object,
    state: Callable[[Program], Statement],
    state_scaled: Callable[[Program], Statement],
    formula: str = "",
    scaled: bool | None = None,
) -> NamedProblem:
    """Problem of a server over its own column of `tasks` (users, servers), given the other columns.

    Parameters
    ----------
    server : name, or index from 0
    state, state_scaled : functions that state objective and constraints of the printed and of the scaled form
    formula : formula in the text of the problem
    scaled : select the scaled form; None selects it where the printed form is ill-conditioned

    Raises
    ------
    DataError
        There is no such server, no user can run tasks on it, or `tasks` is not a nonnegative (users, servers) array.
    """
    from .named_problem import named_problem, scaled_by_default

    names = list(cluster.servers)
    known = server in names if isinstance(server, str) else 0 <= server < len(names)
    if not known:
        raise DataError(f"there is no server {server!r}; give one of {', '.join(names[:5])}, or its index from 0")
    i = names.index(server) if isinstance(server, str) else int(server)
    others = np.array(tasks, dtype=float)
    if others.shape != cluster.shape[:2] or not (np.isfinite(others).all() and (others >= 0).all()):
        raise DataError(f"tasks must be numbers >= 0 of shape (users, servers) = {cluster.shape[:2]}")
    others[:, i] = 0.0
    limits = criterion.limits(cluster)
    if not (cluster.usable[:, i] & (limits > 0)).any():
        raise DataError(f"no user can run a task on server {names[i]!r}; choose another server")
    if not (scaled_by_default(criterion) if scaled is None else scaled):
        program = Textbook(cluster, criterion, i, others)
        return named_problem(program, state(program), formula)
    inside = ServerProgram(Polytope(cluster, limits), criterion, i)
    inside.others = cp.Parameter(others.shape, nonneg=True, name="others")
    inside.give_others(others)
    return named_problem(inside, state_scaled(inside), formula)


#: The iteration ends after more than `_PATIENCE` successive rounds without progress. A round makes progress if it
#: reduces exploitability below `_BETTER` times the smallest value before.
_PATIENCE, _BETTER = 60, 0.9
#: Factor by which exploitability must decrease between two certified candidates, as certification takes longer than a
#: round.
_CERTIFY_AT = 0.3


def solutions(
    problem: Problem,
    tol: float,
    solver: str | None = None,
    state: Callable[[Program], Statement] = statement,
    max_rounds: int = 200,
) -> Iterator[Solution]:
    """Candidate solutions of decreasing exploitability; `state` formulates the problem of one server."""
    criterion, polytope, cluster = problem.criterion, problem.polytope, problem.cluster
    problems = {int(i): ServerProblem(polytope, criterion, int(i), state) for i in np.unique(polytope.pair_server)}
    start = Solution(np.zeros(cluster.shape[:2]), None, "declarative", status="no tasks yet")
    if criterion.alpha > 0:
        whole = Problem(cluster, proportional(cluster, criterion))
        start = next(declarative.solutions(whole, solver))
    yield from _best_responses(polytope, criterion, problems, start, tol, solver, max_rounds)


def _gains(polytope: Polytope, criterion: Criterion, tasks: Array, prices: Array) -> Array:
    """Relative gain of a deviation of each server, (servers,), at prices of whole capacities, (rows,)."""
    if np.isinf(criterion.alpha):
        return exploitability(polytope, tasks, criterion)[0]
    with np.errstate(divide="ignore"):
        return by_server(polytope, backward_error(polytope, criterion, tasks, np.log(np.maximum(prices, 0.0))))


def _best_responses(
    polytope: Polytope,
    criterion: Criterion,
    problems: dict[int, ServerProblem],
    start: Solution,
    tol: float,
    solver: str | None,
    max_rounds: int,
) -> Iterator[Solution]:
    tasks = polytope.allocation(polytope.inside(polytope.fractions(start.tasks)))
    prices = np.zeros(polytope.use.shape[0]) if start.prices is None else polytope.row_prices(start.prices)
    runs: list[Run] = list(start.runs)
    gaps, best, since, judged = np.full(polytope.cluster.shape[1], np.inf), np.inf, 0, np.inf

    def respond(server: int) -> Array:
        # Servers with a negligible gain are skipped, but neither under max-min, where skipping has produced cycles, nor
        # after more than five rounds without progress.
        idle = -1.0 if np.isinf(criterion.alpha) or since > 5 else 0.1 * min(tol, float(gaps.max()))
        column, problem = tasks[:, server].copy(), problems[server]
        if gaps[server] > idle:
            program, here = problem.program, polytope.cluster.rate[problem.program.users, server]
            users, total = program.users, polytope.cluster.work(tasks)[program.users]
            elsewhere = np.maximum(total - here * column[users], 0.0)
            if polytope.rate is not None:  # the part of a user's task limit not used elsewhere limits its work here
                left = polytope.quota[program.members] - tasks[users].sum(axis=1) + column[users]
                program.limit = elsewhere + here * np.maximum(left, 0.0)
            fraction, prices[program.rows] = problem.respond(elsewhere, total / program.gamma, solver)
            column[users] = program.gamma * fraction / here
            runs.extend(problem.runs)
            problem.runs.clear()
        return column

    for number, _ in enumerate(islice(rounds(tasks, respond, list(problems)), max_rounds), 1):
        found = polytope.allocation(polytope.inside(polytope.fractions(tasks)))
        gaps = _gains(polytope, criterion, found, prices)
        gap = float(gaps.max())
        best, since = (gap, 0) if gap < _BETTER * best else (best, since + 1)
        if gap <= max(_CERTIFY_AT * judged, tol) or number == max_rounds or since > _PATIENCE:
            judged = gap
            yield Solution(
                found, polytope.unit_prices(prices), "declarative", tuple(runs), start.build, len(runs), runs[-1].status
            )
        if since > _PATIENCE:
            return


def rounds(tasks: Array, respond: Callable[[int], Array], order: Sequence[int]) -> Iterator[Array]:
    """Iterate Gauss-Seidel rounds of best responses on `tasks` (users, servers), in place and without end.

    Each item of the result is a copy of the tasks before the round that was just completed.

    Parameters
    ----------
    respond : function of a server's index that returns the column (users,) of its best response to the present tasks
    order : indices of servers in the order of a round
    """
    while True:
        before = tasks.copy()
        for server in order:
            tasks[:, server] = respond(server)
        yield before


def proportional(cluster: Cluster, criterion: Criterion) -> Criterion:
    """Criterion of the game at alpha = 1, proportional fairness, which does not depend on the share."""
    share = np.where(np.isfinite(cluster.dominant_share_per_task), cluster.dominant_share_per_task, 1.0)
    return Criterion(**(criterion.plain | {"share": share, "alpha": 1.0, "scope": "servers"}))


#: Residual, relative to tasks, above which a best response of CVXPY is rejected.
_TRUSTED = 1e-4


class CvxpySweeps(Sweeps):
    """`Sweeps` in which best responses are computed by `ServerProblem`s."""

    def __init__(self, method: EquilibriumSystem, rule: Criterion) -> None:
        super().__init__(method, rule.alpha)
        self._rule = rule
        self._problems: dict[int, ServerProblem] = {}

    def gauss_seidel(self, state: State, order: Index | None = None, relax: float = 1.0) -> float:
        servers = range(len(self.method.row)) if order is None else order
        return max(self.respond(int(i), state, relax) for i in servers)

    def respond(self, server: int, state: State, relax: float = 1.0) -> float:
        mine = self.pairs[self.first[server] : self.first[server + 1]]
        if not len(mine):
            return 0.0
        method, polytope = self.method, self.method.polytope
        if server not in self._problems:
            self._problems[server] = ServerProblem(polytope, self._rule, server)
        user = polytope.pair_user[mine]
        size = method.largest[user]
        elsewhere = np.maximum(state.total[user] - state.tasks[mine], 0.0)
        share = state.total[user] * size / polytope.gamma[mine]
        problem = self._problems[server]
        found = problem.best(elsewhere * size, share)
        problem.runs.clear()
        if not found.residual <= _TRUSTED:
            raise SolverError(
                f"CVXPY's best answer to the problem of server {polytope.cluster.servers[server]!r} for alpha="
                f"{self.alpha:g} is wrong by {found.residual:.1e} of a user's tasks, above {_TRUSTED:g}: use "
                "server_solver='native', or bring weights and demands closer together"
            )
        answer = found.fraction * method.gamma[mine]
        whole = np.maximum(elsewhere + answer, state.total[user])
        change = float((np.abs(answer - state.tasks[mine]) / whole).max())
        room = np.maximum(method.limit[user] - elsewhere, 0.0)
        moved = np.clip(state.tasks[mine] + relax * (answer - state.tasks[mine]), 0.0, room)
        moved /= max(1.0, float((method.per_task[mine] * moved[:, None]).sum(axis=0).max()))
        state.tasks[mine] = moved
        state.total[user] = elsewhere + moved
        if math.isfinite(self.alpha):
            rows = polytope.row_server == server
            state.log_price[server] = -np.inf
            state.log_price[server, polytope.row_resource[rows]] = found.log_price / self.alpha
        return change
