"""`Queues`: a tree of weighted queues above the users of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..base import files
from ..base.errors import DataError
from ..base.names import listed, short
from ._validate import MOST, number

if TYPE_CHECKING:
    import pandas as pd

Combine = Literal["sum", "vector"]
_KEYS = ("parent", "weight", "priority", "quota", "limit")


@dataclass(frozen=True)
class Queue:
    r"""Node of a tree of queues: an inner queue, or the place of a user.

    The users n below a queue have, for every resource r with an entry in `quota` or `limit`,

    .. math:: q_r \le \sum_n x_n d_{nr} \le l_r,

    where the lower bound applies unless all users below the queue that demand r have stopped at their limits.

    Parameters
    ----------
    parent : str or None
        Name of the parent queue; None: the root.
    weight : float or None
        Weight relative to siblings, > 0; None: 1, or for users the weight in the cluster.
    priority : float
        The share of a node increases only when the shares of its siblings of higher priority cannot increase.
    quota : mapping of str to float
        Guaranteed amounts by resource, in resource units; resources without an entry have no guarantee.
    limit : mapping of str to float
        Largest amounts by resource, in resource units.

    >>> import fairopt as fo
    >>> tree = fo.Queues({"lab": fo.Queue(quota={"cpu": 4}), "ann": fo.Queue("lab")})
    >>> cluster = fo.Cluster([[6]], [[1], [1]], resources=["cpu"], users=["ann", "bob"])
    >>> fo.Tree(tree).solve(cluster).user_tasks.round(6).to_dict()
    {'ann': 5.0, 'bob': 1.0}
    """

    parent: str | None = None
    weight: float | None = None
    priority: float = 0.0
    quota: Mapping[str, float] = field(default_factory=dict)
    limit: Mapping[str, float] = field(default_factory=dict)


class Queues:
    r"""Tree of queues, whose leaves are the users of a cluster.

    Progressive filling increases shares from 0 with time. When the share of a node increases by 1, the shares of its
    children increase in proportion to their weights, such that `combine` yields this increase of 1. Only children with
    the highest priority among those whose shares can still increase are included. The share of a queue is, by
    `combine`,

    .. math:: \sum_{n} \sigma_n \ \text{ (sum)}, \qquad
        \max_r \sum_n \sigma_n \frac{d_{nr}}{u_n C_r} \ \text{ (vector, over resources that are not exhausted)},

    over the users n below it, with shares :math:`\sigma_n = u_n x_n`. A user stops at its task limit, at a limit of an
    ancestor queue, or when further tasks of the user would reduce the tasks that another user has at that time. Quotas
    are filled first, quotas of the deepest queues before those of their ancestors, and the rest of the cluster last.

    Parameters
    ----------
    queues : mapping of str to Queue, or to mapping
        Queues by name; a mapping has the fields of `Queue`. An entry with the name of a user places it in the tree, as
        in `{"ann": {"parent": "lab"}}`. Users without an entry are children of the root.

    Raises
    ------
    DataError
        A parent is missing, a queue is its own ancestor, or a number is invalid; the message names the queue.

    >>> import fairopt as fo
    >>> tree = fo.Queues({"lab": {"weight": 3}, "ann": {"parent": "lab"}, "bob": {"parent": "lab"}})
    >>> cluster = fo.Cluster([[8]], [[1], [1], [1]], users=["ann", "bob", "eve"])
    >>> fo.Tree(tree).solve(cluster).user_tasks.to_dict()
    {'ann': 3.0, 'bob': 3.0, 'eve': 2.0}
    """

    def __init__(self, queues: Mapping[str, Queue | Mapping[str, Any]]) -> None:
        if not isinstance(queues, Mapping):
            raise DataError(f"queues are {short(queues)}; give a mapping of names to Queue(parent=, weight=, ...)")
        self.queues = {str(name): _queue(str(name), one) for name, one in queues.items()}
        for name in self.queues:
            above: list[str] = []
            at: str | None = name
            while at is not None:
                if at not in self.queues:
                    raise DataError(f"queue {above[-1]!r} has the parent {at!r}, which is no queue", (above[-1],))
                if at in above:
                    raise DataError(f"queue {name!r} is below itself: {' -> '.join([*above, at])}", (name,))
                above.append(at)
                at = self.queues[at].parent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queues) and self.queues == other.queues

    def __hash__(self) -> int:
        return hash(tuple(self.queues))

    def __repr__(self) -> str:
        return f"Queues({listed(list(self.queues), 5)})"

    def __reduce__(self) -> tuple[type[Queues], tuple[dict[str, Queue]]]:
        return Queues, (self.queues,)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Entries by name, as mappings without default values; the format of `Queues` and of allocation files."""
        kept = {name: {key: getattr(one, key) for key in _KEYS} for name, one in self.queues.items()}
        return {
            name: {
                key: dict(value) if isinstance(value, Mapping) else value
                for key, value in one.items()
                if value not in (None, {}) and (key, value) != ("priority", 0)
            }
            for name, one in kept.items()
        }

    def lowered(self, factor: float) -> Queues:
        """Copy of the tree in which all quotas are multiplied by a factor.

        >>> import fairopt as fo
        >>> fo.Queues({"lab": {"quota": {"cpu": 4}}}).lowered(0.5).to_dict()
        {'lab': {'quota': {'cpu': 2.0}}}
        """
        return Queues({name: replace(one, quota={what: factor * amount for what, amount in one.quota.items()})
                       for name, one in self.queues.items()})  # fmt: skip

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Queues:
        """Read a frame indexed by name, with columns such as `parent`, `weight`, `priority`, `quota cpu`, `limit cpu`.

        Missing values stand for the defaults.

        Raises
        ------
        DataError
            A column or a value is invalid, as in `Queues`.

        >>> import pandas as pd, fairopt as fo
        >>> rows = pd.DataFrame({"parent": [None, "lab"], "quota cpu": [4, None]}, index=["lab", "ann"])
        >>> fo.Queues.from_frame(rows).to_dict()
        {'lab': {'quota': {'cpu': 4.0}}, 'ann': {'parent': 'lab'}}
        """
        found: dict[str, dict[str, Any]] = {}
        for name, row in frame.iterrows():
            one: dict[str, Any] = found.setdefault(str(name), {})
            for column, value in row.items():
                if value is None or value == "" or value != value:
                    continue
                kind, _, resource = str(column).partition(" ")
                if resource:
                    one.setdefault(kind, {})[resource] = value
                else:
                    one[kind] = value
        return cls(found)

    @classmethod
    def load(cls, path: str | FilePath) -> Queues:
        """Read a TOML or JSON file with a table by queue, such as `[lab]`, `weight = 3`, `quota = { cpu = 4 }`.

        Raises
        ------
        DataError
            The file cannot be read or parsed, or an entry is invalid; the message names the file.
        """
        path = FilePath(path)
        parse = files.parse_json if path.suffix.lower() == ".json" else files.parse_toml
        table = parse(files.read(path, "file of queues"), path)
        with files.inside(path):
            return cls(table)


def _queue(name: str, given: Queue | Mapping[str, Any]) -> Queue:
    if not isinstance(given, Queue):
        unknown = [key for key in given if key not in _KEYS] if isinstance(given, Mapping) else [short(given)]
        if unknown:
            raise DataError(f"queue {name!r} has {listed(unknown)}; its entries are {', '.join(_KEYS)}", (name,))
        given = Queue(**given)
    if given.parent is not None and not isinstance(given.parent, str):
        raise DataError(f"the parent of queue {name!r} is {short(given.parent)}; it must be a name", (name, "parent"))
    amounts = {}
    for key in ("quota", "limit"):
        table = getattr(given, key)
        if not isinstance(table, Mapping):
            raise DataError(f"the {key} of queue {name!r} is {short(table)}; give amounts by resource", (name, key))
        amounts[key] = {str(what): _number(name, f"{key} of {what}", amount) for what, amount in table.items()}
    weight = None if given.weight is None else _number(name, "weight", given.weight)
    if weight == 0:
        raise DataError(
            f"queue {name!r} has the weight 0; give it a lower priority than its siblings", (name, "weight")
        )
    return Queue(given.parent, weight, _number(name, "priority", given.priority, -np.inf), **amounts)


def _number(name: str, what: str, value: object, low: float = 0.0) -> float:
    wanted = "a finite number" if low < 0 else "a finite number >= 0"
    return number(value, f"the {what} of queue {name!r}", wanted, lambda one: max(low, -MOST) <= one <= MOST)
