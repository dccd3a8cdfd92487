"""What every policy is: which queue is served next, on which server, and what may not be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...mechanisms._label import differs, plain
from ...mechanisms._registry import Registry
from ..state import State
from ..workload import Whole, Workload

Numbers = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

#: Every policy by its name; a subclass that states a `name` is in it by being defined.
REGISTRY: Registry[type[Policy]] = Registry(__package__, Path(__file__).parent)


def kernel(name: str) -> Callable[[Function], Function]:
    """Decorate a method of a policy that the compiled engine knows as well, under this name.

    A subclass that overrides it with one that has no such name runs in plain Python.
    """

    def decorate(method: Function) -> Function:
        method.kernel = name  # type: ignore[attr-defined]
        return method

    return decorate


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

    A subclass states `name`, `title` and `source`, and overrides what is different. As it is, this is First-Fit DRFH:
    the lowest dominant share of the pool, on the first server with room.

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

    strict: bool = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            old = REGISTRY.taken(cls.name, cls.__module__)
            places = [f"{one.__module__}.{one.__qualname__}" for one in (old, cls) if one is not None]
            if old is not None and old.name == cls.name and len({*places}) > 1:
                raise DataError(f"two policies are called {cls.name!r}, {' and '.join(places)}; rename yours")
            REGISTRY[cls.name] = cls

    def __post_init__(self) -> None:
        if self.strict and self.pairs:
            raise DataError(f"{self.name} compares pairs of user and server, so nobody can block the others; "
                            "leave out strict")  # fmt: skip

    @property
    def pairs(self) -> bool:
        """Does it compare pairs of queue and server (`value`)?"""
        return type(self).value is not Policy.value

    @property
    def limits(self) -> bool:
        """Does it limit what a queue may hold (`limit`)?"""
        return type(self).limit is not Policy.limit

    def room(self, workload: Workload) -> tuple[Whole, Whole]:
        """What servers have and tasks take, (servers, amounts) and (groups, amounts), as the policy sees it.

        A task fits a server if no amount that is left is less than it takes. Amounts other than those of all resources
        may over-commit servers.
        """
        return workload.capacity, workload.demand

    def cost(self, workload: Workload) -> tuple[Whole, Whole]:
        """What a task adds to what its queue holds, (groups, costs), and the total of every cost, (costs,)."""
        capacity, demand = self.room(workload)
        return demand, np.maximum(capacity.sum(axis=0), 1)

    @kernel("dominant")
    def share(self, state: State) -> Numbers:
        """(queues,): the lowest is served first."""
        return state.dominant_share()

    @kernel("first")
    def score(self, state: State, group: int, servers: Whole) -> Numbers | None:
        """(servers,): of those where a task of the group fits, the lowest is taken; `None`: the first."""
        return None

    @kernel("none")
    def value(self, state: State, group: int, servers: Whole) -> Numbers:
        """(servers,): how a task of the group would do on servers where it fits; the lowest pair of all is next."""
        raise NotImplementedError

    @kernel("all")
    def among(self, state: State, queues: Whole) -> Whole:
        """Of the queues that have a task that fits, those whose pairs are compared."""
        return queues

    @kernel("none")
    def limit(self, state: State) -> Numbers:
        """(queues,): the most of every cost, in parts of its total, that a queue may hold after a task starts."""
        raise NotImplementedError

    def __str__(self) -> str:
        shown = [
            f"{field.name}={plain(value)}"
            for field in dataclasses.fields(self)
            if differs(value := getattr(self, field.name), field.default)
        ]
        return f"{self.name}({', '.join(shown)})" if shown else self.name or type(self).__name__
