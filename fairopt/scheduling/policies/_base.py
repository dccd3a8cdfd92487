"""Base class of policies: the next queue, its server, and limits."""

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

#: Every policy by its name; a subclass that states a `name` is in it by being defined.
REGISTRY: Registry[type[Policy]] = Registry(__package__, Path(__file__).parent, "policy", "policies")

#: What rules read of the state.
READ = ("capacity", "free", "pool", "demand", "cost", "weight", "allocated", "total", "placed", "numbers")


class rule:
    """Decorate a function of whole numbers in a policy's class: it is compiled together with the simulator's loop.

        @rule
        def score(state, group, queue, server):
            return -state.free[server, 0]

    `share(state, queue)` and `limit(state, queue)`, `score` and `value(state, group, queue, server)` return one number.
    `state` has the arrays of `State` that `READ` names. A rule may look at its queue, group and server
    alone, and no value may fall while other queues and servers are served; a method in its place may look at
    everything.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.loop = compiled(inline=True)(function)

    def __get__(self, policy: Policy | None, kind: type[Policy]) -> Any:
        return self if policy is None else self.over

    def over(self, state: Any, group: int | None = None, servers: Whole | None = None) -> Array:
        """The numbers of all queues, or of these servers."""
        function = handed(self.loop, {}, compiled=False)
        if servers is None:
            return np.array([function(state, queue) for queue in range(len(state.weight))])
        return np.array([function(state, group, state.queue[group], server) for server in servers])


@dataclasses.dataclass(frozen=True)
class Policy:
    """An online scheduler of tasks that cannot be divided. Subclasses are frozen dataclasses of their parameters.

    Whenever something has happened, decisions follow until none is left:

    1. The queue with the lowest `share` is next; ties go to the first in order.
    2. Its first waiting group (by arrival) that fits somewhere is served: one task starts. If none does, the queue is
       skipped. `strict`: only its very first group is looked at, and if that does not fit, nobody is served until
       something changes.
    3. On the server with the lowest `score` among those where it fits; ties go to the first server.

    A policy that compares pairs of queue and server has a `value` instead: the pair with the lowest is next.

    A subclass states `name`, `title` and `source`, and overrides what is different: by a `rule`, or by a method of
    arrays, which runs plain: `share(self, state)` and `limit(self, state)` of all queues, `score` and
    `value(self, state, group, servers)` of servers where the task fits. As it is, this is First-Fit DRFH: the lowest
    dominant share of the pool, on the first server with room.

    Parameters
    ----------
    strict : does a lowest queue whose first task does not fit block the others?
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    source: ClassVar[str] = ""
    #: Whose shares are compared: users', or nobody's, as everything stands in one queue by arrival.
    queue: ClassVar[Literal["user", "one"]] = "user"
    #: Does it need `State.placed`, what a queue holds on every server?
    per_server: ClassVar[bool] = False
    #: How many servers are found quickly: the score depends on their capacity alone ("types"), it is Best-Fit's
    #: ("ratios"), or all are looked at.
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
            raise DataError(f"{self.name} compares pairs of user and server, so nobody can block the others; "
                            "leave out strict")  # fmt: skip

    @property
    def pairs(self) -> bool:
        """True if it compares pairs of queue and server (`value`)."""
        return type(self).value is not Policy.value

    @property
    def limits(self) -> bool:
        """True if it limits what a queue may hold (`limit`)."""
        return type(self).limit is not Policy.limit

    @property
    def competing(self) -> float:
        """The part of the queues that have a task that fits, from the lowest share on, whose pairs are compared."""
        return 1.0

    @property
    def numbers(self) -> Array:
        """Parameters that rules read as `state.numbers`, a table."""
        return np.array([[self.competing]])

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        """Capacities and demands as the policy sees them, (servers, amounts) and (groups, amounts).

        A task fits a server if no amount that is left is less than it takes. Amounts other than those of all resources
        may over-commit servers.
        """
        return workload.capacity, workload.demand

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        """Costs of a task to its queue, (groups, costs), and the total of every cost, (costs,)."""
        capacity, demand = self.room(workload)
        return demand, np.maximum(capacity.sum(axis=0), 1)

    @rule
    def share(state: Any, queue: int) -> float:
        """The lowest is served first: `max_j allocated[n,j] / (total_j phi_n)`.

        One division of whole numbers: 12/18 ties 6/9, as the quotient of doubles is that of the fractions, rounded.
        """
        share = 0.0
        for j in range(len(state.total)):
            share = max(share, state.allocated[queue, j] / (state.total[j] * state.weight[queue]))
        return share

    @rule
    def score(state: Any, group: int, queue: int, server: int) -> float:
        """Score of a server on which a task of the group fits; the lowest is taken, ties go to the first."""
        return 0.0

    @rule
    def value(state: Any, group: int, queue: int, server: int) -> float:
        """Value of a task of the group on a server on which it fits; the lowest pair is next."""
        return 0.0

    @rule
    def limit(state: Any, queue: int) -> float:
        """The most of every cost, in parts of its total, that an active queue may hold after a task starts."""
        return np.inf

    def __str__(self) -> str:
        return label(self.name, self)
