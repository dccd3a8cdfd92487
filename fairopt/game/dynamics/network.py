"""`Network`: what happens to messages and servers in the asynchronous game."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from ...errors import DataError
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
        for name in ("loss", "delay", "drift"):
            object.__setattr__(self, name, number(getattr(self, name), f"{name} of the network", f"a number: {_RULE}"))
        if not (0 <= self.loss < 1 and 0 <= self.delay < math.inf and 0 <= self.drift < math.inf):
            raise DataError(f"network with loss {self.loss:g}, delay {self.delay:g}, drift {self.drift:g}: {_RULE}")
        object.__setattr__(self, "outages", _outages(self.outages))

    def on(self, cluster: Cluster) -> Network:
        """The same network with outages by server number in a cluster."""
        return replace(self, outages=tuple((_place(i, cluster), first, last) for i, first, last in self.outages))

    def out(self, server: int, time: float) -> bool:
        """True if a server, by number, is out at this time."""
        return any(server == i and first <= time <= last for i, first, last in self.outages)


def network_of(value: Any, cluster: Cluster, order: str) -> Network:
    """Check the network of a game on this cluster; only the asynchronous order has one."""
    if value is None:
        return Network()
    if not isinstance(value, Network):
        raise DataError(f"network is {value!r}; it must be a fairopt.game.Network, such as Network(loss=0.1, delay=5)")
    if order != "asynchronous":
        raise DataError(f"a network plays no part in order {order!r}: leave it out, or choose order='asynchronous'")
    return value.on(cluster)


def _outages(given: Any) -> tuple[Outage, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DataError(f"outages is {given!r}; it must be a list of outages, and {_OUTAGE}")
    return tuple(_outage(one) for one in given)


def _outage(given: Any) -> Outage:
    if isinstance(given, str) or not isinstance(given, Iterable) or len(parts := tuple(given)) != 3:
        raise DataError(f"outage {given!r} of the network: {_OUTAGE}")
    server: Any = parts[0]
    if isinstance(server, bool) or not isinstance(server, str | Integral):
        raise DataError(f"outage {given!r} of the network names no server: {_OUTAGE}")
    what = f"a round of outage {given!r} of the network"
    first, last = (number(time, what, f"a number; {_OUTAGE}") for time in parts[1:])
    if first > last:
        raise DataError(f"outage {given!r} of the network ends before it begins: {_OUTAGE}")
    return server if isinstance(server, str) else int(server), first, last


def _place(server: int | str, cluster: Cluster) -> int:
    names = cluster.servers
    if isinstance(server, str) and server in names:
        return names.index(server)
    if isinstance(server, int) and 0 <= server < len(names):
        return server
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise DataError(
        f"an outage of the network is of server {server!r}, which the cluster has not: give one of its names ({shown}) "
        f"or a number from 0 to {len(names) - 1}"
    )
