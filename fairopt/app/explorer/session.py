"""Replies of the explorer to requests of its page, as JSON; the reply to an invalid request names the invalid field."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import mechanisms
from ...base import clock
from ...base.errors import DataError, FairoptError, SolverError
from ...game.two_sided import EquilibriumCurve, equilibrium_curve
from ...mechanisms import Mechanism
from ...mechanisms.alphapf_vds import AlphaPFVDS
from ...mechanisms.tree import Tree
from ...model import cluster_file
from ...model._arrays import Array
from ...model.cluster import Cluster, expected
from ...model.queues import Queues
from ...result.allocation import Allocation
from . import texts
from .edits import Edited, Start, State, number
from .verdict import held_now
from .view import SHOWN, Bands, bands, measures, tidied, view

if TYPE_CHECKING:
    from ...workloads import Snapshot

#: Largest product of the numbers of users and servers for which marginal gains are computed: their derivatives delay
#: the page after every move of the slider.
_DERIVED = 4000


#: Alphas at which the charts show allocations, equidistant in `alpha / (1 + alpha)`, the scale of their axis; they
#: include 0, 1, 3 and infinity.
ALPHAS: tuple[float | str, ...] = (*(float(f"{k / (40 - k):.3g}") for k in range(40)), "inf")

#: Mechanisms of the comparison table; mechanisms with a parameter alpha are solved at the alpha of the state.
SIDE = ("alphapf-vds", "alpha-fair", "ps-dsf", "drfh", "tsf", "per-server-drf", "ceei", "utilitarian", "drf")

#: Largest number of cached allocations, enough for the compared mechanisms and for some earlier states.
_KEPT = 30
#: Largest number of rows in the table of marginal gains.
_ROWS = 12


@dataclass(eq=False)
class Session:
    """Explorer session of one cluster. `reply` answers requests of the page; `last` is the most recently shown state.

    Parameters
    ----------
    cluster : Cluster
    state : initial state
    source : description of the cluster
    running : allocation of running tasks, if known
    tol : tolerance of certificates, as in `Mechanism.solve`
    snapshot : source of the running tasks, with the reasons why other tasks wait
    """

    cluster: Cluster
    state: State = field(default_factory=State)
    source: str = "cluster"
    running: Allocation | None = None
    tol: float | None = None
    snapshot: Snapshot | None = None
    start: Start = field(init=False)
    last: State = field(init=False)
    _edited: tuple[str, Edited] | None = field(init=False, default=None)
    _found: OrderedDict[tuple[str, Mechanism], Allocation] = field(init=False, default_factory=OrderedDict)
    _drawn: Bands | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.start, self.last = Start.of(expected(self.cluster)), self.state
        self.mechanism(self.state)

    def reply(self, question: Any) -> dict[str, Any]:
        """Answer a request; the reply to an invalid request has a message, `error`, and the key of a field, `where`."""
        known: dict[str, Callable[[State, dict[str, Any]], dict[str, Any]]] = {
            "start": lambda *_: self.begin(),
            "now": self._now,
            "answer": self._answer,
            "row": self._row,
            "several": self._several,
            "more": self._more,
            "python": lambda state, _: {
                "text": texts.head(self.edited(state).cluster) + texts.solved(self.mechanism(state))
            },
            "file": lambda state, _: {"text": cluster_file.text(self.edited(state).cluster)},
        }
        ask = question.get("ask") if isinstance(question, dict) else None
        if not isinstance(ask, str) or ask not in known:
            return {"error": f"a request must ask for one of {', '.join(known)}", "where": ""}
        try:
            state = State.of(question.get("state", {}))
            made = known[ask](state, question)
        except DataError as error:
            return {"error": str(error), "where": "/".join(map(str, error.where))}
        except FairoptError as error:
            return {"error": f"{type(error).__name__}: {error}", "where": ""}
        if ask in ("answer", "now") and not question.get("aside"):
            self.last = state
        return made

    def begin(self) -> dict[str, Any]:
        """Data that stay constant in a session: the original cluster, mechanisms, and alphas of the charts."""
        start, base = self.start, self.start.cluster
        eligible = base.eligible[:, start.first]
        placed = base.constrained and eligible.size <= 20_000
        known = [
            {"name": name, "title": mechanisms.kind(name).title, "alpha": _has_alpha(name)}
            for name in mechanisms.names()
        ]
        if (own := self.state.mechanism) not in mechanisms.names():
            known.append({"name": own, "title": str(self.mechanism(self.state)), "alpha": False})
        users = zip(base.users, base.demand.tolist(), base.weight.tolist(), base.max_tasks.tolist(), strict=True)
        runs = self.running
        return {
            "source": self.source,
            "state": self.state.to_json(),
            "resources": list(base.resources),
            "servers": [
                {"name": name, "count": int(count), "capacity": base.capacity[first].tolist()}
                for name, count, first in zip(start.names, start.counts, start.first, strict=True)
            ],
            "users": [
                {"name": name, "demand": demand, "weight": weight, "max_tasks": limit if math.isfinite(limit) else ""}
                for name, demand, weight, limit in users
            ],
            "rates": [_rates(base, n) for n in range(len(base.users))] if base.rated else None,
            "running": runs and tidied(runs.arrays.user_tasks),
            "held": runs and [one.words for one in held_now(runs, self.snapshot)],
            "measures": list(SHOWN.items()),
            "now": runs and measures(runs),
            "eligible": ["".join("01"[int(ok)] for ok in row) for row in eligible] if placed else None,
            "placement": eligible.size <= 20_000,
            "grouped": len({*start.groups}) < len(base.users),
            "mechanisms": known,
            "side": list(SIDE),
            "alphas": list(ALPHAS),
        }

    def edited(self, state: State) -> Edited:
        """Cluster with the edits of a state; equal edits return the same object, so that derived data stay cached."""
        key = _key(state)
        if self._edited is None or self._edited[0] != key:
            self._edited = key, self.start.edited(state.edits)
        return self._edited[1]

    def mechanism(self, state: State) -> Mechanism:
        """Mechanism of a state, at the alpha of the state if the mechanism has this parameter."""
        with _of_mechanism():
            kind, given = mechanisms.described(state.mechanism)
            if _has_alpha(kind.name):
                given = {"alpha": state.alpha} | given
            if kind is Tree and "queues" not in given:
                given = self._declared(state) | given
            return mechanisms.get(kind.name, **given)

    def queues(self, state: State) -> Queues | None:
        """Tree of queues of the mechanism of a state; None if the mechanism has no queues."""
        return getattr(self.mechanism(state), "queues", None)

    def _declared(self, state: State) -> dict[str, Any]:
        """Parameters of `Tree`: the queues of the snapshot, with edited weights of queues and users.

        An edit that multiplies the weight of a user by a factor multiplies its weight among its siblings by the same
        factor.
        """
        rule = None if self.snapshot is None else self.snapshot.tree[0]
        if rule is None or not isinstance(rule.queues, Queues):
            return {}
        entries, base = dict(rule.queues.queues), self.start.cluster
        for key, value in state.edits.items():
            kind, _, name = key.partition("/")
            user, _, what = name.partition("/")
            if kind == "queues" and name in entries:
                entries[name] = dataclasses.replace(entries[name], weight=value)
            elif (kind, what) == ("users", "weight"):
                own = base.users[int(user)]
                times = number(value, (kind, int(user), what), "a weight") / base.weight[int(user)]
                entries[own] = dataclasses.replace(entries[own], weight=(entries[own].weight or 1.0) * times)
        return {"queues": Queues(entries), "combine": rule.combine}

    def allocation(self, state: State | None = None) -> Allocation:
        """Certified allocation of a state, by default of the last requested state; recent allocations are cached.

        If the mechanism does not apply to the cluster, the error refers to the field `mechanism`.
        """
        state = self.last if state is None else state
        mechanism = self.mechanism(state)
        if (_key(state), mechanism) not in self._found:
            with _of_mechanism():
                self.know(state, mechanism.solve(self.edited(state).cluster, self.tol))
        return self._found[_key(state), mechanism]

    def know(self, state: State, found: Allocation) -> None:
        """Cache the allocation of a state; if there are more than `_KEPT`, the oldest is dropped."""
        self._found[_key(state), self.mechanism(state)] = found
        while len(self._found) > _KEPT:
            self._found.popitem(last=False)

    def runs(self, edited: Edited) -> Allocation | None:
        """Running tasks on an edited cluster, without tasks of removed users or servers; None if they are unknown."""
        if self.running is None:
            return None
        base, cluster = self.running.cluster, edited.cluster
        place = {name: i for i, name in enumerate(base.servers)}
        # An added server has no running tasks: it refers to an additional column of zeros.
        column = np.array([place.get(name, len(place)) for name in cluster.servers])
        table = np.pad(self.running.tasks, ((0, 0), (0, 1)))[np.ix_(edited.user_of, column)]
        return Allocation.of(cluster, table, "running", throw=False)

    def _now(self, state: State, _: object) -> dict[str, Any]:
        """Record a state whose answer the page already has."""
        self.edited(state)
        self.mechanism(state)
        return {}

    def _answer(self, state: State, _: object) -> dict[str, Any]:
        edited, found = self.edited(state), self.allocation(state)
        if self._drawn is None:
            self._drawn = bands(self.start, edited, found)
        return view(self.start, edited, found, self._drawn)

    def _row(self, state: State, question: dict[str, Any]) -> dict[str, Any]:
        """Row of the comparison table for one mechanism: its measures, or the error as `status`."""
        state = dataclasses.replace(state, mechanism=str(question.get("mechanism")))
        row: dict[str, Any] = {"mechanism": str(self.mechanism(state)), "name": state.mechanism}
        servers = len(self.edited(state).cluster.servers)
        try:
            found = self.allocation(state)
        except FairoptError as error:
            return row | {"status": str(error)}
        return row | {"status": "", "pooled": len(found.cluster.servers) < servers} | measures(found)

    def _more(self, state: State, question: dict[str, Any]) -> dict[str, Any]:
        """Marginal gains by kind of server and resource, with the users who gain, and a note on how they were found."""
        users, servers, _ = self.edited(state).cluster.shape
        if users * servers > _DERIVED:
            return {"rows": [], "note": f"Not computed for more than {_DERIVED:,} pairs of user and server."}
        # A page in a file stores replies for all alphas. To save time, no cluster is solved anew for alphas between 0
        # and infinity, where derivatives usually exist.
        seconds = 0.0 if question.get("many") and 0 < state.alpha < np.inf and _has_alpha(state.mechanism) else _SECONDS
        every, note = margins(self.start, self.edited(state), self.allocation(state), self.mechanism(state), seconds)
        rows = [[nodes, what, float(f"{tasks:.3g}"), gain] for nodes, _, what, tasks, gain in every[:_ROWS]]
        left = len(every) - len(rows)
        return {"rows": rows, "note": f"{left} more, not shown. {note}" if left else note}

    def _several(self, state: State, _: object) -> dict[str, Any]:
        """Text on the number of equilibria of alphaPF-VDS at alpha on the curve of equilibria through alpha = 1.

        The curve is followed up to twice alpha (for alpha < 1, down to half of alpha), since it may turn back to alpha
        at a fold. The text is empty for other mechanisms, for alpha of 0, 1 or infinity, and for large clusters.
        """
        cluster, alpha = self.edited(state).cluster, state.alpha
        between = 0 < alpha < np.inf and abs(math.log(alpha)) > 1e-9
        if not isinstance(self.mechanism(state), AlphaPFVDS) or not between or not few(cluster):
            return {"text": ""}
        beyond = alpha * 2.0 ** math.copysign(1, alpha - 1)
        return {"text": several(equilibrium_curve(cluster, [alpha, beyond], seconds=1.0), alpha)}


def _rates(cluster: Cluster, n: int) -> str:
    """Text on the rates of a user: the smallest and the largest, each with a server, or the rate if all are equal."""
    some = sorted(np.flatnonzero(cluster.eligible[n]), key=lambda i: cluster.rate[n, i])
    words = [f"{cluster.rate[n, i]:.4g} on {cluster.servers[i]}" for i in (*some[:1], *some[-1:])]
    equal = len(some) > 0 and cluster.rate[n, some[0]] == cluster.rate[n, some[-1]]
    return f"{cluster.rate[n, some[0]]:.4g}" if equal else " to ".join(words)


def few(cluster: Cluster) -> bool:
    """True if the cluster is small enough for the search for other equilibria."""
    return len(cluster.users) * len(cluster.servers) <= 100


def several(curve: EquilibriumCurve, alpha: float) -> str:
    """Text on the number of equilibria on a curve at an alpha; empty for a single equilibrium."""
    tasks = np.array([curve.user_tasks(one.user_tasks) for one in curve.crossings(alpha)])
    if len(tasks) < 2:
        return ""
    apart = int(np.argmax(np.ptp(tasks, axis=0)))
    span = " or ".join(f"{value:.4g}" for value in tasks[:, apart])
    return (
        f"There are {len(tasks)} equilibria on the curve from alpha = 1: {curve.cluster.users[apart]} has {span} tasks."
    )


@contextmanager
def _of_mechanism() -> Iterator[None]:
    """Context that assigns data errors without a field to the field `mechanism`."""
    try:
        yield
    except DataError as error:
        raise DataError(str(error), error.where or ("mechanism",)) from None


def _key(state: State) -> str:
    return json.dumps(dict(state.edits), sort_keys=True)


def _has_alpha(name: str) -> bool:
    return "alpha" in (each.name for each in dataclasses.fields(mechanisms.kind(name)))


#: _MORE: relative increase of a resource. _SECONDS: CPU seconds per request for solves where derivatives do not exist.
_MORE, _SECONDS = 0.01, 0.3


#: Gain from 1% more of a resource on a kind of node: the kind, the number of its nodes that have the resource, the
#: resource, the additional tasks, and the users who gain.
Margin = tuple[str, int, str, float, str]


def margins(
    start: Start, edited: Edited, found: Allocation, rule: Mechanism, seconds: float
) -> tuple[list[Margin], str]:
    """Gains from 1% more of a resource by kind of node, the largest first, and a note on how they were found.

    The list is empty for a mechanism without derivatives. Where a derivative does not exist, for example at a kink,
    the cluster with the larger capacity is solved; such solves start within the first `seconds` of CPU time.
    """
    cluster, tasks, there = found.cluster, found.arrays.user_tasks, found.cluster.capacity > 0
    try:
        moves = found.sensitivity().derivatives
        by_capacity = moves.of_tasks(np.eye(len(tasks)))[moves.rows["capacities"]].reshape(*there.shape, -1)
    except DataError as error:
        return [], f"No derivatives: {error}."
    except SolverError:
        by_capacity = np.full((*there.shape, len(tasks)), np.nan)
    names, of = ["all nodes"], np.zeros(1, dtype=np.intp)
    if len(cluster.servers) == len(edited.cluster.servers):
        entries, of = np.unique(edited.entry_of, return_inverse=True)
        names = [start.names[entry] for entry in entries]
    count, gains = np.zeros((len(names), there.shape[1]), dtype=int), np.zeros((len(names), *by_capacity.shape[1:]))
    np.add.at(count, of, there)
    np.add.at(gains, of, np.where(there[:, :, None] & (tasks > 0), by_capacity * tasks * _MORE, 0.0))
    unknown, end = np.argwhere(np.isnan(gains).any(axis=2)).tolist(), clock.cpu() + seconds
    for k, r in unknown:
        if clock.cpu() < end:
            more = cluster.capacity.copy()
            more[of == k, r] *= 1 + _MORE
            with suppress(FairoptError):
                gains[k, r] = rule.solve(cluster.replace(capacity=more), found.tol).arrays.user_tasks - tasks
    # Gains below a ten-millionth of all tasks are within the accuracy of the allocations.
    least = 1e-7 * float(tasks.sum())
    rows = [
        (names[k], int(count[k, r]), cluster.resources[r], *summed(cluster.users, gains[k, r], least))
        for k, r in np.argwhere(np.isfinite(gains).all(axis=2) & (np.abs(gains).max(axis=2) > least)).tolist()
    ]
    note = f"{_MORE:.0%} more there, by derivatives; the effect of a larger step needs another solve."
    solved = len(unknown) - int(np.isnan(gains).any(axis=2).sum())
    if not rows:
        far = ", as far as is known" if solved < len(unknown) else ""
        note = f"{_MORE:.0%} more of a resource changes nobody's tasks{far}."
    if unknown:
        kinds = f"{len(unknown)} of {int((count > 0).sum())} kinds of nodes and resources"
        note += f" {kinds} have no derivative; {solved} of these were solved with {_MORE:.0%} more."
    return sorted(rows, key=lambda row: -row[3]), note


def summed(users: tuple[str, ...], gain: Array, least: float) -> tuple[float, str]:
    """Total change in tasks, and the users with the largest gains.

    Changes of at most `least` tasks, per user or in total, count as zero.
    """
    gain = np.where(np.abs(gain) > least, gain, 0.0)
    everything = float(gain.sum())
    return everything if abs(everything) > least else 0.0, gainers(users, gain)


def gainers(users: tuple[str, ...], gain: Array, most: int = 3) -> str:
    """Text on up to `most` users with the largest gains, in decreasing order; "nobody" if no user gains.

    Users with equal displayed gains keep the cluster's order.
    """
    # Only users with more than 5% of the total gain are named; if there are none, the user with the largest gain.
    least = 0.05 * float(gain[gain > 0].sum())
    shown = np.array([float(f"{value:.3g}") for value in gain])
    order = np.argsort(-shown, kind="stable")
    named = ", ".join(f"{users[n]} +{gain[n]:.3g}" for n in order[:most] if gain[n] > least)
    if named or not least:
        return named or "nobody"
    return f"{int((gain > 0).sum())} users, most {users[order[0]]} +{gain[order[0]]:.3g}"
