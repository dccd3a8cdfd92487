"""`Network`: what happens to messages and servers in the asynchronous game."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

from ...errors import DataError
from ...model._names import some
from ...model._validate import number
from ...model.cluster import Cluster

Outage = tuple[int | str, float, float]

_RULE = "give a loss in [0, 1) and a finite delay and drift >= 0"
_OUTAGE = "an outage is (server, first round, last round), such as (0, 5, 30) or ('server1', 5, 30)"


@dataclass(frozen=True)
class Network:
    """Network of the asynchronous game: losses, delays and outages (PF section 5.2), times in rounds.

    Parameters
    ----------
    loss : probability that a message never arrives
    delay : messages take a uniformly random time up to this
    outages : (server, first round, last round) in which a server, by name or number from 0, stands still: it keeps
        serving what it serves
    drift : spread (log-normal) of the servers' clocks around one response per round

    Raises
    ------
    DataError
    """

    loss: float = 0.0
    delay: float = 0.0
    outages: tuple[Outage, ...] = ()
    drift: float = 0.2

    def __post_init__(self) -> None:
        for name, most in (("loss", 1.0), ("delay", math.inf), ("drift", math.inf)):
            what, good = f"{name} of the network", partial(_below, most)
            object.__setattr__(self, name, number(getattr(self, name), what, f"a number: {_RULE}", good))
        try:
            outages = tuple(_outage(*outage) for outage in self.outages)
        except TypeError:
            raise DataError(f"outages of the network are {self.outages!r}: give a list, and {_OUTAGE}") from None
        object.__setattr__(self, "outages", outages)


def _below(most: float, value: float) -> bool:
    return 0 <= value < most


def _outage(server: Any, first: Any, last: Any) -> Outage:
    if not isinstance(server, str | Integral):
        raise DataError(f"an outage of the network is of server {server!r}, which names none: {_OUTAGE}")
    what = f"a round of the outage of server {server!r} of the network"
    first = number(first, what, f"a number; {_OUTAGE}")
    place = server if isinstance(server, str) else int(server)
    return place, first, number(last, what, f"a number from the first round on; {_OUTAGE}", lambda end: end >= first)


def network_of(value: Any, cluster: Cluster, order: str) -> Network:
    """Check the network of a game on this cluster, only of asynchronous order; outages by server number."""
    if value is None:
        return Network()
    if not isinstance(value, Network):
        raise DataError(f"network is {value!r}; it must be a fairopt.game.Network, such as Network(loss=0.1, delay=5)")
    if order != "asynchronous":
        raise DataError(f"a network plays no part in order {order!r}: leave it out, or choose order='asynchronous'")
    names = cluster.servers
    places = {known: i for i, name in enumerate(names) for known in (i, name)}
    for server, _, _ in value.outages:
        if server not in places:
            raise DataError(
                f"an outage of the network is of server {server!r}, which the cluster has not: give one of its names "
                f"({some(names, 5)}) or a number from 0 to {len(names) - 1}"
            )
    return replace(value, outages=tuple((places[server], first, last) for server, first, last in value.outages))
