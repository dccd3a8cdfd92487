"""Orders in which servers respond, and the information on which they respond. Every order is a generator of rounds.

A round is one response of every server; in the asynchronous game, in which servers have their own clocks, it is so on
average. A message is the tasks on one server, sent to another server with common users; it has one number for each
common user.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from numbers import Integral
from typing import Any

import numpy as np

from ..base.errors import DataError
from ..base.names import some
from ..core.game.elastic import cosine, elastic
from ..core.game.rounds import State, Sweeps, compare
from ..model._arrays import Index
from ..model._validate import number
from ..model.cluster import Cluster

#: Over-relaxation: initial factor (`_RELAX`), its largest value (`_MOST_RELAX`), its increase after successive rounds
#: in similar directions (`_INCREASE`), and the factor by which its excess over 1 is multiplied after rounds in opposite
#: directions (`_DECREASE`).
_RELAX, _MOST_RELAX, _INCREASE, _DECREASE = 1.4, 1.8, 0.05, 0.7

ORDERS = ("elastic", "cyclic", "random", "over-relaxed", "jacobi", "asynchronous")
#: How many messages and numbers are sent in a round, and the largest relative change of a response.
Round = tuple[int, int, float]

Outage = tuple[int | str, float, float]

_RULE = "give a loss in [0, 1) and a finite delay and drift >= 0"
_OUTAGE = "an outage is (server, first round, last round), such as (0, 5, 30) or ('server1', 5, 30)"


@dataclass(frozen=True)
class Network:
    r"""Network of the asynchronous game: losses, delays and outages, with times in rounds.

    A message arrives with probability 1 - loss after a delay T, and server i responds with the period :math:`P_i`,

    .. math:: T \sim U[0, \text{delay}], \qquad \log P_i \sim N(0, \text{drift}^2)

    Parameters
    ----------
    loss : float
        Probability that a message is lost, in [0, 1).
    delay : float
        Largest delay of a message, in rounds.
    outages : tuple of (server, first round, last round)
        Intervals in which a server, by name or index from 0, does not respond; its tasks continue to run.
    drift : float
        Standard deviation of the log periods of servers.

    Raises
    ------
    DataError
        A value is out of range, or an outage has another form.

    Source: Khamse-Ashari et al., IEEE TPDS 29(12), 2018 (PF), section 5.2 (arXiv:1712.10114).

    >>> import fairopt as fo
    >>> network = fo.game.Network(loss=0.1, delay=1)
    >>> cluster = fo.Cluster([[2, 2], [1, 2]], [[3, 2], [1, 4]])
    >>> fo.best_response(cluster, 1, order="asynchronous", network=network, rng=0).flagged
    False
    """

    loss: float = 0.0
    delay: float = 0.0
    outages: tuple[Outage, ...] = ()
    drift: float = 0.2

    def __post_init__(self) -> None:
        for name, most in (("loss", 1.0), ("delay", math.inf), ("drift", math.inf)):
            value = number(getattr(self, name), f"{name} of the network", f"a number: {_RULE}")
            if not 0 <= value < most:
                raise DataError(f"{name} of the network is {value:g}: {_RULE}")
            object.__setattr__(self, name, value)
        try:
            object.__setattr__(self, "outages", tuple(_outage(*outage) for outage in self.outages))
        except TypeError:
            raise DataError(f"outages of the network are {self.outages!r}: give a list, and {_OUTAGE}") from None


def _outage(server: Any, first: Any, last: Any) -> Outage:
    if not isinstance(server, str | Integral):
        raise DataError(f"an outage of the network is of server {server!r}, which names none: {_OUTAGE}")
    what = f"a round of the outage of server {server!r} of the network"
    first = number(first, what, f"a number; {_OUTAGE}")
    place = server if isinstance(server, str) else int(server)
    return place, first, number(last, what, f"a number from the first round on; {_OUTAGE}", lambda end: end >= first)


def network_of(value: Any, cluster: Cluster, order: str) -> Network:
    """Return the network of a game on this cluster, with outages by server index; None stands for the default.

    Raises `DataError` for other types, other orders than `asynchronous`, and outages of unknown servers.
    """
    if value is None:
        return Network()
    if not isinstance(value, Network):
        raise DataError(f"network is {value!r}; it must be a fairopt.game.Network, such as Network(loss=0.1, delay=5)")
    if order != "asynchronous":
        raise DataError(f"a network has no effect in order {order!r}: leave it out, or choose order='asynchronous'")
    names = cluster.servers
    places = {known: i for i, name in enumerate(names) for known in (i, name)}
    try:
        return replace(value, outages=tuple((places[server], first, last) for server, first, last in value.outages))
    except KeyError as error:
        raise DataError(
            f"an outage of the network is of server {error}, which the cluster has not: give one of its names "
            f"({some(names, 5)}) or a number from 0 to {len(names) - 1}"
        ) from None


def rounds(
    order: str, sweeps: Sweeps, state: State, rng: np.random.Generator, damping: float | None, network: Network
) -> Iterator[Round]:
    """Play rounds in one of the `ORDERS`, in which every server sends its tasks once to all servers with common users.

    Yields a `Round` for each round, without end: how many messages and numbers are sent, and the largest change.
    In Gauss-Seidel orders each response takes account of all earlier responses; `random` has a new permutation in every
    round. The factor of `over-relaxed` increases while successive rounds have similar directions, and decreases
    otherwise. In `elastic` order servers anticipate the others' responses, and send three numbers per user. In `jacobi`
    order all servers respond simultaneously.
    """
    method, servers = sweeps.method, len(sweeps.method.row)
    uses = np.zeros((servers, len(method.limit)))
    uses[method.server, method.user] = 1
    shared = np.asarray(uses @ uses.T, dtype=np.intp)  # number of common users of two servers
    np.fill_diagonal(shared, 0)
    messages, numbers = int(np.count_nonzero(shared)), int(shared.sum())
    # The default damping is the reciprocal of the largest number of servers of a user, as all of these servers may
    # increase its tasks simultaneously.
    at_once = damping or 1.0 / int(np.diff(method.start).max())
    relax, step = damping or (_RELAX if order == "over-relaxed" else 1.0), np.zeros_like(state.tasks)
    if order == "asynchronous":
        yield from _asynchronous(sweeps, state, rng, damping or min(0.5, at_once), network, shared)
    if order == "elastic":
        edges = servers - 1  # of a tree of all servers, with a message up and one down each edge
        for change, per_user, per_edge in elastic(sweeps, state):
            yield messages + 2 * edges, per_user * numbers + per_edge * edges, change
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
            if turn > 0.5:
                relax = min(relax + _INCREASE, _MOST_RELAX)
            elif turn < 0:
                relax = 1 + _DECREASE * (relax - 1)
        yield messages, numbers, change


def _asynchronous(
    sweeps: Sweeps, state: State, rng: np.random.Generator, part: float, network: Network, shared: Index
) -> Iterator[Round]:
    """Play the asynchronous game: every server responds at its own period, to the latest tasks that it has received.

    Two kinds of events are processed in the order of their times: the clock of a server, at which it responds and sends
    its tasks to all servers with common users, and the arrival of a message. Responses move by the fraction `part`.
    Yields are those of `rounds`; the change is that of a further response of any server at the end of the round.
    """
    method, servers = sweeps.method, len(sweeps.method.row)
    pairs_of = [sweeps.pairs[sweeps.first[i] : sweeps.first[i + 1]] for i in range(servers)]
    known = np.repeat(state.tasks[None, :], servers, axis=0)  # tasks (pairs,) as known to each server
    period = np.exp(network.drift * rng.standard_normal(servers))
    # An event has its time, serial number, server, sender, and the tasks sent; a clock has no sender and sends nothing.
    clock, nothing = -1, np.zeros(0)
    events = [(float(rng.uniform(0, period[i])), i, i, clock, nothing) for i in range(servers)]
    heapq.heapify(events)
    serials = count(servers + 1)
    latest = np.zeros((servers, servers), dtype=np.int64)  # serial number of the latest message, by receiver and sender
    messages, numbers, round_end = 0, 0, 1.0
    while True:
        time, serial, i, sender, tasks = heapq.heappop(events)
        while time > round_end:
            state.total[:] = method.sums(state.tasks)
            yield messages, numbers, sweeps.requested(state)
            messages, numbers, round_end = 0, 0, round_end + 1
        if sender != clock:
            if serial > latest[i, sender]:  # messages may arrive out of order
                known[i, pairs_of[sender]], latest[i, sender] = tasks, serial
            continue
        heapq.heappush(events, (time + float(period[i]), next(serials), i, clock, nothing))
        down = any(i == server and first <= time <= last for server, first, last in network.outages)
        if down or not len(pairs_of[i]):
            continue
        sweeps.respond(i, state._replace(total=method.sums(known[i])), part)
        response = state.tasks[pairs_of[i]]
        known[i, pairs_of[i]] = response
        for j in np.flatnonzero(shared[i]):
            messages, numbers = messages + 1, numbers + int(shared[i, j])
            if rng.random() >= network.loss:
                arrival = time + float(rng.uniform(0, network.delay))
                heapq.heappush(events, (arrival, next(serials), int(j), i, response))
