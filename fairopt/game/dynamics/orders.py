"""In which order servers respond, and what they know when they do. Every order is a generator of rounds.

A round is one response of every server, about: in the asynchronous game servers act on clocks of their own. A message
is one server's column of x, sent to one other server with a user in common; its numbers are those of these users.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...model._arrays import Index
from ..responses._rounds import State, compare
from ..responses.elastic import cosine, elastic
from ..responses.rounds import Sweeps
from .network import Network

ORDERS = ("elastic", "cyclic", "random", "over-relaxed", "jacobi", "asynchronous")
#: What servers tell of a round of elastic responses to a tree of theirs, and hear from it: the largest change, pairs
#: served, three products of steps, the largest step, when the first pair will be empty; how far to jump.
_UP, _DOWN = 7, 1


class Round(NamedTuple):
    """Messages and numbers sent in a round, and its largest change, where one server knows it."""

    messages: int
    numbers: int
    change: float | None = None


def rounds(
    order: str, sweeps: Sweeps, state: State, rng: np.random.Generator, damping: float | None, network: Network
) -> Iterator[Round]:
    """Play rounds in one of the `ORDERS`, in which every server sends its column to all its neighbours once.

    Servers in turn know all earlier moves (Gauss-Seidel), in a new random order every round if it is `random`. The
    factor of `over-relaxed` grows while rounds keep their direction and falls where they turn. In `elastic` order they
    anticipate how the others answer, with three numbers sent per user. In `jacobi` order all move at once.
    """
    method, shared = sweeps.method, common(sweeps)
    servers, messages, numbers = len(method.row), int(np.count_nonzero(shared)), int(shared.sum())
    # 1/d, d being the most servers that a user can use: all of them may make room for it at once.
    at_once = damping or 1.0 / int(np.diff(method.start).max())
    relax, step = damping or (1.4 if order == "over-relaxed" else 1.0), np.zeros_like(state.tasks)
    if order == "asynchronous":
        yield from _asynchronous(sweeps, state, rng, damping or min(0.5, at_once), network, shared)
    if order == "elastic":
        for change, plain in elastic(sweeps, state):
            each, tree = 1 if plain else 3, servers - 1
            yield Round(messages + 2 * tree, each * numbers + (_UP + _DOWN) * tree, change)
    while True:
        before = state.tasks.copy()
        if order == "jacobi":
            seen = state.total.copy()
            change = max(sweeps.respond(i, state._replace(total=seen.copy()), at_once) for i in range(servers))
            state.total[:] = method.sums(state.tasks)
        else:
            change = sweeps.gauss_seidel(state, rng.permutation(servers) if order == "random" else None, relax)
        if order == "over-relaxed" and damping is None:
            turn = cosine(compare(sweeps.game, state, before, step).sum(axis=0))
            relax = min(relax + 0.05, 1.8) if turn > 0.5 else 1 + (0.7 if turn < 0 else 1.0) * (relax - 1)
        yield Round(messages, numbers, change)


def _asynchronous(
    sweeps: Sweeps, state: State, rng: np.random.Generator, part: float, network: Network, shared: Index
) -> Iterator[Round]:
    """Every server acts on its own clock, on totals x_n as received so far."""
    method, servers = sweeps.method, len(sweeps.method.row)
    mine = [sweeps.pairs[sweeps.first[i] : sweeps.first[i + 1]] for i in range(servers)]
    known = np.repeat(state.tasks[None, :], servers, axis=0)  # as each server was told
    period = np.exp(network.drift * rng.standard_normal(servers))
    # Time, a number, server, whose letter (-1: its clock) and the column in it.
    events = [(float(rng.uniform(0, period[i])), i, i, -1, period) for i in range(servers)]
    heapq.heapify(events)
    sent, numbers, end = 0, 0, 1.0
    latest = np.zeros((servers, servers), dtype=np.int64)
    number = servers
    while True:
        time, letter, i, source, column = heapq.heappop(events)
        while time > end:
            state.total[:] = method.sums(state.tasks)
            yield Round(sent, numbers)
            sent, numbers, end = 0, 0, end + 1
        if source >= 0:
            if letter > latest[i, source]:  # a later one may have overtaken it
                known[i, mine[source]], latest[i, source] = column, letter
            continue
        number += 1
        heapq.heappush(events, (time + float(period[i]), number, i, -1, period))
        out = any(i == server and first <= time <= last for server, first, last in network.outages)
        if out or not len(mine[i]):
            continue
        sweeps.respond(i, state._replace(total=method.sums(known[i])), part)
        known[i, mine[i]] = after = state.tasks[mine[i]]
        for j in np.flatnonzero(shared[i]):
            sent, numbers = sent + 1, numbers + int(shared[i, j])
            if rng.random() < network.loss:
                continue
            number += 1
            heapq.heappush(events, (time + float(rng.uniform(0, network.delay)), number, int(j), i, after))


def common(sweeps: Sweeps) -> Index:
    """Number of users that two servers have in common, (servers, servers)."""
    method = sweeps.method
    uses = np.zeros((len(method.row), len(method.limit)))
    uses[method.server, method.polytope.pair_user] = 1
    shared = np.asarray(uses @ uses.T, dtype=np.intp)
    np.fill_diagonal(shared, 0)
    return shared
