"""The distributed game as it would run: servers respond to each other until nobody would change anything."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..allocation import Allocation, Stats
from ..certificates import Certificate, exploitability, judge
from ..cluster import Cluster
from ..criteria import Criterion, criterion
from ..engines import convex
from ..errors import DataError, NotConverged
from ..polytope import Polytope
from .cvxpy_sweeps import CvxpySweeps
from .equations import Equations
from .equilibrium import unit_prices
from .orders import ORDERS, Network
from .sweeps import State, Sweeps
from .trace import Trace

Array = NDArray[np.float64]

#: How far servers move towards their response by default; the other orders: see `damping`.
_DAMPING = {"cyclic": 1.0, "random": 1.0, "over-relaxed": 1.4}


def best_response(
    cluster: Cluster,
    alpha: float,
    *,
    order: str = "cyclic",
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
    alpha : in (0, infinity]; infinity is PS-DSF. For alpha = 0, where servers do not influence each other, use
        `AlphaPFVDS(0)`
    order : `cyclic` or `random` (Gauss-Seidel), `over-relaxed`, `jacobi` (all at once), `asynchronous`
    damping : how much of the way to its response a server moves, in (0, 2); default 1, and 1.4 over-relaxed; for
        `jacobi` and `asynchronous` one part in the most servers that a user can use (at most a half), as all of them
        may make room for the same user at once. Slow, and long delays on dense clusters need less still
    tol : stop when the residual (the largest change that a response would still make, relative to the user's tasks)
        and the exploitability are at most this
    start : an allocation, perhaps one that was interrupted (its trace is continued), or tasks (users, servers).
        Default: what users would take, softly, if all prices were equal
    rng : seed or generator of random orders and of the asynchronous network
    network : what happens to messages, for `asynchronous`
    server_solver : `native`, or `cvxpy` for the same problem as it is declared
    throw : False: return a flagged allocation instead of raising when `max_rounds` are not enough
    progress : show a progress bar

    Returns
    -------
    Allocation
        with its `trace`; interrupted (Ctrl-C), it is flagged and can be handed back as `start`.

    Raises
    ------
    DataError, NotConverged

    Convergence is observed, not proved: cyclic and random orders were never seen to fail for finite alpha, but can take
    thousands of rounds (docs/game.md has numbers). Source: PF section 5.2.
    """
    _check(alpha, order, damping, tol, max_rounds, server_solver)
    begun = time.perf_counter()
    with np.errstate(divide="ignore"):
        rule = criterion(cluster, 1 / cluster.gamma, alpha, "game")
    polytope = Polytope(cluster, rule.limits(cluster))
    rng = np.random.default_rng(rng)
    kept = start.trace.frame if isinstance(start, Allocation) and start.trace is not None else None
    if not len(polytope.users):
        empty = Trace(_frame([]), "nobody can run anything")
        return _wrap(cluster, rule, np.zeros(cluster.shape[:2]), None, tol, empty, begun, server_solver)
    method = Equations(polytope, rule.weight[polytope.users], min(alpha, 1e6))
    sweeps = Sweeps.of(method, alpha) if server_solver == "native" else CvxpySweeps.declared(method, rule)
    tasks = _fair(polytope, method) if start is None else _given(polytope, method, start)
    state = sweeps.start(tasks)
    if damping is None:
        damping = _DAMPING.get(order, min(0.5, 1.0 / int(np.diff(method.start).max())))
    rows: list[dict[str, float]] = [] if kept is None else kept.reset_index(drop=True).to_dict("records")
    reason = f"max_rounds={max_rounds} reached: allow more, start from this allocation, or try another order or damping"
    offset, sent = (rows[-1]["seconds"], rows[-1]["messages"]) if rows else (0.0, 0.0)
    try:
        for messages in _shown(ORDERS[order](sweeps, state, rng, damping, network or Network()), max_rounds, progress):
            row = _measured(sweeps, state, rule, time.perf_counter() - begun + offset, messages + sent)
            rows.append(row)
            if _ended(row, tol):
                reason = f"no response would change anything by more than tol={tol:g}"
                break
    except KeyboardInterrupt:
        reason = "interrupted: hand this allocation back as start to go on"
        throw = False
    trace = Trace(_frame(rows), reason)
    tasks = polytope.allocation(polytope.inside(state.tasks / method.gamma))
    prices = None if math.isinf(alpha) else unit_prices(polytope, method, state.tasks, state.log_price, alpha)
    found = _wrap(cluster, rule, tasks, prices, tol, trace, begun, server_solver)
    if throw and not (rows and _ended(rows[-1], tol)):
        raise NotConverged(f"best response for alpha={alpha:g}, order {order!r}: {trace!r}")
    return found


def _ended(row: dict[str, float], tol: float) -> bool:
    """Both what responses ask for and what prices leave open are small: the certificate will agree."""
    return row["residual"] <= tol and row["exploitability"] <= tol


def _check(alpha: float, order: str, damping: float | None, tol: float, max_rounds: int, server_solver: str) -> None:
    if not (isinstance(alpha, int | float) and alpha > 0):
        raise DataError(f"alpha is {alpha!r}; it must be > 0, perhaps infinite. For alpha = 0 use AlphaPFVDS(0)")
    if order not in ORDERS:
        raise DataError(f"order {order!r} is not one of {', '.join(ORDERS)}; choose one of them")
    if damping is not None and not 0 < damping < 2:
        raise DataError(f"damping is {damping}; it must be between 0 (stand still) and 2, 1 for the response itself")
    if not (tol > 0 and math.isfinite(tol)):
        raise DataError(f"tol is {tol}; it must be a number > 0, such as 1e-6")
    if max_rounds < 1:
        raise DataError(f"max_rounds is {max_rounds}; it must be at least 1")
    if server_solver not in ("native", "cvxpy"):
        raise DataError(f"server_solver {server_solver!r}: choose 'native' or 'cvxpy'")


def _fair(polytope: Polytope, method: Equations) -> Array:
    """What users would take, softly, if all prices were equal: tasks of the pairs."""
    return np.asarray(polytope.inside(method.begin(0.3).tasks / method.gamma) * method.gamma)


def _given(polytope: Polytope, method: Equations, start: Allocation | Array) -> Array:
    """Tasks of the pairs to start from, cut back to what fits."""
    tasks = np.asarray(start.tasks if isinstance(start, Allocation) else start, dtype=float)
    if tasks.shape != polytope.cluster.shape[:2] or not np.isfinite(tasks).all() or (tasks < 0).any():
        raise DataError(
            f"start must be tasks >= 0 of shape {polytope.cluster.shape[:2]} (users, servers); got {tasks.shape}"
        )
    return np.asarray(polytope.inside(polytope.fractions(tasks)) * method.gamma)


def _shown(rounds: Iterator[int], most: int, progress: bool) -> Iterator[int]:
    if progress:
        from .._progress import tqdm

        yield from tqdm((next(rounds) for _ in range(most)), total=most, desc="best response", unit="round")
    else:
        for _ in range(most):
            yield next(rounds)


def _measured(sweeps: Sweeps, state: State, rule: Criterion, seconds: float, messages: float) -> dict[str, float]:
    method = sweeps.method
    polytope = method.polytope
    if math.isinf(rule.alpha):
        tasks = polytope.allocation(polytope.inside(state.tasks / method.gamma))
        exploit = float(exploitability(polytope, tasks, rule)[0].max())
    else:
        with np.errstate(all="ignore"):
            exploit = sweeps.found(state, 0).error
    capacity = polytope.cluster.capacity
    used = (method.used(state.tasks) * capacity).sum(axis=0)
    whole = capacity.sum(axis=0)
    return {
        "residual": sweeps.asked(state),
        "exploitability": exploit,
        "utilization": float((used[whole > 0] / whole[whole > 0]).mean()),
        "seconds": seconds,
        "messages": float(messages),
    }


def _frame(rows: list[dict[str, float]]) -> pd.DataFrame:
    columns = ["residual", "exploitability", "utilization", "seconds", "messages"]
    return pd.DataFrame(rows, columns=columns, index=pd.RangeIndex(1, len(rows) + 1, name="round"))


def _wrap(
    cluster: Cluster,
    rule: Criterion,
    tasks: Array,
    prices: Array | None,
    tol: float,
    trace: Trace,
    begun: float,
    solver: str,
) -> Allocation:
    name = "PS-DSF" if math.isinf(rule.alpha) else f"alphaPF-VDS(alpha={rule.alpha:g})"
    seconds = time.perf_counter() - begun
    certificate, proof = judge(cluster, tasks, rule, prices)
    stats = Stats(
        "best-response", solver, trace.reason, trace.rounds, 0.0, 0.0, seconds,
        time.perf_counter() - begun - seconds, dict(convex.versions()),
    )  # fmt: skip

    def certify(seen: Cluster, given: Array, hint: Array | None) -> tuple[Certificate, Array | None]:
        return judge(seen, given, rule, hint)

    for array in (tasks, proof):
        if array is not None:
            array.setflags(write=False)
    return Allocation(name, cluster, tasks, certificate, rule, proof, stats, (), tol, certify, trace)
