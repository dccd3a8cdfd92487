"""Base class of fairness properties, the cases in which they are checked, and the results of checks."""

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

#: Arrays of floats, or of `Fraction` in exact arithmetic; properties support both.
Numbers = NDArray[Any]
#: Tasks or work of users, and the amounts that a property requires, (users,) each.
Dues = tuple[Numbers, Numbers]

#: Properties by name. A subclass with a `name` is registered when it is defined.
REGISTRY: Registry[type[Property]]


@dataclass(frozen=True)
class Deviation:
    """Changed cluster, and the users that misreport or leave (no users if capacities grow).

    >>> import fairopt as fo
    >>> cluster = fo.Cluster([[9, 18]], [[1, 4], [3, 1]], users=["ann", "bob"])
    >>> fo.properties.Deviation(cluster.with_demand("ann", [2, 4]), ("ann",)).users
    ('ann',)
    """

    cluster: Cluster
    users: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Case:
    """Tasks (users, servers) on a cluster, and on a changed cluster for properties that compare two clusters.

    Tasks are floats or, in exact arithmetic, `Fraction`s. `mechanism` is the mechanism that returned the tasks, if it
    is known; some properties apply only to certain mechanisms.

    >>> import numpy as np, fairopt as fo
    >>> case = fo.properties.Case(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[3.0], [2.0]]))
    >>> case.user_tasks.tolist(), case.exact
    ([3.0, 2.0], False)
    """

    cluster: Cluster
    tasks: Numbers
    deviation: Deviation | None = None
    changed_tasks: Numbers | None = None
    mechanism: Mechanism | None = None

    @property
    def user_tasks(self) -> Numbers:
        """Tasks on all servers, :math:`x_n`, (users,)."""
        return np.asarray(self.tasks.sum(axis=1))

    @property
    def work(self) -> Numbers:
        r"""Work :math:`w_n = \sum_i a_{ni} x_{ni}`, (users,), which is tasks unless the cluster has rates."""
        return self._work(self.cluster, self.tasks)

    @property
    def changed_work(self) -> Numbers:
        """Work of the changed cluster, (users of that cluster,); empty without a changed cluster."""
        if self.deviation is None or self.changed_tasks is None:
            return np.zeros(0)
        return self._work(self.deviation.cluster, self.changed_tasks)

    def _work(self, cluster: Cluster, tasks: Numbers) -> Numbers:
        return np.asarray((tasks * self.numbers(cluster.rate) if cluster.rated else tasks).sum(axis=1))

    @property
    def exact(self) -> bool:
        """True if tasks are exact fractions."""
        return self.tasks.dtype == object

    @property
    def changed(self) -> tuple[Deviation, Numbers]:
        """The deviation, and the tasks of the changed cluster; `DataError` if the case has no changed cluster."""
        if self.deviation is None or self.changed_tasks is None:
            raise DataError("this property compares two clusters; give the changed one and its tasks as well")
        return self.deviation, self.changed_tasks

    def numbers(self, values: Numbers) -> Numbers:
        """Convert data of the cluster to the arithmetic of the tasks; infinite numbers remain floats."""
        return numbers(values) if self.exact else values


@dataclass(frozen=True)
class Finding:
    r"""Largest violation of a property in one case.

    .. math:: \max_n \Big(1 - \frac{\text{has}_n}{\text{due}_n}\Big)

    Attributes
    ----------
    violation : float or Fraction
        Missing fraction of the required tasks, clipped to [-1, 1]; the property is violated if it is positive.
    user : str
        The user with the largest violation.
    has : float or Fraction
        Tasks of that user (work if the cluster has rates).
    due : float or Fraction
        Tasks that the property requires for that user (work if the cluster has rates).
    text : str
        Description of the violation; '' if there is none.

    >>> import numpy as np, fairopt as fo
    >>> case = fo.properties.Case(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]), np.array([[4.0], [1.0]]))
    >>> fo.properties.get("sharing-incentive").find(case).text
    'user2 has 1 tasks; its part of every server would run 1.5'
    """

    violation: float | Fraction
    user: str
    has: float | Fraction
    due: float | Fraction
    text: str


#: Fraction of monopoly tasks that counts as zero in floating point, ten times the tolerance of solutions in trials.
NONE = 1e-7


class Property(ABC):
    r"""Base class of fairness properties. Subclasses have a `name`, and define at least `dues`.

    A property holds for tasks x with work w (`Case.work`) if

    .. math:: w_n \ge \text{due}_n(x) \quad \text{for all users n}

    with the required work :math:`\text{due}_n(x)`. A property that compares a cluster with changed clusters also
    defines `deviations` and `admits`.

    >>> import fairopt as fo
    >>> class OneTask(fo.properties.Property):
    ...     name = "one-task"
    ...     def dues(self, case):
    ...         return case.user_tasks, 0 * case.user_tasks + 1
    >>> fo.properties.check("one-task", fo.DRF().solve(fo.Cluster([[9, 18]], [[1, 4], [3, 1]]))).holds
    True
    """

    name: ClassVar[str] = ""
    definition: ClassVar[str] = ""
    #: Format of the description of a violation, with the fields `user`, `has` (tasks) and `due` (required tasks).
    words: ClassVar[str] = "{user} has {has} tasks where {due} are due"
    #: True if the property compares a cluster with changed clusters.
    compares: ClassVar[bool] = False
    #: True if the violation of a user depends on the tasks of other users.
    needs_all: ClassVar[bool] = False
    #: True if the property is about work (tasks without rates). Otherwise it is undefined for clusters with rates.
    in_work: ClassVar[bool] = False
    #: True if the property is defined only for clusters with rates.
    of_rates: ClassVar[bool] = False
    #: Number of servers of the random clusters of a search; None: any.
    servers: ClassVar[int | None] = None
    #: Number of resources of the random clusters of a search; None: any.
    resources: ClassVar[int | None] = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        REGISTRY.defined(cls)

    def unfit(self, mechanism: Mechanism | None) -> str:
        """Reason why the property is undefined for a mechanism, or for an unknown mechanism (None); '' if defined."""
        return ""

    def domain(self, cluster: Cluster) -> str:
        """Reason why the property is undefined for a cluster; '' if it is defined."""
        return ""

    def undefined(self, cluster: Cluster) -> str:
        """Reason why the property is undefined for a cluster, also because of rates; '' if it is defined."""
        _ = cluster.demand  # raises a specific error for a sparse demand
        if cluster.rated and not self.in_work:
            return "it compares tasks, and the cluster has rates of work"
        return self.domain(cluster) if cluster.rated or not self.of_rates else "the cluster has no rates of work"

    def deviations(self, cluster: Cluster, rng: np.random.Generator) -> Iterator[Deviation]:
        """Generate changed clusters to compare with, in random order, possibly infinitely many; by default none."""
        return iter(())

    def admits(self, cluster: Cluster, deviation: Deviation) -> bool:
        """True if the property is about the given change of the cluster; by default False if it `compares` clusters."""
        return not self.compares

    @abstractmethod
    def dues(self, case: Case) -> Dues:
        """Work of every user, and work that the property requires (0 for none), (users,) each."""

    def loss(self, missing: Numbers, case: Case) -> int:
        """Index of the decisive user, given missing fractions `1 - has/due`, (users,); by default of the largest."""
        return int(np.argmax(missing))

    def bounds(self, low: Case, high: Case) -> Dues:
        """Upper bounds on work and lower bounds on required work, (users,) each.

        The bounds hold for all tasks between the tasks of `low` and of `high`. The default is valid if `dues` is
        nondecreasing in all tasks.
        """
        return self.dues(high)[0], self.dues(low)[1]

    def find(self, case: Case) -> Finding:
        """Find the largest violation in a case."""
        return self.worst(*self.dues(case), case)

    def worst(self, has: Numbers, due: Numbers, case: Case) -> Finding:
        """Largest violation, given the work `has` and the required work `due` of users, (users,) each.

        The violation is -1, the smallest value, for a user of whom no work is required: in floating point, at most 1e-7
        of the user's monopoly work.
        """
        one = Fraction(1) if case.exact else 1.0
        cluster = case.cluster
        least = 0 * due if case.exact else NONE * cluster.work(cluster.gamma0)
        missing = np.array(
            [max(-one, one - h / d) if d > no else -one for h, d, no in zip(has, due, least, strict=True)]
        )
        n = self.loss(missing, case)
        user = cluster.users[n]
        words = self.words.replace(" tasks", " units of work") if cluster.rated else self.words
        text = words.format(user=user, has=shown(has[n]), due=shown(due[n])) if missing[n] > 0 else ""
        return Finding(missing[n], user, has[n], due[n], text)


REGISTRY = Registry("fairopt.properties", Path(__file__).parent, "property", "properties")


def shown(value: float | Fraction) -> str:
    """Short text of a number: `2/3`, `1.23457`."""
    if isinstance(value, Fraction) and value.denominator < 10_000:
        return str(value)
    return f"{float(value):.6g}"


def names() -> list[str]:
    """Names of all registered properties, sorted.

    >>> import fairopt as fo
    >>> fo.properties.names()[:2]
    ['bottleneck-fairness', 'dynamic-envy-freeness']
    """
    return sorted(REGISTRY)


def get(name: str | Property) -> Property:
    """Return the property of the given name, regardless of case, `-` and `_`; a given property is returned unchanged.

    Raises
    ------
    DataError
        No property has this name; the message lists the known names.

    >>> import fairopt as fo
    >>> fo.properties.get("envy_freeness").name
    'envy-freeness'
    """
    return name if isinstance(name, Property) else REGISTRY.named(name)()


def tasks_per_task(mine: Numbers, others: Numbers) -> Numbers:
    r"""Tasks of demand `mine[n]` that a bundle `others[m]` can run, (users, others).

    The result is :math:`\min_{r : d_{nr} > 0} b_{mr} / d_{nr}` with demands d and bundles b.
    """
    ratio = np.full((len(mine), len(others)), np.inf, dtype=others.dtype)
    for r in range(mine.shape[1]):
        needs = mine[:, r] > 0
        ratio[needs] = np.minimum(ratio[needs], others[None, :, r] / mine[needs, r][:, None])
    return ratio


def capped(tasks: Numbers, cluster: Cluster, case: Case) -> Numbers:
    r"""Tasks capped at task limits, :math:`\min(x_n, q_n)`, (users,)."""
    return np.minimum(tasks, case.numbers(cluster.max_tasks))


def most_work(tasks: Numbers, case: Case) -> Numbers:
    r"""Largest work of users, (users,), with at most the given tasks (users, servers), within task limits.

    Tasks on servers on which a user is not eligible do not count.
    """
    if case.cluster.rated:
        return np.array([most_work_of(n, row[None], case)[0] for n, row in enumerate(tasks)])
    usable = case.numbers(case.cluster.eligible.astype(float))
    return capped(np.asarray((tasks * usable).sum(axis=1)), case.cluster, case)


def most_work_of(n: int, tasks: Numbers, case: Case) -> Numbers:
    r"""Largest work of user n with each of several bundles, (bundles,), given as rows of `tasks` (bundles, servers).

    .. math:: \max \sum_i a_{ni} y_i, \quad 0 \le y_i \le \text{tasks}_i, \quad \sum_i y_i \le q_n

    The fastest servers are used first. The rate :math:`a_{ni}` counts as 0 on servers on which n is not eligible.
    """
    cluster = case.cluster
    rate = case.numbers(cluster.rate[n] * cluster.eligible[n])
    left, found = np.full(len(tasks), case.numbers(cluster.max_tasks)[n]), 0 * tasks[:, 0]
    for i in np.argsort(-cluster.rate[n] * cluster.eligible[n], kind="stable").tolist():
        run = np.minimum(tasks[:, i], left)
        left, found = left - run, found + rate[i] * run
    return found


def true_work(case: Case) -> Numbers:
    r"""True work that every user can do with its allocation on the changed cluster, (users,).

    .. math:: \max \sum_i a_{ni} y_i, \quad 0 \le y_i \le e_{ni} x'_{ni} \min_{r : d_{nr} > 0} \frac{d'_{nr}}{d_{nr}},
        \quad \sum_i y_i \le q_n

    with true rates a, eligibility e, demands d and limits q, and the demands d' and tasks x' of the changed cluster.
    """
    deviation, given = case.changed
    truth, reported = case.numbers(case.cluster.demand), case.numbers(deviation.cluster.demand)
    return most_work(np.diagonal(tasks_per_task(truth, reported))[:, None] * given, case)


def only(users: tuple[str, ...], cluster: Cluster, due: Numbers) -> Numbers:
    """Required tasks, (users,): `due` for the given users, and 0 for other users."""
    return np.where(np.isin(cluster.users, users), due, 0 * due)


def described(cluster: Cluster, deviation: Deviation | None) -> list[str]:
    """Lines of text that describe a cluster and its change, if any."""
    lines = [f"capacity {_rows(cluster.capacity)}, demand {_rows(cluster.demand)}"]
    if (cluster.weight != 1).any():
        lines.append(f"weight {_listed(cluster.weight)}")
    if cluster.constrained:
        lines.append(f"eligible {_rows(cluster.eligible.astype(float))}")
    if (cluster.max_tasks < float("inf")).any():
        lines.append(f"task counts {_listed(cluster.max_tasks)}")
    if cluster.rated:
        lines.append(f"rates of work {_rows(cluster.rate)}")
    if deviation is not None:
        lines.append(changes(cluster, deviation))
    return lines


def changes(cluster: Cluster, deviation: Deviation) -> str:
    """Text that describes how the changed cluster differs from the cluster."""
    changed = deviation.cluster
    if len(changed.users) < len(cluster.users):
        return f"{' and '.join(deviation.users)} leaves"
    about = {"demand": "demand", "eligible": "eligible", "max_tasks": "task count", "rate": "rates of work"}
    tables = [(what, getattr(cluster, name), getattr(changed, name)) for name, what in about.items()]
    said = [
        f"{user} reports {what} {_listed(reported[n].reshape(-1).astype(float))}"
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
