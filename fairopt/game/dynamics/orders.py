"""In which order servers respond, and what they know when they do. Every order is a generator of rounds.

A round is one response of every server, about: in the asynchronous game servers act on clocks of their own. Each
round yields the number of messages so far (one server's column of x, sent to one other server with a user in common).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..responses.rounds import State, Sweeps
from .network import Network

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def cyclic(sweeps: Sweeps, state: State, rng: np.random.Generator, damping: float, network: Network) -> Iterator[int]:
    """Gauss-Seidel: servers in turn, each knowing all that came before."""
    sent, each = 0, int(neighbours(sweeps).sum())
    while True:
        sweeps.gauss_seidel(state, None, damping)
        sent += each
        yield sent


def random(sweeps: Sweeps, state: State, rng: np.random.Generator, damping: float, network: Network) -> Iterator[int]:
    """Gauss-Seidel in a new random order every round."""
    sent, each = 0, int(neighbours(sweeps).sum())
    while True:
        sweeps.gauss_seidel(state, rng.permutation(len(sweeps.method.row)), damping)
        sent += each
        yield sent


def jacobi(sweeps: Sweeps, state: State, rng: np.random.Generator, damping: float, network: Network) -> Iterator[int]:
    """All servers at once, each moving a part of the way."""
    sent, each = 0, int(neighbours(sweeps).sum())
    while True:
        sweeps.jacobi(state, damping)
        sent += each
        yield sent


def asynchronous(
    sweeps: Sweeps, state: State, rng: np.random.Generator, damping: float, network: Network
) -> Iterator[int]:
    """Every server acts on its own clock, on totals x_n as its messages have told it so far."""
    method, near = sweeps.method, neighbours(sweeps)
    servers, user = len(method.row), method.polytope.pair_user
    mine = [sweeps.pairs[sweeps.first[i] : sweeps.first[i + 1]] for i in range(servers)]
    believed = np.repeat(state.total[None, :], servers, axis=0)
    informed = [[state.tasks[pairs].copy() for pairs in mine] for _ in range(servers)]  # told[i][j]: column of j, to i
    period = np.exp(network.drift * rng.standard_normal(servers))
    events: list[tuple[float, int, int, int, int]] = [
        (float(rng.uniform(0, period[i])), i, i, -1, 0) for i in range(servers)
    ]
    heapq.heapify(events)
    letters: dict[int, Array] = {}
    written, sent, end = 0, 0, 1.0
    latest = np.zeros((servers, servers), dtype=np.int64)
    number = servers
    while True:
        time, _, i, source, letter = heapq.heappop(events)
        while time > end:
            end += 1
            yield sent
        if source >= 0:
            column = letters.pop(letter)
            if letter > latest[i, source]:  # a later one may have overtaken it
                np.add.at(believed[i], user[mine[source]], column - informed[i][source])
                informed[i][source], latest[i, source] = column, letter
            continue
        number += 1
        heapq.heappush(events, (time + float(period[i]), number, i, -1, 0))
        if network.out(i, time) or not len(mine[i]):
            continue
        before = state.tasks[mine[i]].copy()
        own = State(state.tasks, np.maximum(believed[i], 0.0), state.log_price)
        sweeps.respond(i, own, damping)
        change = state.tasks[mine[i]] - before
        believed[i, user[mine[i]]] += change
        np.add.at(state.total, user[mine[i]], change)
        for j in np.flatnonzero(near[i]):
            sent += 1
            if rng.random() < network.loss:
                continue
            written += 1
            number += 1
            letters[written] = state.tasks[mine[i]].copy()
            heapq.heappush(events, (time + float(rng.uniform(0, network.delay)), number, int(j), i, written))


def neighbours(sweeps: Sweeps) -> NDArray[np.bool_]:
    """(servers, servers): which pairs of servers have a user in common."""
    method = sweeps.method
    uses = np.zeros((len(method.row), len(method.limit)), dtype=np.float32)
    uses[method.server, method.polytope.pair_user] = 1
    near = uses @ uses.T > 0
    np.fill_diagonal(near, False)
    return near


ORDERS = {"cyclic": cyclic, "random": random, "jacobi": jacobi, "over-relaxed": cyclic, "asynchronous": asynchronous}
