"""The distributed game: servers play best responses to each other until no response changes tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ..base import clock
from ..base import progress as _progress
from ..base.errors import DataError, NotConverged
from ..base.libraries import pd
from ..certificates import ByCriterion, Certificate, backward_error, certify, exploitability
from ..core.accuracy import SUM_ROUNDING
from ..core.game.equilibrium_system import EquilibriumSystem, log_unit_prices
from ..core.game.index import index_of_answer
from ..core.game.rounds import LARGEST_ALPHA, State, Sweeps
from ..mechanisms._game import GameMechanism
from ..mechanisms.alphapf_vds import AlphaPFVDS
from ..mechanisms.psdsf import PSDSF
from ..mechanisms.reference import solvers
from ..mechanisms.reference.server_problem import CvxpySweeps
from ..model import _frames, _validate
from ..model._arrays import Array, deferred
from ..model._same import other_names
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion
from ..model.polytope import Polytope
from ..model.problem import Problem
from ..result.allocation import Allocation, Stats, Trace, idle
from .orders import ORDERS, Network, Round, network_of, rounds

#: Largest residual of a response, relative to capacities, as a fraction of the tolerance of the game.
_PART = 0.01
#: Least alpha for which initial tasks are computed: at a smaller alpha a user could be left without tasks.
_STARTING_ALPHA = 0.3
#: Elastic rounds change tasks by up to about this factor more than plain responses: plain responses are computed as a
#: test once the change of a round is at most this multiple of the tolerance.
_AHEAD = 10.0
#: Tasks are exponentials of log prices over alpha, with a rounding error of `_ROUNDING/alpha`, which is negligible for
#: alpha >= `_PLAIN`.
_ROUNDING, _PLAIN = SUM_ROUNDING, 1e-3
#: Columns of a trace: cumulative numbers of messages, and of the numbers in them.
_SENT = ("messages", "numbers")
_INTERRUPTED = "interrupted: hand this allocation back as start to go on"
#: Tasks, their certificate, the log prices of its proof, and the seconds of certification.
_Judged = tuple[Array, Certificate, Array | None, float]


def best_response(
    cluster: Cluster,
    alpha: float | None = None,
    *,
    mechanism: GameMechanism | None = None,
    order: str | None = None,
    damping: float | None = None,
    tol: float = 1e-6,
    max_rounds: int = 1000,
    start: Allocation | Array | None = None,
    rng: np.random.Generator | int | None = None,
    network: Network | None = None,
    server_solver: str = "native",
    throw: bool = True,
    progress: bool = False,
) -> Allocation:
    r"""Play the per-server game by best responses: each server maximises its utility, given the tasks on other servers.

    .. math:: x_{\cdot i} \leftarrow \arg\max_{y \in \mathcal{X}_i(x)} \sum_n \phi_n
        f_\alpha\Big(\frac{y_n + \sum_{j \ne i} x_{nj}}{\gamma_{ni} \phi_n}\Big)

    Parameters
    ----------
    cluster : Cluster
    alpha : float
        In (0, infinity]; infinity is PS-DSF. At alpha = 0 servers are independent: use `AlphaPFVDS(0)`.
    mechanism : GameMechanism, optional
        The game to play, instead of `alpha`, such as `ConcaveGame(utility)` with a user-defined utility.
    order : str, optional
        `elastic` (Gauss-Seidel, in which servers anticipate the others' responses), `cyclic` or `random`
        (Gauss-Seidel), `over-relaxed`, `jacobi` (simultaneous), `asynchronous`. Default: `elastic`, or `cyclic` with a
        damping or `server_solver="cvxpy"`.
    damping : float, optional
        Fraction of the step to the response that is taken, in (0, 2), for all orders but `elastic`. Default: 1;
        adaptive for `over-relaxed`; for `jacobi` the reciprocal of the largest number of servers that a user can use,
        with which the potential does not decrease at alpha = 1; for `asynchronous` the same value, but at most 1/2.
        Long delays on dense clusters require a smaller value.
    tol : float
        Bound on the residual (the largest change of a further response, relative to the user's tasks), the
        exploitability and the certificate. Responses are solved to a hundredth of `tol`. Residuals in the trace are the
        largest changes in a round, or the changes of a further response where these were computed.
    max_rounds : int
        Largest number of rounds, at least 1.
    start : Allocation or array (users, servers), optional
        Initial tasks. If `start` is an allocation of the same game (cluster, alpha and order), such as the result of an
        interrupted game, its trace is continued. Default: a smooth choice of servers at equal prices.
    rng : Generator or int, optional
        Generator or seed of random orders and of the asynchronous network.
    network : Network, optional
        Losses, delays and outages, for `asynchronous` only.
    server_solver : str
        `native`, or `cvxpy` for the server's problem in declarative form.
    throw : bool
        False: return a flagged allocation instead of raising if the certificate misses `tol` after `max_rounds`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Allocation
        With its `trace`. After an interruption (Ctrl-C) it is flagged unless its certificate passes, and can be passed
        as `start`.

    Raises
    ------
    DataError
        An argument is invalid; the message names it.
    NotConverged
        The certificate misses `tol` after `max_rounds`.
    SolverError
        CVXPY found no accurate solution of a server's problem.

    A server knows its capacities, demands, weights and limits of its eligible users, and their tasks on other servers.
    In elastic order it also exchanges a supply slope and an anticipated total for each of these users, three numbers
    instead of one, and all servers share eight sums per round, or forty with Anderson acceleration. The asynchronous
    game has plain responses, as elastic responses require rounds (docs/algorithms/best-responses.md).

    With a user-defined utility (docs/utilities.md) responses are computed for a piecewise power law that interpolates
    32,768 marginal utilities, and the exploitability in the trace is a backward error; the certificate is computed for
    the utility itself.

    It is proved that a fixed point of elastic rounds is an equilibrium; that elastic order converges, without a bound
    on the number of rounds, if cyclic order converges to an equilibrium from every start; and that cyclic order
    converges at alpha = 1, as a potential exists. For other alphas cyclic order can cycle, as observed with zero
    demands and alpha >= 4 (docs/algorithms/best-responses.md), where elastic order and `damping=0.5` converge. In all
    other cases that were tried cyclic order converged, but it may take thousands of rounds; elastic order takes fewer
    (docs/alpha.md has numbers).

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018 (PF), section 5.2 (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> found = fo.best_response(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), 3)
    >>> found.user_tasks.round(3).tolist(), found.trace.order
    ([0.649, 0.675], 'elastic')
    >>> import cvxpy as cp
    >>> game = fo.ConcaveGame(cp.sqrt)  # alpha = 1/2
    >>> found = fo.best_response(found.cluster, mechanism=game, order="jacobi", damping=0.5)
    >>> found.user_tasks.round(3).tolist(), found.trace.order
    ([0.8, 0.6], 'jacobi')
    """
    expected(cluster, "best responses in an order")
    mechanism = _played(alpha, mechanism)
    mechanism.check(cluster)
    rule = mechanism.criterion(cluster)
    tol = _validate.tolerance(tol)
    alpha = _alpha_of(rule.alpha, tol)
    max_rounds, rng = _validate.whole(max_rounds, "max_rounds"), generator_of(rng)
    order, damping = _order_of(order, damping, server_solver)
    network = network_of(network, cluster, order)
    quick = rule.tabulated  # the table of a user-defined utility is computed before the clock starts
    watch = clock.Watch()
    polytope = Polytope(cluster, rule.limits(cluster))
    begun, rows = _given(start, cluster, rule, order)
    if len(polytope.users):
        method = EquilibriumSystem(polytope, rule.weight[polytope.users], min(alpha, LARGEST_ALPHA))
        native = server_solver == "native"
        sweeps = Sweeps(method, alpha, _PART * tol, rule.curve) if native else CvxpySweeps(method, rule)
        if begun is None:
            part = method.at(max(method.alpha, _STARTING_ALPHA)).begin(_STARTING_ALPHA) / method.gamma
        else:
            part = polytope.fractions(begun)
        state = sweeps.start(polytope.inside(part) * method.gamma)
        played = islice(rounds(order, sweeps, state, rng, damping, network), max_rounds)
        if progress:
            played = _progress.tqdm(played, total=max_rounds, desc="best response", unit="round")
        with np.errstate(all="ignore"):
            ahead = _AHEAD if order == "elastic" else 1.0
            ended, judged = _play(played, sweeps, state, rule, quick, tol, ahead, watch, rows)
        reason = ended or (
            f"max_rounds={max_rounds} reached: allow more, start from this allocation, or try another order or damping"
        )
        if judged is None:
            judged = _certify(sweeps, state, rule)
            if judged[1].passes(tol) and reason != _INTERRUPTED:
                reason = f"max_rounds={max_rounds} reached, where the certificate passes"
    else:
        nothing = np.zeros(cluster.shape[:2])
        reason, judged = "no user can run a task", (nothing, *certify(cluster, nothing, rule, None), 0.0)
    tasks, certificate, proof, seconds = judged
    frame = pd.DataFrame(
        rows,
        columns=["residual", "exploitability", "utilization", "seconds", *_SENT],
        index=pd.RangeIndex(1, len(rows) + 1, name="round"),
    )
    trace = Trace(frame, reason, order)
    stats = Stats(
        "best-response", server_solver, reason, len(rows), 0.0, 0.0, max(watch.cpu - seconds, 0.0), seconds,
        dict(solvers.versions()), watch.loops,
    )  # fmt: skip
    found = Allocation(
        str(mechanism),
        cluster,
        tasks,
        certificate,
        rule,
        proof,
        stats,
        idle([cluster.users[n] for n in np.flatnonzero(~cluster.usable.any(axis=1))]),
        tol,
        ByCriterion(rule),
        trace,
        index=deferred(partial(index_of_answer, Problem(cluster, rule), tasks, proof)),
    )
    if throw and reason != _INTERRUPTED and found.flagged:
        raise NotConverged(f"best response for {mechanism}, order {order!r}: {trace!r}; {certificate}")
    return found


def _played(alpha: Any, mechanism: Any) -> GameMechanism:
    """Game given by `alpha` or by `mechanism`; `DataError` unless exactly one of them is given, and valid."""
    if (alpha is None) == (mechanism is None):
        raise DataError("give either alpha, such as 3, or mechanism, such as ConcaveGame(cp.log1p)")
    if mechanism is None:
        alpha = _validate.alpha(alpha)
        return PSDSF() if math.isinf(alpha) else AlphaPFVDS(alpha)
    if not isinstance(mechanism, GameMechanism):
        raise DataError(f"mechanism is {mechanism!r}, which is no game: give AlphaPFVDS(3), PSDSF(), or ConcaveGame(U)")
    return mechanism


def _alpha_of(alpha: float, tol: float) -> float:
    """Return alpha; raise `DataError` if it is so small that rounding errors of tasks exceed `tol`."""
    if alpha < (least := min(_ROUNDING / tol, _PLAIN)):
        raise DataError(
            f"alpha is {alpha:g}; for tol={tol:g} it must be at least {least:g}, as rounding errors of tasks grow like "
            f"{_ROUNDING:g}/alpha. Relax tol, or use AlphaPFVDS(0) for alpha = 0"
        )
    return alpha


def _order_of(order: str | None, damping: float | None, server_solver: str) -> tuple[str, float | None]:
    """Return order and damping (None: default); raise `DataError` for invalid or conflicting arguments."""
    if damping is not None:
        wanted = "between 0 (no step) and 2, 1 for the response itself"
        damping = _validate.number(damping, "damping", wanted, lambda part: 0 < part < 2)
    plain = damping is not None or server_solver != "native"
    order = order or ("cyclic" if plain else "elastic")
    for what, value, known in (("order", order, ORDERS), ("server_solver", server_solver, ("native", "cvxpy"))):
        if value not in known:
            raise DataError(f"{what} {value!r} is not one of {', '.join(known)}; choose one of them")
    if plain and order == "elastic":
        raise DataError(
            "order 'elastic' has no damping, and servers of server_solver='native' only: leave them out, or choose "
            "order='cyclic'"
        )
    return order, damping


def multi_start(
    cluster: Cluster,
    alpha: float,
    starts: int = 10,
    *,
    rng: np.random.Generator | int,
    tol: float = 1e-8,
    max_rounds: int = 20_000,
) -> pd.DataFrame:
    r"""Play the game from random starts, in random order, to detect several equilibria.

    .. math:: \text{apart}_k = \max_n \frac{|x^{(k)}_n - x^{(1)}_n|}{x^{(1)}_n}

    Parameters
    ----------
    cluster : Cluster
    alpha : float
        In (0, infinity]; infinity is PS-DSF.
    starts : int
        Number of starts, at least 2.
    rng : Generator or int
        Generator or seed of starts and orders.
    tol, max_rounds
        Termination of each game, as in `best_response`; a game that misses `tol` is a row that has not `converged`.

    Returns
    -------
    DataFrame by start
        `rounds`, `converged`, and `apart`, the largest relative difference of a user's tasks from the first start. A
        value far above `tol` shows that tasks are not unique (as for PS-DSF). A small value does not prove uniqueness:
        best responses do not converge to unstable equilibria, which `equilibria` finds on small clusters.
        `frame.attrs["user_tasks"]` is (starts, users).

    Raises
    ------
    DataError
        `starts` is below 2, or an argument is invalid, as in `best_response`.

    >>> import fairopt as fo
    >>> found = fo.game.multi_start(fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]]), 3, 3, rng=0)
    >>> bool((found["apart"] < 1e-6).all())
    True
    """
    starts, rng = _validate.whole(starts, "starts", least=2), generator_of(rng)
    found = [
        best_response(
            cluster, alpha, order="random", start=_random(cluster, rng), rng=rng, tol=tol, max_rounds=max_rounds,
            throw=False,
        )
        for _ in range(starts)
    ]  # fmt: skip
    tasks = np.array([one.arrays.user_tasks for one in found])
    frame = pd.DataFrame(
        {
            "rounds": [one.stats.rounds for one in found],
            "converged": [not one.flagged for one in found],
            "apart": (np.abs(tasks - tasks[0]) / np.maximum(tasks[0], np.finfo(float).tiny)).max(axis=1),
        },
        index=pd.RangeIndex(1, starts + 1, name="start"),
    )
    frame.attrs["user_tasks"] = tasks
    return frame


def _random(cluster: Cluster, rng: np.random.Generator) -> Array:
    """Random tasks (users, servers): a random partition of every server, scaled to task limits."""
    parts = np.where(cluster.usable, rng.exponential(size=cluster.gamma.shape), 0.0)
    whole = parts.sum(axis=0)
    tasks = cluster.gamma * parts / np.where(whole > 0, whole, 1.0)
    room = np.minimum(1.0, cluster.max_tasks / np.maximum(tasks.sum(axis=1), np.finfo(float).tiny))
    return np.asarray(tasks * room[:, None])


def generator_of(value: Any) -> np.random.Generator:
    """Return a random generator, made from `value` if it is a seed; raise `DataError` if it is neither."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"rng is {value!r}; it must be a seed (a whole number >= 0) or a generator ({error})") from None


def _given(start: Any, cluster: Cluster, rule: Criterion, order: str) -> tuple[Array | None, list[dict[str, float]]]:
    """Initial tasks (users, servers), None without a start, and the rows of the trace that is continued.

    There are such rows if `start` is an allocation of the same game and order. Tasks that are negative or have other
    names raise `DataError`.
    """
    if not isinstance(start, Allocation):
        try:
            tasks = None if start is None else _frames.tasks(start, cluster.users, cluster.servers)
        except DataError as error:
            raise DataError(f"start: {error}") from None
        if tasks is not None and (tasks < 0).any():
            raise DataError("start: some tasks are below 0; it must be an allocation or tasks >= 0 (users, servers)")
        return tasks, []
    if different := other_names(start.cluster, cluster):
        raise DataError(f"start is of another cluster: {different}; it must be of the same names")
    same = all(getattr(start.criterion, name, None) == getattr(rule, name, None) for name in ("alpha", "slope"))
    trace, other = start.trace, not same or start.cluster != cluster
    return start.tasks, [] if other or trace is None or trace.order != order else trace.frame.to_dict("records")


def _play(
    played: Iterator[Round],
    sweeps: Sweeps,
    state: State,
    rule: Criterion,
    quick: Criterion,
    tol: float,
    ahead: float,
    watch: clock.Watch,
    rows: list[dict[str, float]],
) -> tuple[str | None, _Judged | None]:
    """Play rounds until convergence, appending a row of the trace for each, measured by the criterion `quick`.

    Returns the reason of termination, None if all rounds were played, and the certificate of the last round, None if it
    was not computed.
    """
    last = rows[-1] if rows else dict.fromkeys(("seconds", *_SENT), 0.0)
    before, judged = last["seconds"], None
    wanted = tol  # exploitability below which the certificate is computed
    try:
        for *sent, residual in played:
            row = {"residual": residual} | _measured(sweeps, state, quick) | {"seconds": watch.cpu + before}
            row |= {name: last[name] + more for name, more in zip(_SENT, sent, strict=True)}
            rows.append(last := row)
            judged = None
            if (
                row["residual"] <= tol * ahead
                and row["exploitability"] <= wanted
                and (residual := sweeps.requested(state, tol)) <= tol
            ):
                row["residual"] = residual
                wanted /= 2  # the certificate, which decides, may exceed the exploitability slightly
                judged = _certify(sweeps, state, rule)
                if judged[1].passes(tol):
                    return f"no response would change anything by more than tol={tol:g}", judged
            if row["residual"] <= tol and not rule.starves and not state.total.all():
                polytope = sweeps.method.polytope
                user = polytope.cluster.users[int(polytope.users[int(state.total.argmin())])]
                return (
                    f"user {user!r} has fewer tasks than doubles can hold, as alpha is so small: take a larger one, or "
                    "AlphaPFVDS(0) for alpha = 0"
                ), judged
    except KeyboardInterrupt:
        return _INTERRUPTED, judged
    return None, judged


def _measured(sweeps: Sweeps, state: State, rule: Criterion) -> dict[str, float]:
    method, polytope = sweeps.method, sweeps.method.polytope
    if math.isinf(rule.alpha):
        exploit = float(exploitability(polytope, _tasks(sweeps, state), rule)[0].max())
    elif not rule.scale_free:
        log_rows = sweeps.log_price(state)[polytope.row_server, polytope.row_resource]
        exploit = backward_error(polytope, rule, _tasks(sweeps, state), log_rows).error
    else:
        exploit = method.exploitability(state.tasks, sweeps.log_price(state))
    capacity = polytope.cluster.capacity
    used, whole = (method.used(state.tasks) * capacity).sum(axis=0), capacity.sum(axis=0)
    return {"exploitability": exploit, "utilization": float((used[whole > 0] / whole[whole > 0]).mean())}


def _tasks(sweeps: Sweeps, state: State) -> Array:
    """Tasks (users, servers) of a state, scaled down to capacities."""
    polytope = sweeps.method.polytope
    return polytope.allocation(polytope.inside(state.tasks / sweeps.method.gamma))


def _certify(sweeps: Sweeps, state: State, rule: Criterion) -> _Judged:
    """Certify the tasks of a state at the servers' latest prices, or at infinite alpha without given prices."""
    begun, method, tasks = clock.cpu(), sweeps.method, _tasks(sweeps, state)
    prices = None if math.isinf(rule.alpha) else log_unit_prices(method, state.log_price)
    return tasks, *certify(method.polytope.cluster, tasks, rule, prices), clock.cpu() - begun
