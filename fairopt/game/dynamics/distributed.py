"""The distributed game as it would run: servers respond to each other until nobody would change anything."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from ... import _clock
from ..._libraries import pd
from ...certificates import ByCriterion, Certificate, certify, exploitability
from ...engines.reference import solvers
from ...errors import DataError, NotConverged
from ...model import _validate
from ...model._arrays import Array, deferred
from ...model.cluster import Cluster, expected
from ...model.criterion import Criterion, criterion, virtual_share_per_task
from ...model.polytope import Polytope
from ...model.problem import Problem
from ...result.allocation import Allocation, Stats, Trace, idle
from ..model.equilibrium_system import EquilibriumSystem, log_unit_prices
from ..model.index import index_of_answer
from ..reference import CvxpySweeps
from ..responses._rounds import State
from ..responses.rounds import Sweeps
from .arguments import alpha_of, choice_of, damping_of, generator_of, rounds_of
from .network import Network, network_of
from .orders import ORDERS, Round
from .starts import continued, fair, given, of_pairs

#: Servers miss a capacity by at most this part of the tolerance.
_PART = 0.01
#: Elastic rounds ask for this much more than plain ones would, at most about.
_AHEAD = 10.0
#: What was sent so far: columns of a trace.
_SENT = ("messages", "numbers")
_INTERRUPTED = "interrupted: hand this allocation back as start to go on"
_LARGER = "take a larger one, or AlphaPFVDS(0) for alpha = 0"


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
    place of one, and all servers share a handful of sums each round, which decide on jumps and other phases. The
    asynchronous game is one of plain responses: elastic ones need rounds (docs/algorithms/best-responses.md).

    Proved: where elastic rounds stand still is an equilibrium; in a game in which cyclic order comes to one from every
    start elastic order does, too, after a number of rounds that nothing bounds; and at alpha = 1 cyclic order does, as
    there is a potential. At other alphas nothing bounds the rounds, and cyclic order may cycle: seen with zero demands
    and alpha >= 4 (docs/algorithms/best-responses.md), where elastic order, whose later phases are damped, and
    `damping=0.5` arrive. Observed only: elsewhere rounds were not seen to fail, but can be thousands; elastic order
    takes fewer (docs/alpha.md has numbers).
    Source: PF section 5.2.
    """
    expected(cluster)
    tol, damping = _validate.tolerance(tol), damping_of(damping)
    alpha = alpha_of(alpha, tol)
    max_rounds, rng = rounds_of(max_rounds), generator_of(rng)
    server_solver = choice_of(server_solver, "server_solver", ("native", "cvxpy"))
    plain = damping is not None or server_solver != "native"
    order = choice_of(order or ("cyclic" if plain else "elastic"), "order", tuple(ORDERS))
    if plain and order == "elastic":
        raise DataError(
            "order 'elastic' has no damping, and servers of server_solver='native' only: leave them out, or choose "
            "order='cyclic'"
        )
    network = network_of(network, cluster, order)
    watch = _clock.Watch()
    tasks = None if start is None else given(cluster, start)
    kept = continued(start, cluster, alpha, order)
    rule = criterion(cluster, virtual_share_per_task(cluster), alpha, "game")
    polytope = Polytope(cluster, rule.limits(cluster))
    if not len(polytope.users):
        nothing = _certified(cluster, rule, np.zeros(cluster.shape[:2]), None)
        return _wrap(rule, nothing, tol, Trace(_frame([]), "nobody can run anything", order), watch, server_solver)
    method = EquilibriumSystem(polytope, rule.weight[polytope.users], min(alpha, 1e6))
    sweeps = Sweeps.of(method, alpha, _PART * tol) if server_solver == "native" else CvxpySweeps.declared(method, rule)
    state = sweeps.start(fair(polytope, method) if tasks is None else of_pairs(polytope, method, tasks))
    rows = [] if kept is None else kept.frame.reset_index(drop=True).to_dict("records")
    game = _Game(sweeps, state, rule, tol, watch, rows, _AHEAD if order == "elastic" else 1.0)
    rounds = ORDERS[order](sweeps, state, rng, damping, network)
    reason = game.play(_shown(rounds, max_rounds, progress)) or (
        f"max_rounds={max_rounds} reached: allow more, start from this allocation, or try another order or damping"
    )
    if (certified := game.certified) is None:
        certified = _certify(sweeps, state, rule)
        if certified.certificate.passes(tol) and reason != _INTERRUPTED:
            reason = f"max_rounds={max_rounds} reached, where the certificate passes"
    found = _wrap(rule, certified, tol, Trace(_frame(game.rows), reason, order), watch, server_solver)
    if throw and reason != _INTERRUPTED and found.flagged:
        raise NotConverged(f"best response for alpha={alpha:g}, order {order!r}: {found.trace!r}; {found.certificate}")
    return found


@dataclass
class _Game:
    """A game being played, with a row of the trace for each round, after those of an earlier trace."""

    sweeps: Sweeps
    state: State
    rule: Criterion
    tol: float
    watch: _clock.Watch
    rows: list[dict[str, float]]
    ahead: float
    #: Of the last round, if it was looked at.
    certified: _Judged | None = None

    def __post_init__(self) -> None:
        last = self.rows[-1] if self.rows else dict.fromkeys(("seconds", *_SENT), 0.0)
        self._offset, self._sent = last["seconds"], np.array([last[name] for name in _SENT])
        #: The exploitability from which on the certificate is looked at.
        self._wanted = self.tol

    def play(self, rounds: Iterator[Round]) -> str | None:
        """Play rounds until the game ends; the reason, or None if rounds ran out."""
        try:
            for each in rounds:
                if (ended := self._measure(each)) is not None:
                    return ended
        except KeyboardInterrupt:
            return _INTERRUPTED
        return None

    def _measure(self, played: Round) -> str | None:
        """Record the round that was played; the reason why the game ends with it, if it does."""
        residual = self.sweeps.requested(self.state) if played.change is None else played.change
        self._sent += played.messages, played.numbers
        row = {"residual": residual} | _measured(self.sweeps, self.state, self.rule)
        row |= {"seconds": self.watch.cpu + self._offset} | dict(zip(_SENT, self._sent.tolist(), strict=True))
        self.rows.append(row)
        self.certified = None
        if (
            row["residual"] <= self.tol * self.ahead
            and row["exploitability"] <= self._wanted
            and (residual := self.sweeps.requested(self.state, self.tol)) <= self.tol
        ):
            row["residual"] = residual
            self._wanted /= 2  # the judge, who decides, measures a little otherwise
            self.certified = _certify(self.sweeps, self.state, self.rule)
            if self.certified.certificate.passes(self.tol):
                return f"no response would change anything by more than tol={self.tol:g}"
        if row["residual"] <= self.tol and not self.state.total.all():
            polytope = self.sweeps.method.polytope
            user = polytope.cluster.users[int(polytope.users[int(self.state.total.argmin())])]
            return f"user {user!r} has fewer tasks than doubles can hold, as alpha is so small: {_LARGER}"
        return None


def _shown(rounds: Iterator[Round], most: int, progress: bool) -> Iterator[Round]:
    first = islice(rounds, most)
    if not progress:
        return first
    from ..._progress import tqdm

    return iter(tqdm(first, total=most, desc="best response", unit="round"))


def _measured(sweeps: Sweeps, state: State, rule: Criterion) -> dict[str, float]:
    method = sweeps.method
    polytope = method.polytope
    if math.isinf(rule.alpha):
        tasks = polytope.allocation(polytope.inside(state.tasks / method.gamma))
        exploit = float(exploitability(polytope, tasks, rule)[0].max())
    else:
        with np.errstate(all="ignore"):
            exploit = sweeps.exploitability(state)
    capacity = polytope.cluster.capacity
    used = (method.used(state.tasks) * capacity).sum(axis=0)
    whole = capacity.sum(axis=0)
    return {
        "exploitability": exploit,
        "utilization": float((used[whole > 0] / whole[whole > 0]).mean()),
    }


def _frame(rows: list[dict[str, float]]) -> pd.DataFrame:
    columns = ["residual", "exploitability", "utilization", "seconds", *_SENT]
    return pd.DataFrame(rows, columns=columns, index=pd.RangeIndex(1, len(rows) + 1, name="round"))


@dataclass(frozen=True)
class _Judged:
    """Tasks and their certificate."""

    cluster: Cluster
    tasks: Array
    certificate: Certificate
    prices: Array | None
    seconds: float


def _certify(sweeps: Sweeps, state: State, rule: Criterion) -> _Judged:
    """Certify the tasks of a state at the prices that servers last announced."""
    method, polytope, alpha = sweeps.method, sweeps.method.polytope, rule.alpha
    tasks = polytope.allocation(polytope.inside(state.tasks / method.gamma))
    prices = None if math.isinf(alpha) else log_unit_prices(method, state.log_price)
    return _certified(polytope.cluster, rule, tasks, prices)


def _certified(cluster: Cluster, rule: Criterion, tasks: Array, prices: Array | None) -> _Judged:
    begun = _clock.now()
    certificate, proof = certify(cluster, tasks, rule, prices)
    return _Judged(cluster, tasks, certificate, proof, _clock.now() - begun)


def _wrap(
    rule: Criterion, certified: _Judged, tol: float, trace: Trace, watch: _clock.Watch, solver: str
) -> Allocation:
    name = "PS-DSF" if math.isinf(rule.alpha) else f"alphaPF-VDS(alpha={rule.alpha:g})"
    cluster, tasks, proof = certified.cluster, certified.tasks, certified.prices
    seconds = watch.seconds - certified.seconds
    stats = Stats(
        "best-response", solver, trace.reason, trace.rounds, 0.0, 0.0, seconds, certified.seconds,
        dict(solvers.versions()), watch.loops,
    )  # fmt: skip
    notes = idle([cluster.users[n] for n in np.flatnonzero(~cluster.usable.any(axis=1))])
    index = deferred(partial(index_of_answer, Problem(cluster, rule), tasks, proof))
    return Allocation(
        name,
        cluster,
        tasks,
        certified.certificate,
        rule,
        proof,
        stats,
        notes,
        tol,
        ByCriterion(rule),
        trace,
        index=index,
    )
