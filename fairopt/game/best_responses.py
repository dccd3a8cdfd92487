"""The distributed game as it would run: servers respond to each other until nobody would change anything."""

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
from ..certificates import ByCriterion, Certificate, certify, exploitability
from ..core.game.equilibrium_system import EquilibriumSystem, log_unit_prices
from ..core.game.index import index_of_answer
from ..core.game.rounds import State, Sweeps
from ..mechanisms.reference import solvers
from ..mechanisms.reference.server_problem import CvxpySweeps
from ..model import _frames, _validate
from ..model._arrays import Array, deferred
from ..model._same import other_names
from ..model.cluster import Cluster, expected
from ..model.criterion import Criterion, criterion, virtual_share_per_task
from ..model.polytope import Polytope
from ..model.problem import Problem
from ..result.allocation import Allocation, Stats, Trace, idle
from .orders import ORDERS, Network, Round, network_of, rounds

#: Servers miss a capacity by at most this part of the tolerance.
_PART = 0.01
#: Elastic rounds ask for this much more than plain ones would, at most about.
_AHEAD = 10.0
#: Tasks are exponentials of logs of prices over alpha: rounding leaves them an error of `_ROUNDING/alpha`, which from
#: `alpha = _PLAIN` on bounds no tolerance.
_ROUNDING, _PLAIN = 1e-15, 1e-3
#: What was sent so far: columns of a trace.
_SENT = ("messages", "numbers")
_INTERRUPTED = "interrupted: hand this allocation back as start to go on"
#: Tasks, their certificate, prices that prove it, and how many seconds that took.
_Judged = tuple[Array, Certificate, Array | None, float]


def best_response(
    cluster: Cluster,
    alpha: float,
    *,
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
    """Play the per-server game: each server in turn maximises its own utility, given what the others give.

    Parameters
    ----------
    cluster : where the game is played
    alpha : in (0, infinity]; infinity is PS-DSF. For alpha = 0, where servers do not influence each other, use
        `AlphaPFVDS(0)`
    order : `elastic` (servers in turn foresee how the others will answer), `cyclic` or `random` (Gauss-Seidel),
        `over-relaxed`, `jacobi` (all at once), `asynchronous`. Default: `elastic`, but `cyclic` where a damping or
        `server_solver="cvxpy"` is given
    damping : how much of the way to its response a server moves, in (0, 2), for all orders but `elastic`; default 1;
        over-relaxed it sets itself. For `jacobi` one part in the most servers that a user can use, with which the
        potential never falls at alpha = 1; for `asynchronous` at most a half of the way, too. Slow, and long delays on
        dense clusters need less still
    tol : stop when the residual (the largest change that a response would still make, relative to the user's tasks)
        and the exploitability are at most this, and so is the certificate. Responses are exact to a hundredth of it;
        in the trace the residual is the largest change in the round, but where it was measured after it
    max_rounds : the most rounds, at least 1
    start : an allocation, or tasks (users, servers). The trace of an allocation of the same game (cluster, alpha and
        order), perhaps one that was interrupted, is continued. Default: what users would take, softly, if all prices
        were equal
    rng : seed or generator of random orders and of the asynchronous network
    network : what happens to messages, for `asynchronous` only
    server_solver : `native`, or `cvxpy` for the same problem as it is declared
    throw : False: return a flagged allocation instead of raising when the certificate of what `max_rounds` reach
        misses `tol`
    progress : show a progress bar

    Returns
    -------
    Allocation
        with its `trace`; interrupted (Ctrl-C), it is flagged unless its certificate passes, and can be handed back as
        `start`.

    Raises
    ------
    DataError
        An argument is wrong; the message names it.
    NotConverged
        The certificate misses `tol` after `max_rounds`.
    SolverError
        CVXPY found no answer to a server's problem that can be trusted.

    A server knows its capacities, demands, weights and limits of users that may use it, and their totals elsewhere. In
    elastic order it also tells and hears of each of these users a supply slope and the total foreseen, three numbers in
    place of one, and all servers share eight sums each round, forty where it is accelerated (Anderson's mixtures). The
    asynchronous game is one of plain responses: elastic ones need rounds (docs/algorithms/best-responses.md).

    Proved: where elastic rounds stand still is an equilibrium; in a game in which cyclic order comes to one from every
    start elastic order does, too, after a number of rounds that nothing bounds; and at alpha = 1 cyclic order does, as
    there is a potential. At other alphas nothing bounds the rounds, and cyclic order may cycle: seen with zero demands
    and alpha >= 4 (docs/algorithms/best-responses.md), where elastic order, whose mixtures damp, and `damping=0.5`
    arrive. Observed only: elsewhere rounds were not seen to fail, but can be thousands; elastic order
    takes fewer (docs/alpha.md has numbers).
    Source: PF section 5.2.
    """
    expected(cluster)
    tol, alpha = _validate.tolerance(tol), _validate.alpha(alpha)
    if alpha < (least := min(_ROUNDING / tol, _PLAIN)):
        raise DataError(
            f"alpha is {alpha:g}; for tol={tol:g} it must be at least {least:g}, as rounding errors of tasks grow like "
            f"{_ROUNDING:g}/alpha. Relax tol, or use AlphaPFVDS(0) for alpha = 0"
        )
    max_rounds, rng = _validate.whole(max_rounds, "max_rounds"), generator_of(rng)
    if damping is not None:
        wanted = "between 0 (stand still) and 2, 1 for the response itself"
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
    network = network_of(network, cluster, order)
    watch = clock.Watch()
    rule = criterion(cluster, virtual_share_per_task(cluster), alpha, "game")
    polytope = Polytope(cluster, rule.limits(cluster))
    begun, rows = _given(start, cluster, alpha, order)
    if len(polytope.users):
        method = EquilibriumSystem(polytope, rule.weight[polytope.users], min(alpha, 1e6))
        sweeps = Sweeps(method, alpha, _PART * tol) if server_solver == "native" else CvxpySweeps(method, rule)
        if begun is None:  # as for alpha = 0.3: for smaller ones a user could be left without a task
            part = method.at(max(method.alpha, 0.3)).begin(0.3) / method.gamma
        else:
            part = polytope.fractions(begun)
        state = sweeps.start(polytope.inside(part) * method.gamma)
        played = islice(rounds(order, sweeps, state, rng, damping, network), max_rounds)
        if progress:
            played = _progress.tqdm(played, total=max_rounds, desc="best response", unit="round")
        with np.errstate(all="ignore"):
            ended, judged = _play(played, sweeps, state, rule, tol, _AHEAD if order == "elastic" else 1.0, watch, rows)
        reason = ended or (
            f"max_rounds={max_rounds} reached: allow more, start from this allocation, or try another order or damping"
        )
        if judged is None:
            judged = _certify(sweeps, state, rule)
            if judged[1].passes(tol) and reason != _INTERRUPTED:
                reason = f"max_rounds={max_rounds} reached, where the certificate passes"
    else:
        nothing = np.zeros(cluster.shape[:2])
        reason, judged = "nobody can run anything", (nothing, *certify(cluster, nothing, rule, None), 0.0)
    tasks, certificate, proof, seconds = judged
    frame = pd.DataFrame(
        rows,
        columns=["residual", "exploitability", "utilization", "seconds", *_SENT],
        index=pd.RangeIndex(1, len(rows) + 1, name="round"),
    )
    trace = Trace(frame, reason, order)
    stats = Stats(
        "best-response", server_solver, reason, len(rows), 0.0, 0.0, watch.seconds - seconds, seconds,
        dict(solvers.versions()), watch.loops,
    )  # fmt: skip
    found = Allocation(
        "PS-DSF" if math.isinf(alpha) else f"alphaPF-VDS(alpha={alpha:g})",
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
        raise NotConverged(f"best response for alpha={alpha:g}, order {order!r}: {trace!r}; {certificate}")
    return found


def multi_start(
    cluster: Cluster,
    alpha: float,
    starts: int = 10,
    *,
    rng: np.random.Generator | int,
    tol: float = 1e-8,
    max_rounds: int = 20_000,
) -> pd.DataFrame:
    """Play the game from random starts, in random order.

    Parameters
    ----------
    cluster : where the game is played
    alpha : in (0, infinity]; infinity is PS-DSF
    starts : how many, at least 2
    rng : seed or generator of starts and orders
    tol, max_rounds : where each game stops, as of `best_response`; one that misses `tol` is a row that has not
        `converged`, no error

    Returns
    -------
    DataFrame
        one row per start: `rounds`, `converged`, and `apart`, the largest difference in any user's tasks from those of
        the first start, relative. Far above `tol`, it shows that x_n is not unique (PS-DSF's need not be); below,
        it is evidence, not proof: best responses do not end at unstable equilibria (`equilibria` finds them on
        small clusters). `frame.attrs["user_tasks"]` is (starts, users).

    Raises
    ------
    DataError
        `starts` is below 2, or an argument is wrong, as of `best_response`.
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
    """Random allocation: random parts of every server's fullest resource."""
    parts = np.where(cluster.usable, rng.exponential(size=cluster.gamma.shape), 0.0)
    whole = parts.sum(axis=0)
    tasks = cluster.gamma * parts / np.where(whole > 0, whole, 1.0)
    room = np.minimum(1.0, cluster.max_tasks / np.maximum(tasks.sum(axis=1), np.finfo(float).tiny))
    return np.asarray(tasks * room[:, None])


def generator_of(value: Any) -> np.random.Generator:
    """Return a generator, made from a seed if need be."""
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"rng is {value!r}; it must be a seed (a whole number >= 0) or a generator ({error})") from None


def _given(start: Any, cluster: Cluster, alpha: float, order: str) -> tuple[Array | None, list[dict[str, float]]]:
    """Tasks (users, servers) to start from, and the rows of the trace that goes on: of the same game and order."""
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
    trace, other = start.trace, start.criterion.alpha != alpha or start.cluster != cluster
    return start.tasks, [] if other or trace is None or trace.order != order else trace.frame.to_dict("records")


def _play(
    played: Iterator[Round],
    sweeps: Sweeps,
    state: State,
    rule: Criterion,
    tol: float,
    ahead: float,
    watch: clock.Watch,
    rows: list[dict[str, float]],
) -> tuple[str | None, _Judged | None]:
    """Play rounds until the game ends, with a row of the trace for each, after those of an earlier trace.

    The reason, or None if rounds ran out, and the last round as it was judged, if it was.
    """
    last = rows[-1] if rows else dict.fromkeys(("seconds", *_SENT), 0.0)
    before, judged = last["seconds"], None
    wanted = tol  # the exploitability from which on the certificate is looked at
    try:
        for *sent, residual in played:
            row = {"residual": residual} | _measured(sweeps, state, rule) | {"seconds": watch.cpu + before}
            row |= {name: last[name] + more for name, more in zip(_SENT, sent, strict=True)}
            rows.append(last := row)
            judged = None
            if (
                row["residual"] <= tol * ahead
                and row["exploitability"] <= wanted
                and (residual := sweeps.requested(state, tol)) <= tol
            ):
                row["residual"] = residual
                wanted /= 2  # the judge, who decides, measures a little otherwise
                judged = _certify(sweeps, state, rule)
                if judged[1].passes(tol):
                    return f"no response would change anything by more than tol={tol:g}", judged
            if row["residual"] <= tol and not state.total.all():
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
    else:
        exploit = method.exploitability(state.tasks, sweeps.log_price(state))
    capacity = polytope.cluster.capacity
    used, whole = (method.used(state.tasks) * capacity).sum(axis=0), capacity.sum(axis=0)
    return {"exploitability": exploit, "utilization": float((used[whole > 0] / whole[whole > 0]).mean())}


def _tasks(sweeps: Sweeps, state: State) -> Array:
    """Tasks (users, servers), cut back to capacities."""
    polytope = sweeps.method.polytope
    return polytope.allocation(polytope.inside(state.tasks / sweeps.method.gamma))


def _certify(sweeps: Sweeps, state: State, rule: Criterion) -> _Judged:
    """Certify the tasks of a state at the prices that servers last announced."""
    begun, method, tasks = clock.now(), sweeps.method, _tasks(sweeps, state)
    prices = None if math.isinf(rule.alpha) else log_unit_prices(method, state.log_price)
    return tasks, *certify(method.polytope.cluster, tasks, rule, prices), clock.now() - begun
