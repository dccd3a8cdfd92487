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
from ..workload import Whole, Workload

#: Policies by name; subclasses with a `name` are registered at definition.
REGISTRY: Registry[type[Policy]] = Registry(__package__, Path(__file__).parent, "policy", "policies")

#: Arrays of the state that rules can read.
READ = ("capacity", "free", "pool", "demand", "cost", "weight", "allocated", "total", "placed", "numbers")


class rule:
    """Decorator of a function of integers in a policy's class, which is compiled together with the simulator's loop.

        @rule
        def score(state, group, queue, server):
            return -state.free[server, 0]

    `share(state, queue)` and `limit(state, queue)`, `score` and `value(state, group, queue, server)` return a number.
    `state` has the arrays of `State` in `READ`. A rule depends on its queue, group and server only, and its value must
    not decrease while other queues and servers are served; a method instead of a rule may use the whole state.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.loop = compiled(inline=True)(function)

    def __get__(self, policy: Policy | None, kind: type[Policy]) -> Any:
        return self if policy is None else self.over

    def over(self, state: Any, group: int | None = None, servers: Whole | None = None) -> Array:
        """Evaluate the rule for all queues, or for these servers."""
        function = handed(self.loop, {}, compiled=False)
        if servers is None:
            return np.array([function(state, queue) for queue in range(len(state.weight))])
        return np.array([function(state, group, state.queue[group], server) for server in servers])


@dataclasses.dataclass(frozen=True)
class Policy:
    """Base class of online schedulers of indivisible tasks. Subclasses are frozen dataclasses of their parameters.

    After every event tasks are started as long as possible:

    1. The queue with the lowest `share` is next; ties are broken by order.
    2. One task of its first waiting group (by arrival) that fits a server is started. If there is none the queue is
       skipped. With `strict` only the first group is considered, and if it does not fit no task is started until the
       next event.
    3. It is placed on the server with the lowest `score` among those with room; ties are broken by order.

    A policy that compares (queue, server) pairs has a `value` instead: the pair with the lowest is next.

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
    #: Does the policy use `State.placed`, the amounts of a queue on every server?
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
        """1: all waiting tasks of a group start at once, by arrival; 2: with backfilling; 0: task by task."""
        return 0

    @property
    def competing(self) -> float:
        """Fraction of the queues with a task that fits, from the lowest share on, whose pairs are compared."""
        return 1.0

    @property
    def numbers(self) -> Array:
        """Parameters of rules, a matrix that they read as `state.numbers`."""
        return np.array([[self.competing]])

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        """Capacities (servers, amounts) and demands (groups, amounts) in the terms of the policy.

        A task fits a server if every free amount is at least its demand. Amounts other than those of all resources may
        over-commit servers.
        """
        return workload.capacity, workload.demand

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        """Costs per task, (groups, costs), charged to its queue, and the total of every cost, (costs,)."""
        capacity, demand = self.room(workload)
        return demand, np.maximum(capacity.sum(axis=0), 1)

    @rule
    def share(state: Any, queue: int) -> float:
        """Share of a queue, `max_j allocated[n,j] / (total_j phi_n)`; the lowest is served first.

        A single division of integers preserves exact ties, such as 12/18 = 6/9, in floating point.
        """
        share = 0.0
        for j in range(len(state.total)):
            share = max(share, state.allocated[queue, j] / (state.total[j] * state.weight[queue]))
        return share

    @rule
    def score(state: Any, group: int, queue: int, server: int) -> float:
        """Score of a server with room for a task of the group; the lowest is chosen, the first in a tie."""
        return 0.0

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        """Value of a (queue, server) pair with room for a task of the group; the lowest is next."""
        return 0.0

    @rule
    def limit(state: Any, queue: int) -> float:
        """Upper bound on every cost of an active queue after the start of a task, relative to the total."""
        return np.inf

    def __str__(self) -> str:
        return label(self.name, self)
