"""Simulation engine: the event loop with the rules of a policy, compiled or interpreted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import clock
from ..base.errors import DataError
from ..base.loops import Loop
from .loop import handed, variant
from .loop import tables as at
from .loop.rounds import FINISHED, GROW, advance
from .loop.tables import RUNNING, Tables, first_of, raised
from .policies import Policy, rule
from .policies._base import beyond
from .setup import NEAR, Setup, Thrashing, grown
from .workload import NEVER, Whole, Workload

#: CPU seconds after which the compiled loop replaces the interpreted loop: about the time of compilation. Simulations
#: of few tasks can take so long if every decision inspects thousands of nearly identical servers.
PATIENCE = 10.0


class State:
    """State of a simulation, read-only for policies.

    Shares are compared between *queues*, one per user or a single one (`Policy.queue`). Groups are in the order of
    (queue, arrival, input). Capacities and demands are in the amounts of the policy (`Policy.room`), by default amounts
    of resources.

    Attributes
    ----------
    workload
    time : microseconds
    capacity, free : (servers, amounts); `free` is -1 for unavailable servers
    pool : (amounts,), total over all servers
    demand : (groups, amounts), per task
    cost : (groups, costs), charged to the queue per task (`Policy.cost`)
    total : (costs,), total of every cost
    queue, placement : (groups,), indices of the queue of every group, and of its row of `eligible`
    weight : (queues,)
    allocated : (queues, costs), the costs of running tasks
    running, waiting : (queues,), numbers of running and of waiting tasks
    next_cost : (queues, costs), costs of the first waiting task, 0 if no task waits
    since : (queues,), time at which the queue became active (had running or waiting tasks); -1 if it is idle
    placed : (queues, servers, amounts), amounts of running tasks, for policies with `Policy.per_server`
    started : (servers,), numbers of tasks started at this instant
    """

    def __init__(self, workload: Workload, tables: Tables) -> None:
        self.workload, self._tables = workload, tables
        self.queue, self.placement = tables.groups[:, at.QUEUE], tables.groups[:, at.PLACEMENT]
        self.running, self.waiting = tables.queues[:, at.RUNS], tables.queues[:, at.WAITS]
        self.since = tables.queues[:, at.SINCE]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._tables, name)

    @property
    def time(self) -> int:
        return int(self._tables.n[at.NOW])

    @property
    def started(self) -> Whole:
        runs = self._tables.runs[: self._tables.n[at.STARTED]]
        now = np.searchsorted(runs[:, at.START], self._tables.n[at.NOW])
        return np.bincount(runs[now:, at.SERVER], minlength=len(self._tables.capacity))

    @property
    def next_cost(self) -> Whole:
        first = self._first()
        return np.where(first[:, None] >= 0, self._tables.cost[first], 0)

    def _first(self) -> Whole:
        return np.array([first_of.py_func(self._tables, q) for q in range(len(self.running))], dtype=np.int64)


#: Callback with the number of completed tasks.
Progress = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of tasks in the order of their starts, as arrays (runs,).

    A run has the indices of its task and server, its start and end in microseconds (`NEVER` if it has not ended), and
    its outcome `how` (`loop.tables`). `time` is the end of the simulation in microseconds, `instants` the number of
    instants with events, and `interrupted` is True if Ctrl-C ended the simulation.
    """

    task: Whole
    server: Whole
    start: Whole
    end: Whole
    how: NDArray[np.int8]
    time: int
    instants: int
    interrupted: bool = False

    def same(self, other: Runs) -> bool:
        """True if two simulations agree event by event, whether or not they were interrupted."""
        mine, others = (
            [getattr(one, field.name) for field in fields(one) if field.name != "interrupted"] for one in (self, other)
        )
        return all(np.array_equal(a, b) for a, b in zip(mine, others, strict=True))


def knows(policy: Policy) -> bool:
    """True if all steps of a policy are rules, so that they can be compiled."""
    kind = type(policy)
    return all(isinstance(getattr(kind, name), rule) for name in ("share", "score", "value", "limit"))


def run(
    setup: Setup,
    until: int = NEVER,
    progress: Progress | None = None,
    thrashing: Thrashing | None = None,
    compiled: bool = True,
    near: int = NEAR,
    plainly: int = 0,
) -> Runs:
    """Simulate up to and including `until` [us], or until Ctrl-C; `progress` gets the number of completed tasks.

    All servers of a placement are scanned if there are at most `near` or if the policy has methods; otherwise an index
    is used. With `compiled` the loop is interpreted for about `plainly` starts of tasks, or for `PATIENCE` CPU seconds,
    and then compiled; otherwise it is interpreted throughout.
    """
    policy = setup.policy
    t = setup.tables(thrashing, near if knows(policy) else len(setup.capacity))
    parts = _rules(setup) if knows(policy) else _methods(setup, t)
    now = compiled and plainly <= 0
    loop = handed(advance, parts, now)
    interrupted, begun = False, clock.cpu()
    try:
        with np.errstate(all="ignore"):
            # The compiled loop returns after 20,000 instants, the interpreted loop after 256, so that the clock and
            # interrupts are checked.
            while (why := loop(t, until, (20_000, 256)[not now])) != FINISHED:
                if why == GROW:
                    t = grown(t, int(t.n[at.STARTED] + 2 * (t.n[at.OPEN] + t.n[at.ENDS])))
                if progress is not None:
                    progress(int(t.n[at.ENDED]))
                if compiled and not now and (t.n[at.STARTED] >= plainly or clock.cpu() - begun > PATIENCE):
                    loop, now = handed(advance, parts, True), True  # continues on the same tables
    except KeyboardInterrupt:
        interrupted = True
    except AttributeError as error:
        if not isinstance(error.obj, Tables):
            raise
        raise DataError(beyond(str(policy), str(error.name))) from None
    run = t.runs[: t.n[at.STARTED]].T
    end, how = run[at.END].copy(), run[at.HOW].astype(np.int8)
    end[how == RUNNING] = NEVER
    stopped = until if until < NEVER and not interrupted else int(t.n[at.NOW])
    return Runs(
        run[at.TASK].copy(), run[at.SERVER].copy(), run[at.START].copy(), end, how,
        stopped, int(t.n[at.INSTANTS]), interrupted,
    )  # fmt: skip


def compiled_by(setup: Setup) -> Loop:
    """Compiled loop of a policy of rules, shared by policies with equal rules."""
    return variant(advance, _rules(setup))


def _rules(setup: Setup) -> dict[str, Any]:
    """Functions and options that the loop takes from a policy of rules."""
    policy = setup.policy
    kind: Any = type(policy)
    return {
        "share": kind.share.loop, "score": (kind.value if policy.pairs else kind.score).loop, "limit": kind.limit.loop,
        "PAIRS": policy.pairs, "FURTHEST": policy.competing < 1, "LIMITED": policy.limits, "ANEW": False,
        "RANKED": not policy.pairs, "INDEXED": not policy.pairs or policy.index != "", "RATIOS": setup.by_ratios,
        "GANGS": policy.gangs,
    }  # fmt: skip


def _methods(setup: Setup, t: Tables) -> dict[str, Any]:
    """Functions and options that the loop takes from a policy with methods, which use the whole state."""
    policy, state, held = setup.policy, State(setup.workload, t), np.zeros(len(setup.weight))
    of_servers = policy.value if policy.pairs else policy.score

    def scan(t: Tables, g: int, servers: Whole) -> tuple[int, float]:
        room = (t.free[servers] >= t.demand[g]).all(axis=1) & t.eligible[t.groups[g, at.PLACEMENT], servers]
        fitting = np.sort(servers[room])
        if not len(fitting):
            return -1, np.inf
        values = of_servers(state, g, fitting)
        k = 0 if values is None else int(np.argmin(values))
        return int(fitting[k]), 0.0 if values is None else values[k]

    def anew(t: Tables) -> None:
        held[:] = policy.share(state)
        if policy.limits:
            t.limit[:] = policy.limit(state)
        leaves = len(t.rank) // 2
        ranks = np.where(state.waiting > 0, -held, -np.inf)
        for q in np.flatnonzero(ranks != t.rank[leaves : leaves + len(ranks), 0]).tolist():
            t.rank[leaves + q, 0] = ranks[q]
            raised.py_func(t.rank, 0, leaves + q)

    return {
        "share": lambda t, q: held[q], "scan": scan, "anew": anew, "PAIRS": policy.pairs,
        "FURTHEST": policy.competing < 1,
        "LIMITED": policy.limits, "ANEW": True, "RANKED": False, "INDEXED": not policy.pairs, "RATIOS": False,
        "GANGS": policy.gangs,
    }  # fmt: skip
