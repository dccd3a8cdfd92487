"""Properties, the cases that they judge, and what is due to whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError
from ..base.registry import Registry
from ..certificates.rational import numbers
from ..mechanisms import Mechanism
from ..model.cluster import Cluster

#: Arrays of doubles, or of `Fraction` where nothing is rounded: properties compute with both.
Numbers = NDArray[Any]
#: Tasks that users have, and tasks that are due to them, (users,) each.
Dues = tuple[Numbers, Numbers]

#: Every property by its name; a subclass that states a `name` is in it by being defined.
REGISTRY: Registry[type[Property]]


@dataclass(frozen=True)
class Deviation:
    """A changed cluster, and the users who lie or leave; the servers that grow have no user."""

    cluster: Cluster
    users: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Case:
    """The tasks `x[n,i]` of a cluster that a property judges, and those of the changed cluster if it compares.

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
        """True if nothing was rounded."""
        return self.tasks.dtype == object

    @property
    def changed(self) -> tuple[Deviation, Numbers]:
        """The deviation, and the tasks of its cluster."""
        if self.deviation is None or self.changed_tasks is None:
            raise DataError("this property compares two clusters; give the changed one and its tasks as well")
        return self.deviation, self.changed_tasks

    def numbers(self, values: Numbers) -> Numbers:
        """Data of the cluster in the arithmetic of the tasks; what is infinite stays a double."""
        return numbers(values) if self.exact else values


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
    #: What is wrong, of `user` and the tasks that it `has` and that are `due`.
    words: ClassVar[str] = "{user} has {has} tasks where {due} are due"
    compares: ClassVar[bool] = False
    #: Does the loss of a user depend on the tasks of others?
    needs_all: ClassVar[bool] = False
    #: What random clusters of a search must have, where the property is about no others.
    servers: ClassVar[int | None] = None
    resources: ClassVar[int | None] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        REGISTRY.defined(cls)

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
        """True if the property covers this change."""
        return not self.compares

    @abstractmethod
    def dues(self, case: Case) -> Dues:
        """Tasks that every user has and that are due to it, (users,) each; 0 is due to whom it does not matter."""

    def loss(self, missing: Numbers, case: Case) -> int:
        """The user who decides, by number, given the part `1 - has/due` that each misses, (users,): the largest."""
        return int(np.argmax(missing))

    def bounds(self, low: Case, high: Case) -> Dues:
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
        text = self.words.format(user=user, has=shown(has[n]), due=shown(due[n])) if missing[n] > 0 else ""
        return Finding(missing[n], user, has[n], due[n], text)


REGISTRY = Registry("fairopt.properties", Path(__file__).parent, "property", "properties")


def shown(value: float | Fraction) -> str:
    """A number in a few characters: `2/3`, `1.23457`."""
    if isinstance(value, Fraction) and value.denominator < 10_000:
        return str(value)
    return f"{float(value):.6g}"


def names() -> list[str]:
    """Names of all properties, sorted."""
    return sorted(REGISTRY)


def get(name: str | Property) -> Property:
    """A property by its name; case, `-` and `_` do not matter.

    Raises
    ------
    DataError
        There is none of this name; the message has the names that there are.
    """
    return name if isinstance(name, Property) else REGISTRY.named(name)()


def tasks_per_task(mine: Numbers, others: Numbers) -> Numbers:
    """Tasks with demand `mine[n]` that the bundle of one task with demand `others[m]` runs, (users, others).

    `min_{r: d[n,r] > 0} d[m,r] / d[n,r]`
    """
    ratio = np.full((len(mine), len(others)), np.inf, dtype=others.dtype)
    for r in range(mine.shape[1]):
        needs = mine[:, r] > 0
        ratio[needs] = np.minimum(ratio[needs], others[None, :, r] / mine[needs, r][:, None])
    return ratio


def capped(tasks: Numbers, cluster: Cluster, case: Case) -> Numbers:
    """Nobody wants more tasks than it has to run: `min(x_n, q_n)`."""
    return np.minimum(tasks, case.numbers(cluster.max_tasks))


def true_tasks(case: Case) -> Numbers:
    """Tasks of its true demand that every user runs with what the changed cluster gives it, (users,).

    `min(q_n, sum_{i: e[n,i]} x'[n,i] min_{r: d[n,r] > 0} d'[n,r] / d[n,r])`
    """
    deviation, given = case.changed
    truth, reported = case.numbers(case.cluster.demand), case.numbers(deviation.cluster.demand)
    each = np.diagonal(tasks_per_task(truth, reported))
    usable = (given * case.numbers(case.cluster.eligible.astype(float))).sum(axis=1)
    return capped(np.asarray(each * usable), case.cluster, case)


def only(users: tuple[str, ...], cluster: Cluster, due: Numbers) -> Numbers:
    """`due` of these users, 0 of the others."""
    return np.where(np.isin(cluster.users, users), due, 0 * due)


def described(cluster: Cluster, deviation: Deviation | None) -> list[str]:
    """A cluster and its change in a few lines."""
    lines = [f"capacity {_rows(cluster.capacity)}, demand {_rows(cluster.demand)}"]
    if (cluster.weight != 1).any():
        lines.append(f"weight {_listed(cluster.weight)}")
    if cluster.constrained:
        lines.append(f"eligible {_rows(cluster.eligible.astype(float))}")
    if (cluster.max_tasks < float("inf")).any():
        lines.append(f"task counts {_listed(cluster.max_tasks)}")
    if deviation is not None:
        lines.append(changes(cluster, deviation))
    return lines


def changes(cluster: Cluster, deviation: Deviation) -> str:
    """Say how the changed cluster differs."""
    changed = deviation.cluster
    if len(changed.users) < len(cluster.users):
        return f"{' and '.join(deviation.users)} leaves"
    about = {"demand": "demand", "eligible": "eligible", "max_tasks": "task count"}
    tables = [(what, getattr(cluster, name), getattr(changed, name)) for name, what in about.items()]
    said = [
        f"{user} says {what} {_listed(reported[n].reshape(-1).astype(float))}"
        for what, truth, reported in tables
        for n, user in enumerate(cluster.users)
        if (reported[n] != truth[n]).any()
    ]
    if (changed.capacity != cluster.capacity).any():
        said.append(f"capacity grows to {_rows(changed.capacity)}")
    return "; ".join(said)


def _listed(values: Any) -> str:
    return f"({', '.join(f'{value:g}' for value in values)})"


def _rows(table: Any) -> str:
    return f"({', '.join(map(_listed, table))})"
