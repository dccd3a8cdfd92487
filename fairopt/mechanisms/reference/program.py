"""Convex programs in the notation of the papers: tasks `x` as a CVXPY variable, objectives and constraints."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...base.errors import DataError
from ...base.libraries import cp, sp
from ...model._arrays import Array, Index, Mask
from ...model.cluster import Cluster
from ...model.criterion import Criterion


@dataclass(frozen=True)
class Leximin:
    """Objective of lexicographic max-min: maximise the smallest of `levels`, then the second smallest, and so on."""

    levels: cp.Expression


@dataclass(frozen=True)
class Statement:
    """An objective, and constraints by name, of a convex program."""

    objective: cp.Maximize | Leximin
    constraints: Mapping[str, cp.Constraint]


def maximise(objective: cp.Expression, constraints: Mapping[str, cp.Constraint]) -> Statement:
    """State the maximisation of a concave expression subject to constraints."""
    return Statement(cp.Maximize(objective), dict(constraints))


def lexmaxmin(levels: cp.Expression, constraints: Mapping[str, cp.Constraint]) -> Statement:
    """State lexicographic max-min of concave `levels` subject to constraints."""
    return Statement(Leximin(levels), dict(constraints))


def f_alpha(t: cp.Expression, alpha: float) -> cp.Expression:
    r"""Alpha-fair utility of every entry of `t`, by exact power cones.

    .. math:: f_\alpha(t) = t^{1-\alpha} / (1-\alpha), \qquad f_1(t) = \log t, \qquad 0 \le \alpha < \infty
    """
    if alpha == 0:
        return t
    if alpha == 1:
        return cp.log(t)
    return cp.power(t, 1 - alpha, approx=False) / (1 - alpha)


class Program:
    r"""Tasks of users on servers as CVXPY expressions, in which a mechanism states its objective.

    Attributes
    ----------
    cluster : the cluster on which the mechanism is defined (the pool, for single-pool mechanisms)
    criterion : the mechanism's criterion on `cluster`, with caps, floors and weights
    users : indices of the users that can run a task on `servers`; arrays (users,) are in this order
    servers : indices of the servers that `x` covers: all servers, or one server in the per-server game
    x : (users, servers), tasks
    user_tasks : (users,)
        :math:`x_n`, tasks on all servers, including servers that `x` does not cover.
    work : (users,)
        :math:`w_n = \sum_i a_{ni} x_{ni}` with the cluster's rates :math:`a_{ni}`; `user_tasks` without rates.
    weight : (users,)
        :math:`\phi_n`.
    constraints : dict of str to cp.Constraint
        `capacity`; `placement` for users that are excluded from, or cannot run on, a server; `max_tasks` for finite
        limits; `min_tasks` for floors.
    """

    cluster: Cluster
    criterion: Criterion
    users: Index
    servers: Index
    x: cp.Expression
    user_tasks: cp.Expression
    work: cp.Expression
    weight: cp.Expression | Array
    constraints: dict[str, cp.Constraint]
    log_unit: float = 0.0  # log of one unit of the objective in units of the mechanism's welfare
    others: cp.Parameter | None = None  # fixed tasks on the other servers, (all users, all servers)

    def share(self, per_task: Array, label: str = "share") -> cp.Expression:
        """Shares :math:`u_n x_n`, (users,), from the share per task :math:`u_n`, (all users of the cluster,)."""
        return self._share(per_task[self.users], self.user_tasks, label)

    def work_share(self, per_work: Array, label: str = "share") -> cp.Expression:
        """Shares :math:`u_n w_n`, (users,), from the share per unit of work, (all users of the cluster,)."""
        return self._share(per_work[self.users], self.work, label)

    def _share(self, per_task: Array, tasks: cp.Expression, label: str) -> cp.Expression:
        return cp.multiply(per_task, tasks)

    def _symbol(self, name: str, value: Array) -> cp.Expression:
        return cp.Constant(value, name=name)

    def _named(self, expression: cp.Expression, title: str) -> cp.Expression:
        return expression

    @cached_property
    def dominant_share(self) -> cp.Expression:
        r"""Dominant shares :math:`x_n \max_r d_{nr} / C_r`, (users,), where :math:`C_r` is the total capacity."""
        return self.share(self.cluster.dominant_share_per_task, "dominant_share")

    @cached_property
    def asset_share(self) -> cp.Expression:
        r"""Asset shares :math:`x_n \sum_r d_{nr} / C_r`, (users,)."""
        return self.share(self.cluster.share_per_task.sum(axis=1), "asset_share")

    @cached_property
    def virtual_share(self) -> cp.Expression:
        r"""Virtual dominant shares :math:`w_n / (a_{ni} \gamma_{ni})`, (users,), on the only server i of `servers`.

        Raises `DataError` if `servers` has several servers.
        """
        if len(self.servers) != 1:
            raise DataError("virtual dominant shares are those of one server: see server_problem")
        return self._share(1 / self.cluster.monopoly_work[self.users, self.servers[0]], self.work, "virtual_share")

    @cached_property
    def server_share(self) -> cp.Expression:
        r"""Dominant shares of each server, :math:`x_{ni} / \gamma_{ni}`, (pairs,), at usable (user, server) pairs."""
        gamma = self.cluster.gamma[self.users][:, self.servers]
        tasks = self._named(self.x[np.nonzero(self.usable)], "x[usable]")
        return self._share(1 / gamma[self.usable], tasks, "server_share")

    @cached_property
    def pair_weight(self) -> cp.Expression:
        r"""Weights :math:`\phi_n` of the entries of `server_share`, (pairs,)."""
        return self._symbol("pair_weight", self.criterion.weight[self.users][np.nonzero(self.usable)[0]])

    @cached_property
    def usable(self) -> Mask:
        """Mask (users, servers) of pairs at which a user can run tasks."""
        return np.asarray(self.cluster.usable[self.users][:, self.servers])

    @cached_property
    def tasks(self) -> cp.Expression:
        """Tasks (users, servers) of all users on all servers of the cluster."""
        users, servers = self.cluster.shape[:2]
        # Solvers satisfy placement constraints only up to their tolerance; the mask makes the zeros exact.
        table = self.x if self.usable.all() else cp.multiply(self.usable.astype(float), self.x)
        if len(self.users) < users:
            table = _spread(self.users, users, "users").T @ table
        if len(self.servers) < servers:
            table = table @ _spread(self.servers, servers, "server")
        return table if self.others is None else table + self.others

    def give_others(self, tasks: Array) -> None:
        """Set the tasks on other servers from a table (all users, all servers).

        Entries of the table on `servers` themselves are not fixed; subclasses may use them as an initial guess.
        """
        assert self.others is not None
        self.others.value = np.where(np.isin(np.arange(tasks.shape[1]), self.servers), 0.0, tasks)

    def prices(self, dual: Array) -> Array:
        """Prices (servers, resources) per unit of each resource, from the duals of `capacity`; 0 for unused rows."""
        used = (self.cluster.capacity > 0) & (self.cluster.usable.T @ (self.cluster.demand > 0))
        result = np.zeros(self.cluster.capacity.shape)
        result[self.servers] = np.maximum(dual, 0.0)
        return np.where(used, result, 0.0)


def _spread(places: Index, count: int, name: str) -> cp.Constant:
    """0-1 matrix (places, count) that scatters entries to the given places, printed as `e[name]`."""
    ones = (np.ones(len(places)), (np.arange(len(places)), places))
    return cp.Constant(sp.csr_matrix(ones, shape=(len(places), count)), name=f"e[{name}]")


class Textbook(Program):
    r"""The feasible set in printed form, with tasks `x` as variables and without scaling.

    .. math:: \sum_n x_{ni} d_{nr} \le c_{ir}, \qquad x_{ni} \ge 0, \qquad x_n = \sum_i x_{ni} \le q_n

    Parameters
    ----------
    server : index of the only server whose tasks are variables; by default the tasks on all servers are variables
    tasks : (users, servers), the fixed tasks on other servers, if `server` is given
    parameters : make capacity, demand, weight and shares per task parameters of the CVXPY problem

    Raises
    ------
    DataError
        No user can run a task.
    """

    def __init__(
        self,
        cluster: Cluster,
        criterion: Criterion,
        server: int | None = None,
        tasks: Array | None = None,
        parameters: bool = False,
    ) -> None:
        from .expressions import Named

        self._kind, self._parameters = Named, parameters
        self.constraints = {}
        self.cluster, self.criterion = cluster, criterion
        self.servers = np.arange(cluster.shape[1]) if server is None else np.array([server])
        limit = criterion.limits(cluster)
        self.users = np.flatnonzero(cluster.usable[:, self.servers].any(axis=1) & (limit > 0))
        if not len(self.users):
            raise DataError("no user can run a task, so that there is no problem; make a user eligible on a server")
        limit, floor = limit[self.users], criterion.floor[self.users]
        self.x = cp.Variable((len(self.users), len(self.servers)), nonneg=True, name="x")
        total = cp.sum(self.x, axis=1)
        if tasks is not None:
            self.others = cp.Parameter(cluster.shape[:2], nonneg=True, name="others")
            self.give_others(tasks)
            elsewhere = cp.sum(self.others, axis=1)
            some = elsewhere if len(self.users) == len(cluster.users) else elsewhere[self.users]
            total = self._named(some, "tasks_elsewhere") + total
        names = tuple(cluster.users[n] for n in self.users)
        self.work = self.user_tasks = self._named(total, "user_tasks", names)
        if cluster.rated:
            rate = cluster.rate[self.users]
            done = cp.sum(cp.multiply(self._symbol("rate", rate[:, self.servers]), self.x), axis=1)
            if self.others is not None:
                elsewhere = cp.sum(cp.multiply(rate, self.others[self.users]), axis=1)
                done = self._named(elsewhere, "work_elsewhere") + done
            self.work = self._named(done, "work", names)
        self.weight = self._symbol("weight", criterion.weight[self.users])
        demand = self._symbol("demand", cluster.demand[self.users])
        capacity = self._symbol("capacity", cluster.capacity[self.servers])
        self.constraints["capacity"] = self.x.T @ demand <= capacity
        if not self.usable.all():
            self.constraints["placement"] = self._named(self.x[np.nonzero(~self.usable)], "x[barred]") == 0
        for name, number, rows in (("max_tasks", limit, np.isfinite(limit)), ("min_tasks", floor, floor > 0)):
            if rows.any():
                some = self.user_tasks if rows.all() else self.user_tasks[np.flatnonzero(rows)]
                bound = cp.Constant(number[rows], name=name)
                self.constraints[name] = some <= bound if name == "max_tasks" else some >= bound

    def _symbol(self, name: str, value: Array) -> cp.Expression:
        """CVXPY constant that prints as its name, or a CVXPY parameter."""
        if self._parameters:
            return cp.Parameter(value.shape, nonneg=True, name=name, value=np.array(value))
        return super()._symbol(name, value)

    def _named(self, expression: cp.Expression, title: str, *axes: tuple[str, ...]) -> cp.Expression:
        return self._kind(expression, title, axes, self.constraints if self._parameters else None)

    def _share(self, per_task: Array, tasks: cp.Expression, label: str) -> cp.Expression:
        return self._named(cp.multiply(self._symbol(f"{label}_per_task", per_task), tasks), label)


#: Alpha above which powers of shares that span six decades overflow: gradients are then compared at levels near 1.
_STEEP = 20.0
#: Objective and criterion are compared at `_POINTS` random points; `_NEAR` is the relative tolerance of gradients.
_POINTS, _NEAR = 3, 1e-6


def check_expressed(
    mechanism: object, state: Callable[[Program], Statement], cluster: Cluster, criterion: Criterion
) -> None:
    """Raise `DataError` if a program disagrees with its criterion, on which certificates are based.

    No problem is solved. The constraints must be `Program.constraints`. At random points, the gradient of the objective
    must be proportional to the criterion's marginal utilities; levels of max-min must be proportional to the
    criterion's levels. Of a game, only the first ten servers are checked.
    """
    rng = np.random.default_rng(0)
    game = criterion.scope == "game"
    for server in np.flatnonzero(cluster.usable[criterion.limits(cluster) > 0].any(axis=0))[:10] if game else (None,):
        for _ in range(_POINTS):
            alone = np.where(cluster.usable, cluster.gamma, 0.0) / len(cluster.users)
            tasks = rng.uniform(0.2, 1.0, alone.shape) * alone
            if _STEEP < criterion.alpha < math.inf:
                with np.errstate(divide="ignore", invalid="ignore"):
                    level = criterion.levels(cluster.work(tasks))
                    near = rng.uniform(0.8, 1.25, len(tasks)) / (level[:, server] if game else level)
                tasks = tasks * np.where(np.isfinite(near), near, 1.0)[:, None]
            program = Textbook(cluster, criterion, server, tasks if game else None)
            statement = state(program)
            _check_constraints(mechanism, program, statement)
            program.x.value = tasks[program.users][:, program.servers]
            _check_objective(mechanism, program, statement, tasks)


def _check_constraints(mechanism: object, program: Program, statement: Statement) -> None:
    own = program.constraints
    for name, rule in statement.constraints.items():
        if rule is not own.get(name):
            raise DataError(
                f"{mechanism} states a constraint {name!r}, which its criterion does not express: an answer without it "
                "would be certified. Define certify(cluster, tasks, log_prices) in the mechanism, which judges it as "
                "well, or drop the constraint"
            )
    if missing := [name for name in own if name not in statement.constraints]:
        raise DataError(
            f"{mechanism} leaves out the constraint {missing[0]!r}, by which its criterion judges. Give all of "
            "p.constraints, or define certify(cluster, tasks, log_prices) in the mechanism"
        )


def _check_objective(mechanism: object, program: Program, statement: Statement, tasks: Array) -> None:
    rule, objective = program.criterion, statement.objective
    if isinstance(objective, Leximin) != math.isinf(rule.alpha):
        raise DataError(f"{mechanism} states max-min in only one of `program` and `criterion`")
    with np.errstate(all="ignore"):
        if isinstance(objective, Leximin):
            found, right = np.asarray(objective.levels.value), _levels(program, tasks)
            log_found, log_right = np.log(found), np.log(right)
        else:
            slope = objective.expr.grad[program.x]
            if slope is None:
                raise DataError(f"CVXPY has no derivative of the objective of {mechanism}; choose a differentiable one")
            table = slope.toarray() if sp.issparse(slope) else np.asarray(slope)  # for a single entry it is a scalar
            log_found = np.log(np.reshape(table, program.x.shape, order="F"))[program.usable]
            log_right = _by_pair(program, rule.log_marginal(program.cluster.work(tasks)))
            if program.cluster.rated:
                log_right = log_right + np.log(_by_pair(program, program.cluster.rate))
    known = np.isfinite(log_right)
    agree = log_found.shape == log_right.shape and (log_found[~known] == log_right[~known]).all()
    near = _NEAR * max(1.0, np.abs(log_right[known]).max(initial=0.0))
    if not agree or (known.any() and np.ptp((log_found - log_right)[known]) > near):
        raise DataError(
            f"{mechanism} states another objective in `program` than in `criterion`, by which answers are judged: at "
            f"random tasks {'levels' if isinstance(objective, Leximin) else 'marginal utilities'} are not proportional"
        )


def _levels(program: Program, tasks: Array) -> Array:
    """Levels of the criterion at tasks (all users, servers), in the order of `Leximin.levels`."""
    rule = program.criterion
    if rule.scope == "per_server":
        return _by_pair(program, tasks * rule.share / rule.weight[:, None])
    levels = rule.levels(program.cluster.work(tasks))
    return _by_pair(program, levels) if levels.ndim == 2 else np.asarray(levels[program.users])


def _by_pair(program: Program, values: Array) -> Array:
    """Values (all users,) or (all users, servers) at the usable (user, server) pairs of a program."""
    table = values if values.ndim == 2 else np.broadcast_to(values[:, None], program.cluster.shape[:2])
    return np.asarray(table[np.ix_(program.users, program.servers)][program.usable])
