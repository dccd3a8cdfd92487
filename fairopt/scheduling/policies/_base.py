"""Base class of policies: priority of queues, choice of servers, and limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from ...base.errors import DataError
from ...base.loops import compiled
from ...base.registry import Registry
from ...mechanisms._label import label
from ...model._arrays import Array
from ..loop import handed
from ..loop.tables import Tables
from ..workload import Whole, Workload

#: Policies by name; subclasses with a `name` are registered at definition.
REGISTRY: Registry[type[Policy]] = Registry(__package__, Path(__file__).parent, "policy", "policies")

#: Arrays of the state that rules can read.
READ = ("capacity", "free", "pool", "demand", "cost", "weight", "allocated", "total", "placed", "numbers", "queues")


def beyond(what: str, name: str) -> str:
    """Error message for a rule that reads an array of the state that is not in `READ`."""
    return (
        f"a rule of {what} reads state.{name}; rules read {', '.join(READ)}, and "
        "durations as part of the `cost` of a policy. "
        "A method of arrays, def share(self, state) and the like, reads all of State"
    )


class rule:
    """Decorator of a function in the class of a policy that is compiled together with the loop of the simulator.

        @rule
        def score(state, group, queue, server):
            return -state.free[server, 0]

    `share(state, queue)` and `limit(state, queue)`, `score` and `value(state, group, queue, server)` return a number;
    group, queue and server are indices, and `state` has the arrays that `READ` names. A rule depends only on its
    arguments, and its value must not decrease while other queues and servers are served. A method in place of a rule
    may use the whole state.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if other := [name for name in function.__code__.co_names if name in Tables._fields and name not in READ]:
            raise DataError(beyond(function.__qualname__, other[0]))
        self.loop = compiled(inline=True)(function)

    def __get__(self, policy: Policy | None, kind: type[Policy]) -> Any:
        return self if policy is None else self.over

    def over(self, state: Any, group: int | None = None, servers: Whole | None = None) -> Array:
        """Evaluate the rule for all queues, or, with `servers`, for a group on each of these servers."""
        function = handed(self.loop, {}, compiled=False)
        if servers is None:
            return np.array([function(state, queue) for queue in range(len(state.weight))])
        return np.array([function(state, group, state.queue[group], server) for server in servers])


@dataclasses.dataclass(frozen=True)
class Policy:
    """Base class of online schedulers of indivisible tasks. Subclasses are frozen dataclasses of their parameters.

    After every event tasks are started as long as possible:

    1. The queue with the lowest `share` is next; ties are broken by order.
    2. One task of its first waiting group (by arrival) that fits a server is started. If no group fits, the queue is
       skipped. With `strict` only the first group is considered, and if it does not fit, no task is started until the
       next event.
    3. The task is placed on the server with room that has the lowest `score`; ties are broken by order.

    A policy that compares (queue, server) pairs has a `value` in place of share and score: the pair with the lowest
    value is next.

    A subclass states `name`, `title` and `source`, and overrides single steps by a `rule`, or by a method of arrays,
    which is not compiled: `share(self, state)` and `limit(self, state)` for all queues, `score` and
    `value(self, state, group, servers)` for servers with room. The base class is First-Fit DRFH: the lowest dominant
    share of the pool, on the first server with room.

    Parameters
    ----------
    strict : bool
        Block other queues if the first task of the lowest one does not fit.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""
    #: One queue per user, or a single queue by arrival.
    queue: ClassVar[Literal["user", "one"]] = "user"
    #: True if the policy uses `State.placed`, the amounts of a queue on every server.
    per_server: ClassVar[bool] = False
    #: Index of servers: "types" if the score depends on capacities only, "ratios" for Best-Fit, '' for a scan.
    index: ClassVar[Literal["types", "ratios", ""]] = "types"

    strict: bool = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__
        if "index" not in own and ("score" in own or "value" in own):
            cls.index = ""
        REGISTRY.defined(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if isinstance(field.default, bool) and (value := getattr(self, field.name)) not in (True, False):
                raise DataError(f"{field.name} is {value!r}; it must be True or False")
        if self.strict and self.pairs:
            raise DataError(f"{self.name} compares pairs of user and server, so that no user can block others; "
                            "leave out strict")  # fmt: skip

    @property
    def pairs(self) -> bool:
        """True if the policy compares (queue, server) pairs (`value`)."""
        return type(self).value is not Policy.value

    @property
    def limits(self) -> bool:
        """True if the policy limits the amounts of a queue (`limit`)."""
        return type(self).limit is not Policy.limit

    @property
    def gangs(self) -> int:
        """Mode of starts: 0, one task at a time; 1, all waiting tasks of a group at once; 2, also with backfilling."""
        return 0

    @property
    def competing(self) -> float:
        """Fraction of the queues with a task that fits whose pairs are compared; queues of lowest share come first."""
        return 1.0

    @property
    def numbers(self) -> Array:
        """Matrix of the parameters of rules, which rules read as `state.numbers`."""
        return np.array([[self.competing]])

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        """Capacities (servers, amounts) and demands (groups, amounts) by which the policy decides what fits.

        A task fits a server if every free amount is at least its demand. If the amounts do not represent all resources,
        servers may be over-committed.
        """
        return workload.capacity, workload.demand

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        """Costs per task, (groups, costs), charged to its queue, and the total of every cost, (costs,)."""
        capacity, demand = self.room(workload)
        return demand, np.maximum(capacity.sum(axis=0), 1)

    @rule
    def share(state: Any, queue: int) -> float:
        """Share of queue n, `max_j allocated[n, j] / (total[j] weight[n])`; the queue of lowest share is served first.

        A single division of integers preserves exact ties, such as 12/18 = 6/9, in floating point.
        """
        share = 0.0
        for j in range(len(state.total)):
            share = max(share, state.allocated[queue, j] / (state.total[j] * state.weight[queue]))
        return share

    @rule
    def score(state: Any, group: int, queue: int, server: int) -> float:
        """Score of a server with room for a task of the group; the lowest is chosen, in a tie the first server."""
        return 0.0

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        """Value of a (queue, server) pair with room for a task of the group; the pair of lowest value is next."""
        return 0.0

    @rule
    def limit(state: Any, queue: int) -> float:
        """Upper bound on every cost of an active queue after the start of a task, relative to the total cost."""
        return np.inf

    def __str__(self) -> str:
        return label(self.name, self)
