"""Edits of a cluster in the explorer, and their validation; errors name the field.

Identical servers are one entry with a count. An edit is a key and a value, the text or number that was typed. The keys
are `users/3/demand/1`, `users/3/weight`, `users/3/max_tasks`, `users/3/on`, `users/3/eligible/2`,
`servers/0/capacity/1`, `servers/0/count`, `servers/0/on`, with the index of an entry after `servers` and `eligible`;
`weights`, with the value `each` or `shared`; and `queues/NAME`, the weight of a queue of the mechanism.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import DataError
from ...base.names import short
from ...model import _validate
from ...model._arrays import Array, Index, numbered
from ...model.cluster import Cluster

if TYPE_CHECKING:
    from ...workloads import Snapshot

Where = tuple[str | int, ...]


@dataclass(frozen=True)
class State:
    """State of the explorer: the name of a mechanism, an alpha, and edits by key."""

    mechanism: str = "alphapf-vds"
    alpha: float = 1.0
    edits: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def usual(cls, snapshot: Snapshot | None, mechanism: str | None = None, *more: Any) -> State:
        """State with a mechanism, by default `tree` if the snapshot declares queues; `more` are alpha and edits."""
        declared = "tree" if snapshot is not None and snapshot.queues is not None else cls.mechanism
        return cls(mechanism or declared, *more)

    @classmethod
    def of(cls, given: Any) -> State:
        """Parse a state from JSON, in which an infinite alpha is the text `inf`; errors name the field."""
        if not isinstance(given, dict):
            raise DataError("a state is an object with mechanism, alpha and edits")
        edits = given.get("edits", {})
        if not isinstance(edits, dict):
            raise DataError("edits must be an object")
        mechanism = given.get("mechanism", cls.mechanism)
        if not isinstance(mechanism, str):
            raise DataError("mechanism must be a name", ("mechanism",))
        return cls(mechanism, alpha(given.get("alpha", cls.alpha)), edits)

    def to_json(self) -> dict[str, Any]:
        """Convert the state to the JSON that `State.of` parses."""
        number = "inf" if math.isinf(self.alpha) else self.alpha
        return {"mechanism": self.mechanism, "alpha": number, "edits": dict(self.edits)}


def alpha(given: Any) -> float:
    """Parse an alpha, a number or a text; errors name the field `alpha`."""
    try:
        return _validate.alpha(number(given, ("alpha",), "alpha"))
    except DataError as error:
        raise DataError(str(error), ("alpha",)) from None


def number(given: Any, where: tuple[str | int, ...], what: str) -> float:
    """Parse a number or a text, in which a comma may be the decimal point; infinity is `inf` or `∞`.

    Other values raise a `DataError` with the field `where`; `what` names the value in the message.
    """
    text = str(given).strip().replace("∞", "inf").replace("\u2212", "-")
    text = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    try:
        if isinstance(given, bool) or not isinstance(given, int | float | str) or "_" in text:
            raise ValueError
        return float(text)
    except (ValueError, OverflowError):
        raise DataError(f"{what} is {short(given)}; write a number, such as 2.5", where) from None


#: Largest number of servers of an edited cluster.
MOST_SERVERS = 100_000


_STEM = re.compile(r"[-_. ]?\d+$")


@dataclass(frozen=True, eq=False)
class Edited:
    """Cluster after edits, with the entry of each server and the original index of each user."""

    cluster: Cluster
    entry_of: Index  # (servers,)
    user_of: Index  # (users,)


@dataclass(frozen=True, eq=False)
class Start:
    """Original cluster, with entries of identical servers."""

    cluster: Cluster
    entry_of: Index  # (servers,)
    first: Index  # (entries,), index of the first server of every entry
    members: Sequence[Sequence[str]]  # names of the servers of every entry
    names: tuple[str, ...]  # names of entries
    groups: tuple[str, ...]  # name of the group of every user, see `group`

    @classmethod
    def of(cls, cluster: Cluster) -> Start:
        """Group the servers of a cluster into entries."""
        codes: list[Array] = [cluster.capacity + 0.0]  # codes are compared bitwise, and -0.0 + 0.0 is 0.0
        if cluster.constrained:
            codes.append(np.packbits(cluster.eligible, axis=0).T.astype(float))
        if cluster.rated:
            codes.append(cluster.rate.T + 0.0)
        # In a large cluster all identical servers form one entry. In a small cluster their names must also have a
        # common prefix (`rack-1`, `rack-2`), since a table can show all other servers one by one.
        if len(cluster.servers) < 25:
            stem_of = [_STEM.sub("", name) for name in cluster.servers]
            code_of = {stem: float(k) for k, stem in enumerate(dict.fromkeys(stem_of))}
            codes.append(np.array([[code_of[stem]] for stem in stem_of]))
        entry_of = numbered(np.column_stack(codes))
        first = np.unique(entry_of, return_index=True)[1]
        by_entry = np.array(cluster.servers, dtype=object)[np.argsort(entry_of, kind="stable")]
        members = [names.tolist() for names in np.split(by_entry, np.cumsum(np.bincount(entry_of))[:-1])]
        return cls(cluster, entry_of, first, members, _names(members), tuple(map(group, cluster.users)))

    @property
    def counts(self) -> Index:
        """Number of servers of every entry, (entries,)."""
        return np.bincount(self.entry_of, minlength=len(self.first))

    def edited(self, edits: Mapping[str, Any]) -> Edited:
        """Apply edits to the cluster.

        Raises
        ------
        DataError
            A value is invalid, or the result is no valid cluster; `where` of the error is the key of the field, split
            at `/`.
        """
        base, first = self.cluster, self.first
        servers: dict[str, NDArray[Any]] = {
            "capacity": base.capacity[first],
            "count": self.counts,
            "on": np.ones(len(first), dtype=bool),
        }
        users: dict[str, NDArray[Any]] = {
            "demand": base.demand.copy(),
            "weight": base.weight.copy(),
            "max_tasks": base.max_tasks.copy(),
            "on": np.ones(len(base.users), dtype=bool),
            "eligible": base.eligible[:, first],
        }
        weights, tables = "each", {"servers": servers, "users": users}
        for key, value in edits.items():
            where: tuple[Any, ...] = tuple(
                int(part) if part.isdecimal() and len(part) < 9 else part for part in str(key).split("/")
            )
            if where == ("weights",) and value in ("each", "shared"):
                weights = value
                continue
            if where[0] == "queues":  # queues belong to the mechanism, not to the cluster
                continue
            try:
                kind, row, what, *column = where
                table, place = tables[kind][what], (row, *column)
                known = np.ndim(table[place]) == 0
            except (ValueError, KeyError, IndexError):
                known = False
            if not known:
                raise DataError(f"there is no field {short(key)}", where)
            table[place] = _READ[what](value, where)
        count = np.where(servers["on"], servers["count"], 0)
        return self._made(servers["capacity"], count, users, weights)

    def _made(self, capacity: Array, count: Index, users: Mapping[str, NDArray[Any]], weights: str) -> Edited:
        """Cluster with `count` servers of every entry; errors name the field."""
        entry_of, user_of = np.repeat(np.arange(len(count)), count), np.flatnonzero(users["on"])
        if not len(entry_of):
            raise DataError("no server is left; switch one on, or give it a count", ("servers",))
        if not len(user_of):
            raise DataError("no user is left; switch one on", ("users",))
        if len(entry_of) > max(MOST_SERVERS, len(self.entry_of)):
            raise DataError(f"{len(entry_of):,} servers; there may be at most {MOST_SERVERS:,}", ("servers",))
        base, weight, eligible = self.cluster, users["weight"][user_of], users["eligible"]
        try:
            made = Cluster(
                capacity[entry_of],
                users["demand"][user_of],
                shared(weight, [self.groups[n] for n in user_of]) if weights == "shared" else weight,
                None if eligible.all() else eligible[np.ix_(user_of, entry_of)],
                users["max_tasks"][user_of],
                base.resources,
                [base.users[n] for n in user_of],
                _servers(self, count),
                base.rate[:, self.first][np.ix_(user_of, entry_of)] if base.rated else None,
            )
        except DataError as error:
            raise DataError(str(error), _field(error.where, entry_of, user_of, base.resources)) from None
        return Edited(made, entry_of, user_of)


def group(user: str) -> str:
    """Namespace or account of a user: the name up to `/` or `: ` (`research/2 cpu`, `physics: 4 cpu`), or the name."""
    return re.split(r"/|: ", user, maxsplit=1)[0]


def shared(weight: Array, groups: Sequence[str]) -> Array:
    """Divide the weight of each group equally among its users."""
    group_of = np.unique(np.array(groups), return_inverse=True)[1]
    return np.asarray(weight / np.bincount(group_of)[group_of])


def _names(members: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Names of entries: a single server, a common prefix, or the first server and the number of the other servers."""
    taken = set(itertools.chain.from_iterable(members))
    stems = [{_STEM.sub("", name) for name in names} for names in members]
    common = [next(iter(one)) if len(one) == 1 and len(names) > 1 else ""
              for one, names in zip(stems, members, strict=True)]  # fmt: skip
    result = []
    for names, stem in zip(members, common, strict=True):
        if len(names) == 1:
            result.append(names[0])
        elif stem and common.count(stem) == 1 and stem not in taken:
            result.append(stem)
        else:
            result.append(f"{names[0]} +{len(names) - 1}")
    return tuple(result)


def _servers(start: Start, count: Index) -> list[str]:
    """Names of servers: original names, and new names for added servers."""
    taken, made = set(start.cluster.servers), []
    for own, wanted in zip(start.members, count.tolist(), strict=True):
        stem = _STEM.sub("", own[0]) or own[0]
        numbered_names = (f"{stem}-{k}" for k in itertools.count(len(own) + 1))
        new = itertools.filterfalse(taken.__contains__, numbered_names)
        mine = [*own[:wanted], *itertools.islice(new, max(wanted - len(own), 0))]
        taken.update(mine)
        made += mine
    return made


def _switch(value: Any, where: Where) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{where[-1]} is {short(value)}; it must be true or false", where)
    return value


def _limit(value: Any, where: Where) -> float:
    return math.inf if value is None or str(value).strip() == "" else number(value, where, "a task limit")


def _count(value: Any, where: Where) -> int:
    given = number(value, where, "a count")
    if not math.isfinite(given) or given != int(given) or given < 0:
        raise DataError(f"a count is {short(value)}; write a whole number >= 0", where)
    if given > MOST_SERVERS:
        raise DataError(f"a count is {given:g}; there may be at most {MOST_SERVERS:,}", where)
    return int(given)


#: Parsers of the fields of an entry or a user.
_READ: Mapping[str, Callable[[Any, Where], float]] = {
    "capacity": partial(number, what="a capacity"),
    "count": _count,
    "on": _switch,
    "demand": partial(number, what="a demand"),
    "weight": partial(number, what="a weight"),
    "max_tasks": _limit,
    "eligible": _switch,
}


def _field(where: Where, entry_of: Index, user_of: Index, resources: Sequence[str]) -> Where:
    """Field of the explorer for the field `where` of an error of `Cluster`."""
    rows = {"servers": entry_of, "users": user_of}
    if len(where) < 3 or where[0] not in rows or not isinstance(where[1], int):
        return where
    tail = tuple(resources.index(part) if part in resources else part for part in where[3:])
    return (where[0], int(rows[str(where[0])][where[1]]), where[2], *tail)
