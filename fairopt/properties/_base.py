"""What every property is: where it makes sense, what it compares with, and what is due to whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..mechanisms import Mechanism
from ..mechanisms._registry import Registry
from ..model.cluster import Cluster

#: Arrays of doubles, or of `Fraction` where nothing is rounded: properties compute with both.
Numbers = NDArray[Any]

#: Every property by its name; a subclass that states a `name` is in it by being defined.
REGISTRY: Registry[type[Property]]


@dataclass(frozen=True)
class Deviation:
    """A changed cluster, and the users who lie or leave; the servers that grow have no user."""

    cluster: Cluster
    users: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Case:
    """What a property judges: the tasks `x[n,i]` of a cluster, and those of the changed cluster if it compares.

    Tasks are doubles or, without rounding, `Fraction`s. `mechanism` is whose tasks they are, where that is known: a few
    properties are about one.
    """

    cluster: Cluster
    tasks: Numbers
    deviation: Deviation | None = None
    changed_tasks: Numbers | None = None
    mechanism: Mechanism | None = None

    @property
    def user_tasks(self) -> Numbers:
        """`x_n`, (users,)."""
        return np.asarray(self.tasks.sum(axis=1))

    @property
    def changed_user_tasks(self) -> Numbers:
        """`x'_n` of the changed cluster, (users there,); none without one."""
        return np.zeros(0) if self.changed_tasks is None else np.asarray(self.changed_tasks.sum(axis=1))

    @property
    def exact(self) -> bool:
        """Is nothing rounded?"""
        return self.tasks.dtype == object

    @property
    def changed(self) -> tuple[Deviation, Numbers]:
        """The deviation, and the tasks of its cluster."""
        if self.deviation is None or self.changed_tasks is None:
            raise DataError("this property compares two clusters; give the changed one and its tasks as well")
        return self.deviation, self.changed_tasks

    def numbers(self, values: Numbers) -> Numbers:
        """Data of the cluster in the arithmetic of the tasks; what is infinite stays a double."""
        if not self.exact:
            return values
        plain = [Fraction(value) if np.isfinite(value) else value for value in values.ravel().tolist()]
        return np.array([*plain, None], dtype=object)[:-1].reshape(values.shape)


@dataclass(frozen=True)
class Finding:
    """The largest loss of a property in one case.

    Attributes
    ----------
    violation : float or Fraction
        `1 - has/due`, at most 1: the part of what is due that is missing. Above 0: the property is violated.
    user : str
        Who misses it.
    has, due : float or Fraction
        In tasks.
    text : str
        The same in words.
    """

    violation: float | Fraction
    user: str
    has: float | Fraction
    due: float | Fraction
    text: str


#: This part of the tasks on all servers is none, in doubles: ten times what answers of trials are certified to.
NONE = 1e-7


class Property(ABC):
    """A property of fairness. Subclasses state a `name`, and define `dues` and what else they need.

    A property that compares with changed clusters defines `deviations` and `admits` as well.
    """

    name: ClassVar[str] = ""
    definition: ClassVar[str] = ""
    compares: ClassVar[bool] = False
    #: Does the loss of a user depend on the tasks of others?
    needs_all: ClassVar[bool] = False
    #: What random clusters of a search must have, where the property is about no others.
    servers: ClassVar[int | None] = None
    resources: ClassVar[int | None] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            old = REGISTRY.taken(cls.name, cls.__module__)
            if old is not None and (old.__module__, old.__qualname__) != (cls.__module__, cls.__qualname__):
                raise DataError(f"two properties are called {cls.name!r}, in {old.__module__} and {cls.__module__}")
            REGISTRY[cls.name] = cls

    def unfit(self, mechanism: Mechanism | None) -> str:
        """Why the property says nothing about a mechanism, or about tasks of nobody knows which; empty if it does."""
        return ""

    def domain(self, cluster: Cluster) -> str:
        """Why the property says nothing about this cluster; empty if it does."""
        return ""

    def deviations(self, cluster: Cluster, rng: np.random.Generator) -> Iterator[Deviation]:
        """Changed clusters to compare with, in random order; ever more of them, or all that there are."""
        return iter(())

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        """Is this a change that the property speaks of?"""
        return not self.compares

    @abstractmethod
    def dues(self, case: Case) -> tuple[Numbers, Numbers]:
        """What every user has, and what is due to it, in tasks, (users,) each; 0 is due to whom it does not matter."""

    def loss(self, missing: Numbers, case: Case) -> int:
        """Who decides, by number, given the part `1 - has/due` that each user misses, (users,): the largest."""
        return int(np.argmax(missing))

    def words(self, user: str, has: str, due: str) -> str:
        """What is wrong, in words."""
        return f"{user} has {has} tasks where {due} are due"

    def bounds(self, low: Case, high: Case) -> tuple[Numbers, Numbers]:
        """At most what every user has, and at least what is due to it, where tasks are between two cases.

        Right where `dues` does not fall with any task.
        """
        return self.dues(high)[0], self.dues(low)[1]

    def find(self, case: Case) -> Finding:
        """The largest loss."""
        return self.worst(*self.dues(case), case)

    def worst(self, has: Numbers, due: Numbers, case: Case) -> Finding:
        """The largest loss, given what users have and what is due to them."""
        one = Fraction(1) if case.exact else 1.0
        least = 0 * due if case.exact else NONE * case.cluster.gamma0.sum(axis=1)
        missing = np.array(
            [max(-one, one - h / d) if d > no else -one for h, d, no in zip(has, due, least, strict=True)]
        )
        n = self.loss(missing, case)
        user = case.cluster.users[n]
        text = self.words(user, shown(has[n]), shown(due[n])) if missing[n] > 0 else ""
        return Finding(missing[n], user, has[n], due[n], text)


REGISTRY = Registry("fairopt.properties", Path(__file__).parent)


def shown(value: float | Fraction) -> str:
    """A number in a few characters: `2/3`, `1.23457`."""
    if isinstance(value, Fraction) and value.denominator < 10_000:
        return str(value)
    return f"{float(value):.6g}"
